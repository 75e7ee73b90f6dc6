"""PURE. Path patterns: `*`, `?` and `[a-z]` within a name, `**` across folders, `{a,b}`."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate

CHOICES_MAX = 100


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that checks a path. A pattern without a wildcard is a file, or a folder and all below it.

    An invalid pattern matches itself. The time is proportional to pattern and path.
    """
    pattern = relative(pattern)
    if not re.search(r"[*?\[{]", pattern):
        folder = pattern.rstrip("/")
        return lambda path: path == folder or path.startswith(f"{folder}/") or not folder
    choices = [[_part(part) for part in choice.split("/")] for choice in _choices(pattern)]
    return lambda path: any(_matches(parts, path.split("/")) for parts in choices)


def relative(path: str) -> str:
    """The path without leading `./` and `/`."""
    while path.startswith(("./", "/")):
        path = path.removeprefix(".").lstrip("/")
    return path


def _matches(parts: list[re.Pattern[str] | None], names: list[str]) -> bool:
    reached = {0}
    for part in parts:
        if part is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {place + 1 for place in reached if place < len(names) and part.match(names[place])}
        if not reached:
            return False
    return len(names) in reached


def _part(part: str) -> re.Pattern[str] | None:
    """The expression for one part of a path; None means any folders."""
    if part == "**":
        return None
    try:
        return re.compile(translate(part))
    except re.error:
        return re.compile(re.escape(part) + r"\Z")


def _choices(pattern: str) -> list[str]:
    """The pattern with every choice of its braces; unclosed braces, or too many, stay as they are."""
    found = [""]
    place = 0
    for group in re.finditer(r"\{([^{}]*,[^{}]*)\}", pattern):
        words = group[1].split(",")
        if len(found) * len(words) > CHOICES_MAX:
            break
        found = [start + pattern[place : group.start()] + word for start in found for word in words]
        place = group.end()
    return [start + pattern[place:] for start in found]
