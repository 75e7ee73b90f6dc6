"""PURE. Separates text from menus: the words of a link say where it leads, and are no evidence for an answer.

While a page is read, the words of each link stand between two marks. A block of nothing but links is then dropped, and
the marks of the others are removed.
"""

from __future__ import annotations

import re

from cpq.retrieval.web.rules.page import names, tidy

LABEL_CHARACTERS_MAX = 120
BEGINNING_CHARACTERS = 100

MENU_LINES_MIN = 3
MENU_SHARE = 0.75
"""A list with this share of lines that are only links is a menu; its other lines stay."""

MARKDOWN_LINK = re.compile(
    r"(?<!!)\[([^\[\]\n]{1,200}+)\]\(\s{0,9}<?([^()\s<>]{1,500}+)>?[^()\n]{0,200}+\)"
)  # It never reads a character twice: a hostile page could otherwise make it very slow.

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
"""Unicode keeps both for use inside programs; no text has them."""

_MARKED = re.compile(f"{_OPEN}[^{_OPEN}{_CLOSE}]*+{_CLOSE}")
_SENTENCE = re.compile(r"\S+(?: \S+){5,}[.!]$|[.!?] +\S")
_WORD = re.compile(r"[^\W_]+")
_LEADER = re.compile(r"(?:(?<!\.)\.{3,}+|…) ?\d{0,4}+$")
"""The dots and the number of a page in a table of contents."""

_LIST_SIGN = re.compile(r"(?:[-*+]|\d{1,4}[.)])(?: |$)")

_POINTING = names(
    "a all also an and at back click download for from go here in learn less link links more next of on online open or"
    " our page pages pdf previous read related see show skip the this to top up view visit"
    " alle alles auch das dem den der die hier im in mehr nach oben oder siehe und weiter zu zum zur zurück"
)
"""Words around links that say nothing by themselves."""


def as_label(text: str) -> str:
    """The words of a link between marks; whole sentences are text, wherever they lead."""
    words = text.strip()
    if not words or len(words) > LABEL_CHARACTERS_MAX or _SENTENCE.search(words):
        return text
    before, _, after = text.partition(words)
    return f"{before}{_OPEN}{words}{_CLOSE}{after}"


def has_marks(text: str) -> bool:
    return _OPEN in text


def without_marks(text: str) -> str:
    return text.replace(_OPEN, "").replace(_CLOSE, "") if _OPEN in text else text


def tidy_marked(text: str) -> str:
    """One line, like `tidy`; as fast for plain text that has marks."""
    if _OPEN not in text:
        return tidy(text)
    collapsed = " ".join(text.split())
    plain = without_marks(collapsed)
    return collapsed if plain.isascii() and plain.isprintable() else tidy(collapsed)


def without_menu(text: str) -> str:
    """A block without marks, and without its lines that are only links if it has little else; empty for a menu."""
    if _OPEN not in text:
        return text
    lines = text.split("\n")
    others = [line for line in lines if not _is_only_links(line)]
    links = len(lines) - len(others)
    is_menu = not any(map(str.strip, others)) or (links >= MENU_LINES_MIN and links >= MENU_SHARE * len(lines))
    return without_marks("\n".join(others if is_menu else lines))


def is_markdown_menu(text: str) -> bool:
    """Whether a block of Markdown has nothing but links."""
    return "](" in text and not without_menu(MARKDOWN_LINK.sub(lambda found: as_label(found[1]), text))


def _is_only_links(line: str) -> bool:
    if _OPEN not in line:
        return False
    # Blanks are collapsed first: hostile pages have long runs of them, which expressions read again and again.
    around = " ".join(_MARKED.sub(" ", line).split())
    sign = _LIST_SIGN.match(around)
    around = around[sign.end() :] if sign else around
    beginning = around[:BEGINNING_CHARACTERS]
    if len(around) > len(beginning) and not _is_pointing(beginning):  # A shortcut for long text.
        return False
    return _is_pointing(_LEADER.sub("", around))


def _is_pointing(text: str) -> bool:
    return _POINTING.issuperset(_WORD.findall(text.lower()))
