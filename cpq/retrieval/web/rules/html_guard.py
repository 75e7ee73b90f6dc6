"""PURE. Makes HTML harmless for the parser: removes what is never shown, and detects hostile trees.

The parser is fast on every page that people write. It is slow on thousands of nested blocks (each new one searches all
open ones), on formatting that is never closed (it is repeated in every later paragraph), on choices in a form, on many
attributes of one element, and on many unknown element names (it searches them all).
"""

from __future__ import annotations

import re

from cpq.retrieval.web.rules.page import names

DEPTH_MAX = 200
TAGS_MAX = 1_000_000
"""Tags, attributes, and anything that begins like one: a tree of this size takes a quarter of a gigabyte."""

TAGS_UNCHECKED = 2000
"""A page with fewer tags cannot make the parser slow."""

REPEATED_MAX = 200_000
"""Formatting elements that the parser would reopen, in all paragraphs together."""

ATTRIBUTES_MAX = 100
"""Attributes of one element; people write a dozen."""

SEARCHED_MAX = 2_000_000
"""Open elements searched for misplaced end tags; people write a few of those."""

NAMES_MAX = 5_000
NAMES_UNCHECKED_CHARACTERS = 300_000
"""A shorter page has no room for a harmful number of names."""

UNSHOWN = "x-choice"
"""Elements of lists of choices; their content is not shown as text."""

_HIDDEN = re.compile(
    r"<(?=[!inostx])(?:!--.*?(?:--!?>|\Z)"
    r"|(s(?:cript|tyle|vg)|no(?:script|embed|frames)|t(?:extarea|itle)|iframe|xmp)(?=[\s/>])"
    r".*?(?:</\1(?=[\s/>])[^>]*>?|\Z))",
    re.DOTALL | re.IGNORECASE,
)
"""Without elements that can contain themselves, as templates do: the first end tag is not theirs."""

_TITLE = re.compile(r"<title(?:\s[^<>]*)?>([^<]{0,2000})", re.IGNORECASE)
_RENAMED = re.compile(r"<(?=[/dfops])(/?)(datalist|frameset|optgroup|option|plaintext|select)(?=[\s/>])", re.IGNORECASE)
_NEW_NAMES = {
    "plaintext": "pre",
    "frameset": "pre",
    "select": UNSHOWN,
    "datalist": UNSHOWN,
    "option": "wbr",
    "optgroup": "wbr",
}
_ATTRIBUTE = r"[\s/]*+([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+|(?=>)))?+"
_ONE = _ATTRIBUTE.replace("(", "(?:", 1)
_TAG = re.compile(rf"<(/?[a-zA-Z][^\s/>]*+(?:(?:{_ONE}){{{ATTRIBUTES_MAX}}})?+)(?:{_ONE})*+[\s/]*+>?")
"""The name; for a tag with too many attributes, the name and that many of them."""

_NAME = re.compile(_ATTRIBUTE)
_ATTRIBUTES = re.compile(rf"</?[a-zA-Z][^\s/>]*+((?:{_ONE})++)")
_ANY_TAG = re.compile(r"<[/!?]?[a-zA-Z][^<>]*>")
_BLOCK_END = re.compile(r"</?(?:p|div|br|li|tr|h[1-6]|table|ul|ol|dl|dt|dd|section|article)\b[^<>]*>", re.IGNORECASE)

_VOID = names("area base br col embed hr img input link meta param source track wbr")
_WHOLE = names("html body")
"""Each further one of these adds its attributes to the first, so they always count as open."""

_CLOSED_BY_NEXT = names("head p li dt dd tr td th tbody thead tfoot colgroup a nobr form")
_ENDS = frozenset(f"/{name}" for name in _VOID | _CLOSED_BY_NEXT | _WHOLE)
_WITHOUT_DEPTH = _VOID | _CLOSED_BY_NEXT | _ENDS
_FORMATTING = names("b big code em font i s small strike strong tt u")
_WALLS = names("table caption marquee applet button math foreignobject")
"""Elements that an end tag outside of them does not close."""


def title_of(html: str) -> str:
    """The content of the first title element, before it is removed."""
    for hidden in _HIDDEN.finditer(html):
        if (hidden[1] or "").lower() == "title":
            found = _TITLE.match(hidden[0])
            return found[1] if found else ""
    return ""


def visible(html: str) -> str:
    """The page without scripts, styles, comments and everything else that is never shown as text.

    A blank replaces each, so that two halves of a tag cannot join.
    """
    shown = _HIDDEN.sub(" ", html)
    shown = shown.replace("<![CDATA[", " ").replace("]]>", " ")
    return _RENAMED.sub(lambda found: f"<{found[1]}{_NEW_NAMES[found[2].lower()]}", shown)


def is_tame(html: str) -> bool:
    """False when a page has more levels, repetitions, attributes or names than pages that people write."""
    if html.count("<") > TAGS_MAX:
        return False
    tags = _TAG.findall(html)
    if max(map(len, tags), default=0) > ATTRIBUTES_MAX or _has_many_names(html, tags):
        return False
    if len(tags) <= TAGS_UNCHECKED:
        return sum(tag.lower() in _WHOLE for tag in tags) <= DEPTH_MAX
    return _is_shallow(tags)


def _has_many_names(html: str, tags: list[str]) -> bool:
    if len(html) < NAMES_UNCHECKED_CHARACTERS:
        return False
    found, count = set(tags), len(tags)
    for attributes in _ATTRIBUTES.findall(html):
        named = _NAME.findall(attributes)
        found.update(named)
        count += len(named)
    return len(found) > NAMES_MAX or count > TAGS_MAX


def _is_shallow(tags: list[str]) -> bool:
    opened: list[str] = []
    formatting = repeated = searched = 0
    for tag in tags:
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
            searched += len(opened)
            formatting -= _close(opened, name[1:])
            if searched > SEARCHED_MAX:
                return False
        if repeated > REPEATED_MAX:
            return False
    return True


def stripped(html: str) -> str:
    """The bare text of a page that is not tame: without tags, with paragraphs as blank lines."""
    text = _ANY_TAG.sub("", _BLOCK_END.sub("\n\n", html))
    return text.replace("<", " ").replace(">", " ")


def _close(opened: list[str], name: str) -> int:
    """Close the nearest open element of that name that an end tag can reach; returns how much formatting closes with
    it."""
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
