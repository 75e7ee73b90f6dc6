"""PURE. Reads single nodes of an HTML page: hidden parts, listings, table rows, languages, admonitions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from cpq.retrieval.web.rules.page import CAPTION_LENGTH_MAX, line, names
from cpq.retrieval.web.rules.pipe_table import COLUMNS_MAX, ROWS_MAX

_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight(?:-source)?|brush:)[-\s]?([A-Za-z0-9+#.]{1,20})(?=[\s;]|$)")
_NO_LANGUAGE = frozenset({"default", "none", "text", "plain", "notranslate", "highlight"})
_ADMONITION = re.compile(
    r"(?:^|[\s-])(note|info|tip|hint|seealso|important|warning|caution|danger|attention|error)(?=[\s-]|$)"
)
_ADMONITION_BOX = re.compile(r"(?:^|[\s-])(?:admonition|alert|callout|markdown-alert|notice|message)(?=[\s-]|$)")
_STYLE_NOISE = re.compile(r"\s|/\*.*?(?:\*/|\Z)", re.DOTALL)
_STYLE_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.DOTALL | re.IGNORECASE)
_HIDING = re.compile(
    r"(?:^|;)(?:display:none|visibility:(?:hidden|collapse)|font-size:[0.]++(?![1-9])|(?:left|top|text-indent):-\d{4})"
)
SPAN = re.compile(r"[0-9]{1,4}")
_LINES = names("div p li tr")
_LINE_ENDS = ", ".join(["br", *sorted(_LINES)])
_ROW_GROUPS = frozenset({"thead", "tbody", "tfoot"})
MAIN_CHARACTERS_MIN = 200


def drop_hidden(root: Any) -> None:
    """Remove what no visitor sees, so that the model does not read hidden text."""
    # From the end, so that no node is read after its parent is removed.
    for node in reversed(root.css("[style]")):
        style = _STYLE_ESCAPE.sub(_unescaped, node.attributes.get("style") or "")
        if _HIDING.search(_STYLE_NOISE.sub("", style).lower()) and node.tag not in ("html", "body"):
            node.decompose()
    for node in reversed(root.css("[hidden], object")):
        if node.tag not in ("html", "body"):
            node.decompose()


def _unescaped(found: re.Match[str]) -> str:
    """A character of a style sheet, written by its number or with a backslash."""
    return found[2] or chr(min(int(found[1], 16), sys.maxunicode))


def is_most_of(main: Any, root: Any) -> bool:
    """Whether a main part holds enough text: some pages fill it later by a script."""
    size = len(main.text(deep=True))
    return size >= MAIN_CHARACTERS_MIN or size * 4 >= len(root.text(deep=True))


def preformatted(node: Any) -> str:
    """The text of a listing, with the line breaks that a browser shows."""
    only = node.first_child
    if only is None or (only.next is None and only.tag == "-text"):
        return str(only.text_content or "") if only else ""
    if node.css_first(_LINE_ENDS) is None:
        return str(node.text(deep=True))
    written: list[str] = []
    opened = [(node.tag, node.iter(include_text=True))]
    while opened:
        each = next(opened[-1][1], None)
        if each is not None and each.tag == "-text":
            written.append(each.text_content or "")
            continue
        if each is not None and each.tag == "br":
            written.append("\n")
            continue
        if each is None:
            tag, _ = opened.pop()
        else:
            tag = each.tag
            opened.append((tag, each.iter(include_text=True)))
        if tag in _LINES and written and not written[-1].endswith("\n"):  # The edge of a block ends a line.
            written.append("\n")
    return "".join(written)


def caption_of(node: Any) -> str:
    return line(node.text(deep=True).rstrip("¶# \n"), CAPTION_LENGTH_MAX)


def definition_parts(node: Any) -> Iterator[Any]:
    """Terms and definitions, also when each pair is in its own division."""
    for child in node.iter(include_text=True):
        if child.tag == "div":
            yield from child.iter(include_text=True)
        else:
            yield child


def rows_of(table: Any) -> Iterator[list[Any]]:
    count = 0
    for part in table.iter(include_text=False):
        rows = [part] if part.tag == "tr" else part.iter(include_text=False) if part.tag in _ROW_GROUPS else ()
        for row in rows:
            if row.tag == "tr" and count < ROWS_MAX:
                count += 1
                cells = (cell for cell in row.iter(include_text=False) if cell.tag in ("td", "th"))
                yield [cell for cell, _ in zip(cells, range(COLUMNS_MAX), strict=False)]


def span_of(value: str | None) -> int:
    found = SPAN.match(value) if value else None
    return max(1, int(found[0])) if found else 1


def language_of(node: Any, known: dict[int, str]) -> str:
    """The language from the class of the listing, of the code inside, or of the boxes around it, which listings may
    share."""
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


def admonition_kind(tag: str, classes: str) -> str | None:
    """The kind of admonition in a class; a bare `note` counts only as the only word or in a box."""
    found = _ADMONITION.search(classes)
    if not found or (not _ADMONITION_BOX.search(classes) and classes.split() != [found[1]]):
        return None
    return found[1] if tag != "span" else None
