"""PURE. Markdown by its headings: every heading is a section with its breadcrumb; front matter is parsed safely."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import islice, pairwise
from typing import Any

import yaml
from markdown_it import MarkdownIt

JOINT = " > "
HEADING_LENGTH_MAX = 200
HEADINGS_MAX = 10_000
"""More than a manual has; each takes 0.1 ms to read and index."""

FRONT_MATTER_LINES_MAX = 200
FRONT_MATTER_VALUES_MAX = 500
"""Limit for all values together: a few lines of YAML can expand to billions."""

_MAY_BE_HEADING = re.compile(r" {0,3}(?:#|[=-]+\s*$)")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_BLOCKS = MarkdownIt("commonmark").disable("inline")
_YAML: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text up to the next heading, as written."""

    heading_path: str
    """The headings above it and its own; unique in a page."""
    heading: str
    level: int
    """1 to 6; 0 for text before the first heading."""
    content: str


@dataclass(frozen=True, slots=True)
class Document:
    sections: list[Section]
    front_matter: dict[str, Scalar | list[Scalar]]
    problem: str | None
    """What is wrong with the front matter, which is then part of the text, or with the number of headings."""

    @property
    def title(self) -> str | None:
        return next((section.heading for section in self.sections if section.level == 1), None)


def read(text: str, name: str) -> Document:
    """The sections of a page in order; `name` is the heading of a page without headings."""
    lines = _LINE.findall(text)
    front_matter, body_start, problem = _front_matter(lines)
    # Front matter that cannot be parsed is text: nothing of a page is lost.
    first = "".join(lines[:body_start]) if problem else ""
    body = lines[body_start:]
    read_to = next(islice((n for n, line in enumerate(body) if _MAY_BE_HEADING.match(line)), HEADINGS_MAX, None), None)
    if read_to is not None:
        problem = problem or f"has more than {HEADINGS_MAX:,} headings; from line {body_start + read_to + 1} on as one"
    return Document(list(_sections(first, body, name, read_to)), front_matter, problem)


def front_matter(text: str) -> dict[str, Scalar | list[Scalar]]:
    """The front matter of a text; empty when it is missing or cannot be parsed."""
    return _front_matter(_LINE.findall(text))[0] if text.startswith("---") else {}


def listed(value: Scalar | list[Scalar]) -> list[str]:
    """A value of the front matter as words: `a, b`, `a b` and a list are equal."""
    parts = value if isinstance(value, list) else re.split(r"[,\s]+", str(value or ""))
    return [str(part).strip() for part in parts if part is not None and str(part).strip()]


def _sections(before: str, lines: list[str], name: str, read_to: int | None) -> Iterator[Section]:
    """Headings are read up to `read_to`; the rest belongs to the last section."""
    found = list(_headings("".join(lines[:read_to])))
    seen: dict[str, int] = {}
    starts = [start for start, _, _ in found]
    top = before + "".join(lines[: starts[0] if starts else len(lines)])
    if top.strip():
        yield Section(_unique(name, name, seen)[1], name, 0, top.strip("\r\n"))
    above: list[tuple[int, str]] = []
    for (start, level, heading), end in zip(found, [*starts[1:], len(lines)], strict=False):
        while above and above[-1][0] >= level:
            above.pop()
        crumbs = [crumb for _, crumb in above]
        heading = heading or "(untitled)"
        crumb, path = _unique(heading, JOINT.join([*crumbs, heading]), seen)
        above.append((level, crumb))
        yield Section(path, heading, level, "".join(lines[start:end]).rstrip())


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Line, level and words of every heading outside of lists and quotations."""
    tokens = _BLOCKS.parse(text)
    for opening, inside in pairwise(tokens):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            words = " ".join(inside.content.split())
            # A stray line of dashes turns the whole paragraph above it into a heading.
            if len(words) <= HEADING_LENGTH_MAX:
                yield opening.map[0], int(opening.tag[1:]), words


def _unique(crumb: str, path: str, seen: dict[str, int]) -> tuple[str, str]:
    """The second heading of the same name under the same headings is `name (2)`, and so on."""
    if path not in seen:
        seen[path] = 1
        return crumb, path
    while True:
        seen[path] += 1
        mark = f" ({seen[path]})"
        if path + mark not in seen:
            seen[path + mark] = 1
            return crumb + mark, path + mark


def _front_matter(lines: list[str]) -> tuple[dict[str, Scalar | list[Scalar]], int, str | None]:
    """The values, the first line of the body, and what is wrong."""
    if not lines or lines[0].rstrip() != "---":
        return {}, 0, None
    end = next((n for n, line in enumerate(lines[1:FRONT_MATTER_LINES_MAX], 1) if line.rstrip() in ("---", "...")), 0)
    if not end:
        return {}, 0, None
    try:
        found = yaml.load("".join(lines[1:end]), _YAML)  # noqa: S506 - a safe loader, in C where there is one
        values = _plain_values(found) if isinstance(found, dict) else None
    # PyYAML raises any of these for a tag that does not fit its value: `!!bool maybe`, `!!int ''`.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark else ""
        return {}, end + 1, f"the front matter is not YAML{where}"
    if values is None:
        return {}, 0, None  # A paragraph between two rules.
    return values, end + 1, None


def _plain_values(found: dict[Any, Any]) -> dict[str, Scalar | list[Scalar]]:
    """Scalars and lists of scalars; other values are no use to a search."""
    values: dict[str, Scalar | list[Scalar]] = {}
    left = FRONT_MATTER_VALUES_MAX
    for name, value in found.items():
        parts = value[: left + 1] if isinstance(value, list) else [value]
        left -= len(parts)
        if left < 0:
            break
        plain = [_scalar(part) for part in parts if isinstance(part, Scalar | date)]
        if len(plain) == len(parts):
            values[str(_scalar(name))] = plain if isinstance(value, list) else plain[0]
    return values


def _scalar(value: object) -> Scalar:
    """A value that JSON can express."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return str(value).encode("utf-8", "replace").decode()
