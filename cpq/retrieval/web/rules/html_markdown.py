"""PURE. An HTML page as Markdown blocks: tables, listings, formulas, definitions, warnings, pictures and links kept."""

from __future__ import annotations

import html as entities
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from cpq.retrieval.web.rules.addresses import Address, joined
from cpq.retrieval.web.rules.html_guard import UNSHOWN, is_tame, stripped, title_of, visible
from cpq.retrieval.web.rules.mathml import latex
from cpq.retrieval.web.rules.page import (
    ALT_LENGTH_MAX,
    BLOCKS_MAX,
    CAPTION_LENGTH_MAX,
    CHARACTERS_MAX,
    IMAGES_MAX,
    LINKS_MAX,
    REFERENCES_MAX,
    TITLE_LENGTH_MAX,
    TOO_LONG,
    Block,
    BlockKind,
    Image,
    Link,
    Page,
    line,
    names,
    seen,
    tidy,
)
from cpq.retrieval.web.rules.pipe_table import COLUMNS_MAX, REPEATED_MAX, ROWS_MAX, Cell, pipe_table

DEPTH_MAX = 150
"""Of the walk; what lies deeper is taken as plain text."""

NEST_MAX = 12
"""Lists in lists, definitions in cells and the like; what lies deeper is taken as plain text."""

INDENTED_MAX = 10
"""Lists in lists that are still moved to the right; more would make a short page a long one."""

FENCE_MAX = 10
LINK_TEXT_MAX = 200
SHIFTED_MAX = 200
"""What is longer is neither a sign nor an exponent, wherever it is set."""

MAIN_CHARACTERS_MIN = 200
NOT_TAME = "The page is nested more deeply than pages that people write; only its bare text was kept, hidden parts too."

