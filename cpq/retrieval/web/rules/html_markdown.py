"""PURE. Converts HTML to Markdown blocks: tables, listings, formulas, definitions, warnings, pictures and links."""

from __future__ import annotations

import html as entities
import re
from collections.abc import Callable, Iterable
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from cpq.retrieval.web.rules.addresses import Address, joined
from cpq.retrieval.web.rules.html_guard import UNSHOWN, is_tame, stripped, title_of, visible
from cpq.retrieval.web.rules.html_nodes import (
    SPAN,
    admonition_kind,
    caption_of,
    definition_parts,
    drop_hidden,
    is_most_of,
    language_of,
    preformatted,
    rows_of,
    span_of,
)
from cpq.retrieval.web.rules.link_text import as_label, has_marks, tidy_marked, without_marks, without_menu
from cpq.retrieval.web.rules.mathml import latex
from cpq.retrieval.web.rules.page import (
    ALT_LENGTH_MAX,
    BLOCKS_MAX,
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
from cpq.retrieval.web.rules.pipe_table import REPEATED_MAX, Cell, pipe_table

DEPTH_MAX = 150
"""Depth of the walk; deeper content is taken as plain text."""

NEST_MAX = 12
"""Nested lists, definitions in cells and the like; deeper content is taken as plain text."""

INDENTED_MAX = 10
"""Nested lists that are indented; more would make a short page long."""

FENCE_MAX = 10
LINK_TEXT_MAX = 200
SHIFTED_MAX = 200
"""Longer text is neither a footnote sign nor an exponent."""

NOT_TAME = "The page is nested more deeply than pages that people write; only its bare text was kept, hidden parts too."

_SEVERE = frozenset({"warning", "caution", "danger", "attention", "error"})
_BACKTICKS = re.compile(r"`{3,}")
_LONG_BACKTICKS = re.compile(rf"`{{{FENCE_MAX},}}")
_PLAIN_PATH = re.compile(r"/(?:[A-Za-z0-9_~-][A-Za-z0-9/_~-]{0,300}(?:\.[A-Za-z0-9]{1,10})?)?")
_FOLDED_LINKS = "nav [hidden] a[href], nav [style] a[href], nav[hidden] a[href], nav[style] a[href]"
"""Links of menus that open at a click: the menu's text is not read, but its targets are useful."""

_CONTACTS = ("mailto:", "tel:")
"""The words of such a link are what one looks for."""

_ANCHOR_MARKS = ("", "#", "¶", "§", "🔗")
"""Signs that documentation puts after a heading to link to it."""

_BREAK = "\x00"
"""Marks a `<br>` in an unfinished paragraph; pages cannot contain it, because it is removed before."""


def convert(html: str, base: Address) -> Page:
    """Convert a page. Never fails: a page built to harm the parser becomes its bare text, with a warning."""
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
    drop_hidden(root)
    try:
        walker.read(root)
        walker.note_menu(folded)
    except RecursionError:
        return _bare_page(title, shown)
    if not title:
        title = next((block.text for block in walker.blocks if block.kind == "heading"), "")[:TITLE_LENGTH_MAX]
    warning = TOO_LONG if walker.room <= 0 else None
    return Page(title, tuple(walker.blocks), tuple(walker.images), tuple(walker.links.values()), warning)


def _bare_page(title: str, shown: str) -> Page:
    text = entities.unescape(stripped(shown))
    paragraphs = (" ".join(part.split()) for part in seen(text).split("\n\n"))
    blocks = tuple(Block("text", part) for part in paragraphs if part)
    return Page(title, blocks[:BLOCKS_MAX], warning=NOT_TAME)


def _base_of(tree: Any, base: Address) -> Address:
    found = tree.css_first("base[href]")
    return (found and joined(base, found.attributes.get("href") or "")) or base


class _Walker:
    """Walks the tree once and writes blocks. Inline text is collected in `_inline` until a block ends."""

    def __init__(self, base: Address) -> None:
        self.blocks: list[Block] = []
        self.images: list[Image] = []
        self.links: dict[str, Link] = {}
        self.room = CHARACTERS_MAX
        """Characters that may still be written; at 0 the walk stops."""
        self._base = base
        self._inline: list[str] = []
        self._depth = 0
        self._nested = 0
        self._is_in_link = False
        self._caption = ""
        self._joined: dict[str, str | None] = {}
        self._languages: dict[int, str] = {}

    def read(self, root: Any) -> None:
        """The main part if the page marks one, else the whole page; menus only give links."""
        mains = root.css("main") or root.css("[role=main]") or root.css("article")
        main = mains[0] if len(mains) == 1 and is_most_of(mains[0], root) else root
        self._children(main)
        self._end_paragraph()
        if main is not root:
            self._note_links(root)

    def _children(self, node: Any) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._inline.append(seen(node.text(deep=True, separator=" ")))
        else:
            for child in node.iter(include_text=True):
                tag = child.tag
                if self.room <= 0:
                    break
                if tag == "-text":
                    text = child.text_content or ""
                    self._inline.append(as_label(text) if self._is_in_link else text)
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
            if classes and (kind := admonition_kind(node.tag, classes.lower())):
                self._admonition(node, kind)
                return
        self._paragraph(node)

    def _menu(self, node: Any) -> None:
        """A menu or an aside: its links are kept, its text is not about the page. An aside may be an admonition."""
        kind = admonition_kind("div", (node.attributes.get("class") or "").lower()) if node.tag == "aside" else None
        if kind:
            self._admonition(node, kind)
        else:
            self._note_links(node)

    def _header(self, node: Any) -> None:
        """The header of a page is a menu; the header of a section is its heading."""
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
        self._inline.append(_BREAK)

    def _rule(self, node: Any) -> None:
        self._end_paragraph()

    def _skip(self, node: Any) -> None:
        """Skip an element that is not shown."""

    def _link(self, node: Any) -> None:
        before, blocks = len(self._inline), len(self.blocks)
        href = node.attributes.get("href")
        outer, self._is_in_link = self._is_in_link, bool(href) and not href.startswith(_CONTACTS)
        self._children(node)
        self._is_in_link = outer
        if not href:
            return
        text = "" if len(self.blocks) > blocks else without_marks("".join(self._inline[before:]))
        if href[0] == "#" and text.strip() in _ANCHOR_MARKS:
            del self._inline[before:]
        else:  # A link around whole blocks has left nothing inline.
            self._note_link(href, text.strip() or node.text(deep=True, separator=" "), is_navigation=False)

    def _shifted(self, node: Any) -> None:
        """A footnote sign or an exponent, which would otherwise join the digits of the number before it.

        A subscript stays plain after a letter: people search for `CO2` and `H2O`.
        """
        before = len(self._inline)
        is_plain = node.tag == "sub" and not "".join(self._inline[-1:])[-1:].isdigit()
        self._children(node)
        written = without_marks("".join(self._inline[before:]))
        text = tidy(written) if len(written) <= SHIFTED_MAX else ""
        if text and not is_plain and text[0] not in "[(^_":
            mark = "^" if node.tag == "sup" else "_"
            self._inline[before:] = [f"{mark}{text}" if text.isalnum() else f"{mark}{{{text}}}"]

    def _code(self, node: Any) -> None:
        text = " ".join(preformatted(node).split())
        mark = "``" if "`" in text else "`"
        if text:
            written = f"{mark}{text}{mark}"
            self._inline.append(as_label(written) if self._is_in_link else written)

    def _listing(self, node: Any) -> None:
        self._end_paragraph()
        text = seen(preformatted(node)).strip("\n").rstrip()
        if text:
            text = _LONG_BACKTICKS.sub("`" * (FENCE_MAX - 1), text)
            longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
            fence = "`" * (longest + 1)
            self._add("code", f"{fence}{language_of(node, self._languages)}\n{text}\n{fence}")

    def _math(self, node: Any) -> None:
        written = seen(latex(node))
        if written.startswith("$$"):
            self._end_paragraph()
            self._add("text", written)
        else:
            self._inline.append(written)

    def _list(self, node: Any) -> None:
        self._end_paragraph()
        start = SPAN.match(node.attributes.get("start") or "")
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
        return self._collected(child, self._list) if child.tag in ("ul", "ol") else self._marked(child)

    def _definitions(self, node: Any) -> None:
        self._end_paragraph()
        terms: list[str] = []
        label, is_defined = "", False
        for child in definition_parts(node):
            parts = list(map(without_marks, self._items(child)))
            if child.tag == "dt":
                if is_defined:
                    terms, is_defined = [], False
                terms.append(" ".join(" ".join(parts).split()))
            elif parts:
                if not is_defined:
                    label = f"**{', '.join(terms)}**: " if terms else ""
                elif len(label) > REPEATED_MAX:
                    label = ""
                self._add("text", label + "\n".join(parts))
                is_defined = True
        if terms and not is_defined:
            self._add("text", f"**{', '.join(terms)}**")

    def _admonition(self, node: Any, kind: str) -> None:
        self._end_paragraph()
        content = "\n".join(self._inside(node))
        title, _, rest = content.partition("\n")
        if title.lower().rstrip(":!. ") == kind:
            content = rest
        mark = "⚠️" if kind in _SEVERE else "ℹ️"
        if content:
            self._add("text", f"{mark} {kind.upper()}: {content}")

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
        rows = [[self._cell(cell) for cell in cells] for cells in rows_of(node)]
        is_marked = any(has_marks(cell.text) for row in rows for cell in row)
        if is_marked and not any(without_menu(cell.text) for row in rows for cell in row):
            return
        if rows and max(map(len, rows)) <= 1:  # One column is a layout, not a table.
            for row in rows:
                for cell in row:
                    if cell.text:
                        self._add("text", cell.text.replace(r"\|", "|"))
            return
        if caption is not None and (text := " ".join(self._inside(caption))):
            self._add("text", text)
        if is_marked:
            rows = [[cell._replace(text=without_marks(cell.text)) for cell in row] for row in rows]
        if written := pipe_table(rows):
            self._add("table", written)

    def _cell(self, node: Any) -> Cell:
        attributes = node.attributes
        text = " ".join(self._marked(node)).replace("\n", " ").replace("|", r"\|")
        return Cell(text, span_of(attributes.get("colspan")), span_of(attributes.get("rowspan")), node.tag == "th")

    def _figure(self, node: Any) -> None:
        self._end_paragraph()
        found = node.css_first("figcaption")
        outer, self._caption = self._caption, caption_of(found) if found else ""
        self._children(node)
        self._end_paragraph()
        self._caption = outer

    def _image(self, node: Any) -> None:
        if len(self.images) >= IMAGES_MAX:
            return
        attributes = node.attributes
        sources = [attributes.get(name) or "" for name in ("src", "data-src")]
        # A lazily loaded picture has a placeholder.
        source = next((each for each in sources if each and not each.startswith("data:")), None)
        url = self._resolved(source) if source else None
        if url:
            alt = line(attributes.get("alt") or "", ALT_LENGTH_MAX)
            self.images.append(Image(url, alt, self._caption, len(self.blocks)))

    def _inside(self, node: Any) -> list[str]:
        """The blocks within a node as texts, not added to the page."""
        return list(map(without_marks, self._marked(node)))

    def _marked(self, node: Any) -> list[str]:
        """The same, with the words of links between marks."""
        only = node.first_child
        if only is None:
            return []
        if only.next is None and only.tag == "-text":  # A shortcut for nearly every cell and item.
            text = tidy(only.text_content or "")
            return [text] if text else []
        return self._collected(node, self._paragraph)

    def _collected(self, node: Any, work: Callable[[Any], object]) -> list[str]:
        if self._nested == NEST_MAX:
            text = tidy(node.text(deep=True, separator=" "))
            return [text] if text else []
        self._nested += 1
        blocks, inline = self.blocks, self._inline
        place = len(blocks)
        images = len(self.images)
        self.blocks, self._inline = [], []
        work(node)
        self._nested -= 1
        collected = [block.text for block in self.blocks]
        self.blocks, self._inline = blocks, inline
        for number in range(images, len(self.images)):
            found = self.images[number]
            self.images[number] = Image(found.url, found.alt, found.caption, place)
        return collected

    def _end_paragraph(self) -> None:
        if not self._inline:
            return
        inline = "".join(self._inline)
        self._inline.clear()
        text = (
            "\n".join(filter(None, map(tidy_marked, inline.split(_BREAK)))) if _BREAK in inline else tidy_marked(inline)
        )
        if text:
            self._add("text", text)

    def _add(self, kind: BlockKind, text: str, level: int = 0) -> None:
        if not self._nested:
            text = without_menu(text)
        if text and len(self.blocks) < BLOCKS_MAX:
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
        label = line(text, LINK_TEXT_MAX)
        known = self.links.get(url)
        is_better = known is not None and (is_navigation, -len(label)) < (known.is_navigation, -len(known.text))
        if known is None or is_better:
            self.links[url] = Link(url, label, is_navigation)

    def _resolved(self, reference: str) -> str | None:
        reference = reference.partition("#")[0]
        if reference not in self._joined:
            if len(self._joined) >= REFERENCES_MAX:
                return None
            if _PLAIN_PATH.fullmatch(
                reference
            ):  # A shortcut for most links; the general way takes twenty times as long.
                self._joined[reference] = self._base.origin + reference
            else:
                address = joined(self._base, reference)
                self._joined[reference] = address.url if address else None
        return self._joined[reference]


_INLINE = names("b strong em i span u s small big abbr cite q mark font time label bdi bdo ins del")
_MENU_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "menubar"})
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
