"""PURE. Makes HTML harmless for the parser: what is never shown is cut out, and trees grown to hurt are found first.

The parser is quick on every page that people write. It is not on thousands of nested blocks (each new one looks
through all that are open), nor on formatting that is never closed (it is repeated in every later paragraph).
"""

from __future__ import annotations

import re

from cpq.web.rules.pages import names

DEPTH_MAX = 200
TAGS_UNCHECKED = 2000
"""So few tags cannot make the parser slow, whatever they are."""

REPEATED_MAX = 200_000
"""Formatting elements that the parser would have to open again, all paragraphs together."""

_HIDDEN = re.compile(
    r"<(?=[!inostx])(?:!--.*?(?:--!?>|\Z)"
    r"|(s(?:cript|tyle|vg)|no(?:script|embed|frames)|t(?:emplate|extarea|itle)|iframe|xmp|object)(?=[\s/>])"
    r".*?(?:</\1(?=[\s/>])[^>]*>?|\Z))",
    re.DOTALL | re.IGNORECASE,
)
_TITLE = re.compile(r"<title(?:\s[^<>]*)?>([^<]{0,2000})", re.IGNORECASE)
_PLAINTEXT = re.compile(r"<(?=[/pf])(/?)(?:plaintext|frameset)", re.IGNORECASE)
_TAG = re.compile(
    r"<(/?[a-zA-Z][^\s/>]*+)"
    r"(?:[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+|(?=>)))?+)*+[\s/]*+>?"
)
_ANY_TAG = re.compile(r"<[/!?]?[a-zA-Z][^<>]*>")
_BLOCK_END = re.compile(r"</?(?:p|div|br|li|tr|h[1-6]|table|ul|ol|dl|dt|dd|section|article)\b[^<>]*>", re.IGNORECASE)

_VOID = names("area base br col embed hr img input link meta param source track wbr")
_CLOSED_BY_NEXT = names("html head body p li dt dd option optgroup tr td th tbody thead tfoot colgroup a nobr form")
_WITHOUT_DEPTH = frozenset(tag for name in _VOID | _CLOSED_BY_NEXT for tag in (name, f"/{name}"))
_FORMATTING = names("b big code em font i s small strike strong tt u")
_WALLS = names("table caption marquee applet button select math foreignobject")
"""What an end tag outside of it does not reach into."""


def title_of(html: str) -> str:
    """What stands in the first title element, before it is cut out."""
    for hidden in _HIDDEN.finditer(html):
        if (hidden[1] or "").lower() == "title":
            found = _TITLE.match(hidden[0])
            return found[1] if found else ""
    return ""


def visible(html: str) -> str:
    """The page without scripts, styles, comments and whatever else is never shown as text.

    A blank takes the place of each, so that two halves of a tag cannot grow together.
    """
    shown = _HIDDEN.sub(" ", html)
    return _PLAINTEXT.sub(r"<\1pre", shown.replace("<![CDATA[", " ").replace("]]>", " "))


def is_tame(html: str) -> bool:
    """False when the tree of a page is deeper, or repeats itself more often, than pages that people write."""
    if html.count("<") <= TAGS_UNCHECKED:
        return True
    opened: list[str] = []
    formatting = repeated = 0
    for tag in _TAG.findall(html):
        name = tag if tag.islower() else tag.lower()
        if name in _WITHOUT_DEPTH:
            repeated += formatting
        elif name[0] != "/":
            opened.append(name)
            if name in _FORMATTING:
                formatting += 1
            else:
                repeated += formatting
            if len(opened) > DEPTH_MAX:
                return False
        elif opened and opened[-1] == name[1:]:
            formatting -= opened.pop() in _FORMATTING
        else:
            formatting -= _close(opened, name[1:])
        if repeated > REPEATED_MAX:
            return False
    return True


def stripped(html: str) -> str:
    """The bare text, for pages that are not tame: tags cut out, paragraphs kept as blank lines."""
    text = _ANY_TAG.sub("", _BLOCK_END.sub("\n\n", html))
    return text.replace("<", " ").replace(">", " ")


def _close(opened: list[str], name: str) -> int:
    """Close the nearest open element of that name that an end tag can reach; how much formatting goes with it."""
    for place in range(len(opened) - 1, -1, -1):
        if opened[place] == name:
            inside = opened[place + 1 :]
            # The end of formatting leaves open what was opened inside; the end of a block leaves formatting active.
            kept = inside if name in _FORMATTING else [each for each in inside if each in _FORMATTING]
            opened[place:] = kept
            return int(name in _FORMATTING)
        if opened[place] in _WALLS and name not in _WALLS:
            return 0
    return 0