_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight(?:-source)?|brush:)[-\s]?([A-Za-z0-9+#.]{1,20})(?=[\s;]|$)")
_NO_LANGUAGE = frozenset({"default", "none", "text", "plain", "notranslate", "highlight"})
_ADMONITION = re.compile(
    r"(?:^|[\s-])(note|info|tip|hint|seealso|important|warning|caution|danger|attention|error)(?=[\s-]|$)"
)
_ADMONITION_BOX = re.compile(r"(?:^|[\s-])(?:admonition|alert|callout|markdown-alert|notice|message)(?=[\s-]|$)")
_SEVERE = frozenset({"warning", "caution", "danger", "attention", "error"})
_BACKTICKS = re.compile(r"`{3,}")
_LONG_BACKTICKS = re.compile(rf"`{{{FENCE_MAX},}}")
_PLAIN_PATH = re.compile(r"/(?:[A-Za-z0-9_~-][A-Za-z0-9/_~-]{0,300}(?:\.[A-Za-z0-9]{1,10})?)?")
_STYLE_NOISE = re.compile(r"\s|/\*.*?(?:\*/|\Z)", re.DOTALL)
_STYLE_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.DOTALL | re.IGNORECASE)
_HIDING = re.compile(
    r"(?:^|;)(?:display:none|visibility:(?:hidden|collapse)|font-size:[0.]++(?![1-9])|(?:left|top|text-indent):-\d{4})"
)
_FOLDED_LINKS = "nav [hidden] a[href], nav [style] a[href], nav[hidden] a[href], nav[style] a[href]"
"""Menus that open at a click: what they say is not read, but where they lead is good to know."""

_SPAN = re.compile(r"[0-9]{1,4}")

_ANCHOR_MARKS = ("", "#", "¶", "§", "🔗")
"""What documentation puts behind a heading, to link to it."""

_BREAK = "\x00"
"""Stands for `<br>` while a paragraph is gathered; no page can hold it, its own are gone by then."""


def convert(html: str, base: Address) -> Page:
    """Read a page. Never fails: one that is built to hurt the parser comes back as its bare text, with a warning."""
    title = line(entities.unescape(title_of(html)), TITLE_LENGTH_MAX)
    shown = visible(html)
    if not is_tame(shown):
        return _bare_page(title, shown)
    tree = LexborHTMLParser(shown)
    root = tree.body or tree.root
    if root is None:
        return Page(title, ())
    walker = _Walker(_base_of(tree, base))
    menus = root.css(_FOLDED_LINKS)[:REFERENCES_MAX]
    folded = [(each.attributes.get("href") or "", line(each.text(deep=True), LINK_TEXT_MAX)) for each in menus]
    _drop_hidden(root)
    try:
        walker.read(root)
        walker.note_menu(folded)
    except RecursionError:
        return _bare_page(title, shown)
    if not title:
        title = next((block.text for block in walker.blocks if block.kind == "heading"), "")[:TITLE_LENGTH_MAX]
    warning = TOO_LONG if walker.room <= 0 else None
    return Page(title, tuple(walker.blocks), tuple(walker.images), tuple(walker.links.values()), warning)


def _drop_hidden(root: Any) -> None:
    """Take out what no visitor sees: it is not for the model either, which would read it as if it were said."""
    # From the end, so that nothing is looked at after what it stands in is gone.
    for node in reversed(root.css("[style]")):
        style = _STYLE_ESCAPE.sub(_unescaped, node.attributes.get("style") or "")
        if _HIDING.search(_STYLE_NOISE.sub("", style).lower()) and node.tag not in ("html", "body"):
            node.decompose()
    for node in reversed(root.css("[hidden], object")):
        if node.tag not in ("html", "body"):
            node.decompose()


def _unescaped(found: re.Match[str]) -> str:
    """A letter of a style sheet that is written by its number, or with a stroke before it."""
    return found[2] or chr(min(int(found[1], 16), sys.maxunicode))


def _bare_page(title: str, shown: str) -> Page:
    text = entities.unescape(stripped(shown))
    paragraphs = (" ".join(part.split()) for part in seen(text).split("\n\n"))
    blocks = tuple(Block("text", part) for part in paragraphs if part)
    return Page(title, blocks[:BLOCKS_MAX], warning=NOT_TAME)


def _base_of(tree: Any, base: Address) -> Address:
    found = tree.css_first("base[href]")
    return (found and joined(base, found.attributes.get("href") or "")) or base


class _Walker:
    """Walks the tree once and writes blocks. Inline text gathers in `_said` until a block ends."""

    def __init__(self, base: Address) -> None:
        self.blocks: list[Block] = []
        self.images: list[Image] = []
        self.links: dict[str, Link] = {}
        self.room = CHARACTERS_MAX
        """How many characters may still be written; nothing further is read once there are none."""
        self._base = base
        self._said: list[str] = []
        self._depth = 0
        self._nested = 0
        self._caption = ""
        self._joined: dict[str, str | None] = {}
        self._languages: dict[int, str] = {}

    def read(self, root: Any) -> None:
        """The main part where the page names one, else all of it; menus give links only, either way."""
        mains = root.css("main") or root.css("[role=main]") or root.css("article")
        main = mains[0] if len(mains) == 1 and _is_most_of(mains[0], root) else root
        self._children(main)
        self._end_paragraph()
        if main is not root:
            self._note_links(root)

    def _children(self, node: Any) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._said.append(seen(node.text(deep=True, separator=" ")))
        else:
            for child in node.iter(include_text=True):
                tag = child.tag
                if self.room <= 0:
                    break
                if tag == "-text":
                    self._said.append(child.text_content or "")
                elif tag in _INLINE:
                    self._children(child)
                else:
                    handle = _HANDLERS.get(tag)
                    if handle is not None:
                        handle(self, child)
                    else:
                        self._children(child)
        self._depth -= 1

    def _paragraph(self, node: Any) -> None:
        self._end_paragraph()
        self._children(node)
        self._end_paragraph()

    def _box(self, node: Any) -> None:
        """A division, which may be an admonition or a menu."""
        attributes = node.attributes
        if attributes:
            classes = attributes.get("class") or ""
            if attributes.get("role") in _MENU_ROLES or attributes.get("aria-hidden") == "true":
                self._note_links(node)
                return
            if classes and (kind := _admonition(node.tag, classes.lower())):
                self._admonition(node, kind)
                return
        self._paragraph(node)

    def _menu(self, node: Any) -> None:
        """A menu, or an aside: its links are kept, its text is not about the page. An aside may be an admonition."""
        kind = _admonition("div", (node.attributes.get("class") or "").lower()) if node.tag == "aside" else None
        if kind:
            self._admonition(node, kind)
        else:
            self._note_links(node)

    def _header(self, node: Any) -> None:
        """The header of a page is a menu; that of a section is its heading."""
        if node.css_first("h1, h2"):
            self._paragraph(node)
        else:
            self._note_links(node)

    def _heading(self, node: Any) -> None:
        self._end_paragraph()
        parts = [part for part in self._inside(node) if part]
        text = line(" ".join(parts), TITLE_LENGTH_MAX)
        if text:
            self._add("heading", text, int(node.tag[1]))

    def _break(self, node: Any) -> None:
        self._said.append(_BREAK)

    def _rule(self, node: Any) -> None:
        self._end_paragraph()

    def _skip(self, node: Any) -> None:
        """Nothing of it is shown."""

    def _link(self, node: Any) -> None:
        before = len(self._said)
        self._children(node)
        href = node.attributes.get("href")
        if href and href[0] == "#" and "".join(self._said[before:]).strip() in _ANCHOR_MARKS:
            del self._said[before:]
        elif href:
            self._note_link(href, "".join(self._said[before:]), is_navigation=False)

    def _shifted(self, node: Any) -> None:
        """A footnote's sign or an exponent, which would otherwise be another digit of the number before it.

        What is set lower is left where it follows no digit: people look for `CO2` and `H2O`.
        """
        before = len(self._said)
        is_plain = node.tag == "sub" and not "".join(self._said[-1:])[-1:].isdigit()
        self._children(node)
        said = "".join(self._said[before:])
        text = tidy(said) if len(said) <= SHIFTED_MAX else ""
        if text and not is_plain and text[0] not in "[(^_":
            mark = "^" if node.tag == "sup" else "_"
            self._said[before:] = [f"{mark}{text}" if text.isalnum() else f"{mark}{{{text}}}"]

    def _code(self, node: Any) -> None:
        text = " ".join(_preformatted(node).split())
        mark = "``" if "`" in text else "`"
        if text:
            self._said.append(f"{mark}{text}{mark}")

    def _listing(self, node: Any) -> None:
        self._end_paragraph()
        text = seen(_preformatted(node)).strip("\n").rstrip()
        if text:
            text = _LONG_BACKTICKS.sub("`" * (FENCE_MAX - 1), text)
            longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
            fence = "`" * (longest + 1)
            self._add("code", f"{fence}{_language(node, self._languages)}\n{text}\n{fence}")

    def _math(self, node: Any) -> None:
        written = seen(latex(node))
        if written.startswith("$$"):
            self._end_paragraph()
            self._add("text", written)
        else:
            self._said.append(written)

    def _list(self, node: Any) -> None:
        self._end_paragraph()
        start = _SPAN.match(node.attributes.get("start") or "")
        number = int(start[0]) if start else 1
        written: list[str] = []
        is_indented = self._nested < INDENTED_MAX
        for child in node.iter(include_text=True):
            parts = self._items(child)
            if child.tag in ("ul", "ol"):
                written += ["  " * is_indented + text for part in parts for text in part.split("\n")]
                continue
            if not parts:
                continue
            mark = f"{number}. " if node.tag == "ol" else "- "
            number += 1
            indent = " " * len(mark) * is_indented
            lines = "\n".join(parts).split("\n")
            written.append(mark + lines[0])
            written += [indent + text for text in lines[1:]]
        if written:
            self._add("text", "\n".join(written))

    def _items(self, child: Any) -> list[str]:
        """A child of a list or of definitions, which may be bare text or a list without an item around it."""
        if child.tag == "-text":
            return [text] if (text := tidy(child.text_content or "")) else []
        return self._collected(child, self._list) if child.tag in ("ul", "ol") else self._inside(child)

    def _definitions(self, node: Any) -> None:
        self._end_paragraph()
        terms: list[str] = []
        label, is_said = "", False
        for child in _definition_parts(node):
            parts = self._items(child)
            if child.tag == "dt":
                if is_said:
                    terms, is_said = [], False
                terms.append(" ".join(" ".join(parts).split()))
            elif parts:
                if not is_said:
                    label = f"**{', '.join(terms)}**: " if terms else ""
                elif len(label) > REPEATED_MAX:
                    label = ""
                self._add("text", label + "\n".join(parts))
                is_said = True
        if terms and not is_said:
            self._add("text", f"**{', '.join(terms)}**")

    def _admonition(self, node: Any, kind: str) -> None:
        self._end_paragraph()
        said = "\n".join(self._inside(node))
        title, _, rest = said.partition("\n")
        if title.lower().rstrip(":!. ") == kind:
            said = rest
        mark = "⚠️" if kind in _SEVERE else "ℹ️"
        if said:
            self._add("text", f"{mark} {kind.upper()}: {said}")

    def _table(self, node: Any) -> None:
        self._end_paragraph()
        caption = node.css_first("caption")
        listing = node.css_first("td.code pre, td.blob-code pre")
        if listing is not None:
            self._listing(listing)
            return
        is_nest = any(found.mem_id != node.mem_id for found in node.css("table"))
        if is_nest or node.attributes.get("role") == "presentation":
            self._children(node)
            self._end_paragraph()
            return
        rows = [[self._cell(cell) for cell in cells] for cells in _rows_of(node)]
        if rows and max(map(len, rows)) <= 1:  # One column is a layout, not a table.
            for row in rows:
                for cell in row:
                    if cell.text:
                        self._add("text", cell.text.replace(r"\|", "|"))
            return
        if caption is not None and (text := " ".join(self._inside(caption))):
            self._add("text", text)
        if written := pipe_table(rows):
            self._add("table", written)

    def _cell(self, node: Any) -> Cell:
        attributes = node.attributes
        text = " ".join(self._inside(node)).replace("\n", " ").replace("|", r"\|")
        return Cell(text, _span(attributes.get("colspan")), _span(attributes.get("rowspan")), node.tag == "th")

    def _figure(self, node: Any) -> None:
        self._end_paragraph()
        found = node.css_first("figcaption")
        outer, self._caption = self._caption, _caption(found) if found else ""
        self._children(node)
        self._end_paragraph()
        self._caption = outer

    def _image(self, node: Any) -> None:
        if len(self.images) >= IMAGES_MAX:
            return
        attributes = node.attributes
        sources = [attributes.get(name) or "" for name in ("src", "data-src")]
        # A picture that is loaded late has a placeholder until then.
        source = next((each for each in sources if each and not each.startswith("data:")), None)
        url = self._resolved(source) if source else None
        if url:
            alt = line(attributes.get("alt") or "", ALT_LENGTH_MAX)
            self.images.append(Image(url, alt, self._caption, len(self.blocks)))

    def _inside(self, node: Any) -> list[str]:
        """The blocks within a node as texts, kept out of the page's own for now."""
        only = node.first_child
        if only is None:
            return []
        if only.next is None and only.tag == "-text":  # Nearly every cell and item: worth a way of its own.
            text = tidy(only.text_content or "")
            return [text] if text else []
        return self._collected(node, self._paragraph)

    def _collected(self, node: Any, work: Callable[[Any], object]) -> list[str]:
        if self._nested == NEST_MAX:
            text = tidy(node.text(deep=True, separator=" "))
            return [text] if text else []
        self._nested += 1
        blocks, said = self.blocks, self._said
        place = len(blocks)
        images = len(self.images)
        self.blocks, self._said = [], []
        work(node)
        self._nested -= 1
        collected = [block.text for block in self.blocks]
        self.blocks, self._said = blocks, said
        for number in range(images, len(self.images)):
            found = self.images[number]
            self.images[number] = Image(found.url, found.alt, found.caption, place)
        return collected

    def _end_paragraph(self) -> None:
        if not self._said:
            return
        said = "".join(self._said)
        self._said.clear()
        text = "\n".join(filter(None, map(tidy, said.split(_BREAK)))) if _BREAK in said else tidy(said)
        if text:
            self._add("text", text)

    def _add(self, kind: BlockKind, text: str, level: int = 0) -> None:
        if len(self.blocks) < BLOCKS_MAX:
            self.blocks.append(Block(kind, text[:CHARACTERS_MAX], level))
            self.room -= len(text)

    def note_menu(self, links: Iterable[tuple[str, str]]) -> None:
        for href, text in links:
            self._note_link(href, text, is_navigation=True)

    def _note_links(self, node: Any) -> None:
        self.note_menu((each.attributes.get("href") or "", each.text(deep=True)) for each in node.css("a[href]"))

    def _note_link(self, href: str, text: str, *, is_navigation: bool) -> None:
        if len(self.links) >= LINKS_MAX or href.startswith(("#", "javascript:", "mailto:", "tel:", "data:")):
            return
        url = self._resolved(href)
        if url is None:
            return
        said = line(text, LINK_TEXT_MAX)
        known = self.links.get(url)
        is_better = known is not None and (is_navigation, -len(said)) < (known.is_navigation, -len(known.text))
        if known is None or is_better:
            self.links[url] = Link(url, said, is_navigation)

    def _resolved(self, reference: str) -> str | None:
        reference = reference.partition("#")[0]
        if reference not in self._joined:
            if len(self._joined) >= REFERENCES_MAX:
                return None
            if _PLAIN_PATH.fullmatch(reference):  # Most links of most sites; the long way costs twenty times as much.
                self._joined[reference] = self._base.origin + reference
            else:
                address = joined(self._base, reference)
                self._joined[reference] = address.url if address else None
        return self._joined[reference]


def _is_most_of(main: Any, root: Any) -> bool:
    """Some pages have a main part that a script fills later."""
    size = len(main.text(deep=True))
    return size >= MAIN_CHARACTERS_MIN or size * 4 >= len(root.text(deep=True))


def _preformatted(node: Any) -> str:
    """The text of a listing, a line for each line that a browser shows."""
    only = node.first_child
    if only is None or (only.next is None and only.tag == "-text"):
        return str(only.text_content or "") if only else ""
    if node.css_first(_LINE_ENDS) is None:
        return str(node.text(deep=True))
    said: list[str] = []
    opened = [(node.tag, node.iter(include_text=True))]
    while opened:
        each = next(opened[-1][1], None)
        if each is not None and each.tag == "-text":
            said.append(each.text_content or "")
            continue
        if each is not None and each.tag == "br":
            said.append("\n")
            continue
        if each is None:
            tag, _ = opened.pop()
        else:
            tag = each.tag
            opened.append((tag, each.iter(include_text=True)))
        if tag in _LINES and said and not said[-1].endswith("\n"):  # The edge of a block ends a line.
            said.append("\n")
    return "".join(said)


def _caption(node: Any) -> str:
    return line(node.text(deep=True).rstrip("¶# \n"), CAPTION_LENGTH_MAX)


def _definition_parts(node: Any) -> Iterator[Any]:
    """Terms and definitions, also where each pair stands in a division of its own."""
    for child in node.iter(include_text=True):
        if child.tag == "div":
            yield from child.iter(include_text=True)
        else:
            yield child


def _rows_of(table: Any) -> Iterator[list[Any]]:
    count = 0
    for part in table.iter(include_text=False):
        rows = [part] if part.tag == "tr" else part.iter(include_text=False) if part.tag in _ROW_GROUPS else ()
        for row in rows:
            if row.tag == "tr" and count < ROWS_MAX:
                count += 1
                cells = (cell for cell in row.iter(include_text=False) if cell.tag in ("td", "th"))
                yield [cell for cell, _ in zip(cells, range(COLUMNS_MAX), strict=False)]


def _span(value: str | None) -> int:
    found = _SPAN.match(value) if value else None
    return max(1, int(found[0])) if found else 1


def _language(node: Any, known: dict[int, str]) -> str:
    """From the class of the listing, of the code in it, or of the boxes around it, which many listings may share."""
    inner = node.css_first("code")
    around = [node, node.parent, node.parent.parent if node.parent else None]
    for each in ([inner] if inner is not None else []) + around:
        if each is None or each.tag.startswith("-"):
            continue
        if each.mem_id not in known:
            words = map(str.lower, _LANGUAGE.findall(each.attributes.get("class") or ""))
            known[each.mem_id] = next((word for word in words if word not in _NO_LANGUAGE), "")
        if known[each.mem_id]:
            return known[each.mem_id]
    return ""


def _admonition(tag: str, classes: str) -> str | None:
    """Which kind of admonition a class names; a bare `note` counts when it is the only word or there is a box."""
    found = _ADMONITION.search(classes)
    if not found or (not _ADMONITION_BOX.search(classes) and classes.split() != [found[1]]):
        return None
    return found[1] if tag != "span" else None


_INLINE = names("b strong em i span u s small big abbr cite q mark font time label bdi bdo ins del")
_LINES = names("div p li tr")
_LINE_ENDS = ", ".join(["br", *sorted(_LINES)])
_MENU_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "menubar"})
_ROW_GROUPS = frozenset({"thead", "tbody", "tfoot"})
_PLAIN_BLOCKS = names(
    "article main address fieldset details summary figcaption caption center li dd dt tr td th hgroup"
)
_UNSHOWN = names(
    f"script style noscript template iframe textarea {UNSHOWN} button input head link meta object audio video canvas"
    " map dialog -comment -doctype"
)

_HANDLERS: dict[str, Callable[[_Walker, Any], None]] = {
    **dict.fromkeys(_PLAIN_BLOCKS, _Walker._paragraph),
    **dict.fromkeys(("div", "section", "p", "blockquote", "form"), _Walker._box),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _Walker._heading),
    **dict.fromkeys(("nav", "footer", "aside", "menu"), _Walker._menu),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), _Walker._code),
    **dict.fromkeys(("ul", "ol"), _Walker._list),
    **dict.fromkeys(_UNSHOWN, _Walker._skip),
    "header": _Walker._header,
    "sup": _Walker._shifted,
    "sub": _Walker._shifted,
    "br": _Walker._break,
    "hr": _Walker._rule,
    "a": _Walker._link,
    "pre": _Walker._listing,
    "math": _Walker._math,
    "dl": _Walker._definitions,
    "table": _Walker._table,
    "figure": _Walker._figure,
    "img": _Walker._image,
}
