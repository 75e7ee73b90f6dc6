"""Reads a feature model in UVL, the Universal Variability Language; what has no counterpart is listed with its line.

The file is untrusted: its size, features, constraints and the depth of formulas are bounded, and nothing recurses
deeper than those bounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from cpq.base.errors import CpqError, bad_field
from cpq.domain.feature_models.feature_model import Constraint, Feature, FeatureModel, Formula, Group, Loss, Operator

BYTES_MAX = 16 * 1024 * 1024
FEATURES_MAX = 20_000
CONSTRAINTS_MAX = 50_000
FORMULA_LENGTH_MAX = 5_000
FORMULA_DEPTH_MAX = 50


def read_uvl(file: str, text: str) -> FeatureModel:
    """The model of a file; VALIDATION_ERROR names the line that cannot be read."""
    if len(text) > BYTES_MAX:
        raise bad_field("FILE", f"{file} is larger than {BYTES_MAX // 1024**2} MB", maximum=BYTES_MAX)
    return _Reader(file).read(text)


class _Line(NamedTuple):
    number: int
    indent: int
    text: str


class _RefusalError(Exception):
    """Why a formula cannot be read; `is_wrong` when no UVL is like that, and not only nothing here."""

    def __init__(self, reason: str, *, is_wrong: bool = True) -> None:
        super().__init__(reason)
        self.is_wrong = is_wrong


@dataclass
class _Reader:
    file: str
    losses: list[Loss] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    has_imports: bool = False

    def read(self, text: str) -> FeatureModel:
        sections = self._sections(text)
        if not sections.get("features"):
            self._refuse(1, "there is no section `features` with a feature")
        root = self._features(sections["features"])
        constraints = list(self._constraints(sections.get("constraints", [])))
        return FeatureModel(root, constraints, self.losses)

    def _sections(self, text: str) -> dict[str, list[_Line]]:
        sections: dict[str, list[_Line]] = {}
        current = ""
        for line in self._lines(text):
            head = line.text.split(None, 1)[0]
            if line.indent == 0 and head in _SECTIONS:
                if head in sections:
                    self._refuse(line.number, f"the section {head} is given twice")
                current = head
                sections[head] = []
                self.has_imports |= head == "imports"
            elif current in ("features", "constraints"):
                sections[current].append(line)
            elif current == "imports":
                self.losses.append(Loss(line.number, line.text, "other files are not read"))
            elif not current:
                self._refuse(line.number, f"expected one of {', '.join(_SECTIONS)}")
        return sections

    def _lines(self, text: str) -> Iterator[_Line]:
        """The lines with content, comments and line breaks within braces taken out."""
        opened, parts = 0, list[str]()
        start = indent = 0
        for number, raw in enumerate(self._without_comments(text).split("\n"), 1):
            stripped = raw.strip()
            if not opened:
                if not stripped:
                    continue
                start, indent, parts = number, _indent(raw), []
            parts.append(stripped)
            bare = _QUOTED.sub("", stripped)
            opened += bare.count("{") + bare.count("[") + bare.count("(")
            opened -= bare.count("}") + bare.count("]") + bare.count(")")
            if opened < 0:
                self._refuse(number, "a bracket is closed that was not opened")
            if not opened:
                yield _Line(start, indent, " ".join(parts))
        if opened:
            self._refuse(start, "a bracket is not closed")

    def _without_comments(self, text: str) -> str:
        """The text with blanks instead of comments, so that every line keeps its number."""

        def blank(found: re.Match[str]) -> str:
            if found["unclosed"]:
                self._refuse(found.string.count("\n", 0, found.start()) + 1, "a comment is not closed")
            return found[0] if found[0][0] in "\"'" else "\n" * found[0].count("\n")

        return _COMMENT.sub(blank, text.replace("\r\n", "\n").replace("\r", "\n"))

    def _features(self, lines: list[_Line]) -> Feature:
        """The tree by its indentation: features and groups take turns."""
        root: Feature | None = None
        path: list[tuple[int, Feature | Group]] = []
        for line in lines:
            while path and path[-1][0] >= line.indent:
                path.pop()
            above = path[-1][1] if path else None
            if isinstance(above, Feature):
                group = self._group(line)
                above.groups.append(group)
                path.append((line.indent, group))
                continue
            feature = self._feature(line)
            if above is not None:
                above.members.append(feature)
            elif root is None:
                root = feature
            else:
                self._refuse(line.number, f"{feature.name} is a second root")
            path.append((line.indent, feature))
        assert root is not None, "a section with lines has a first feature"
        for feature in FeatureModel(root).features():
            for group in feature.groups:
                self._check_bounds(group)
        return root

    def _group(self, line: _Line) -> Group:
        if line.text in _GROUPS:
            return Group(line.text, *_GROUPS[line.text], line=line.number)
        bounds = _BOUNDS.fullmatch(line.text)
        if bounds is None:
            self._refuse(line.number, f"expected one of {', '.join(_GROUPS)} or [n..m], not {line.text[:40]!r}")
        return Group("bounds", *self._numbers(line, bounds), line=line.number)

    def _numbers(self, line: _Line, bounds: re.Match[str]) -> tuple[int, int | None]:
        low = int(bounds["low"])
        high = None if bounds["high"] == "*" else int(bounds["high"] or low)
        if high is not None and low > high:
            self._refuse(line.number, f"{line.text[:40]} has its minimum above its maximum")
        return low, high

    def _check_bounds(self, group: Group) -> None:
        if not group.members:
            self._refuse(group.line, f"the group {group.kind} has no feature")
        if group.kind == "bounds" and group.minimum > len(group.members):
            self._refuse(group.line, f"the group demands {group.minimum} of its {len(group.members)} features")

    def _feature(self, line: _Line) -> Feature:
        found = _FEATURE.match(line.text)
        if found is None:
            self._refuse(line.number, f"expected a feature, not {line.text[:40]!r}")
        name = _unquoted(found["name"])
        if name in self.names:
            self._refuse(line.number, f"{name} is given twice, first on line {self.names[name]}")
        if len(self.names) == FEATURES_MAX:
            self._refuse(line.number, f"a model has at most {FEATURES_MAX:,} features")
        self.names[name] = line.number
        if found["type"] and found["type"] != "Boolean":
            self.losses.append(Loss(line.number, f"{found['type']} {name}", "only whether it is chosen, not its value"))
        rest = line.text[found.end() :].strip()
        cardinality = _CARDINALITY.match(rest)
        if cardinality is not None:
            low, high = self._numbers(line, cardinality)
            if (low, high) != (1, 1):
                self.losses.append(Loss(line.number, f"{name} {cardinality[0]}", "a feature is chosen once or not"))
            rest = rest[cardinality.end() :].strip()
        if rest and not (rest.startswith("{") and rest.endswith("}")):
            self._refuse(line.number, f"expected attributes in braces after {name}, not {rest[:40]!r}")
        for part in _parts(rest[1:-1]):
            if part.split()[0] != "abstract":
                self.losses.append(Loss(line.number, f"{name}: {part[:60]}", "attributes of features are not read"))
        return Feature(name, line.number)

    def _constraints(self, lines: list[_Line]) -> Iterator[Constraint]:
        if len(lines) > CONSTRAINTS_MAX:
            self._refuse(lines[CONSTRAINTS_MAX].number, f"a model has at most {CONSTRAINTS_MAX:,} constraints")
        for line in lines:
            try:
                formula = _Formulas(line.text).whole()
                self._require_known(formula)
            except _RefusalError as error:
                if error.is_wrong:
                    self._refuse(line.number, str(error))
                self.losses.append(Loss(line.number, line.text[:200], str(error)))
            else:
                yield Constraint(formula, line.text, line.number)

    def _require_known(self, formula: Formula) -> None:
        waiting = [formula]
        while waiting:
            one = waiting.pop()
            waiting += one.parts
            if one.operator is None and one.name not in self.names:
                reason = f"there is no feature {one.name[:60]}"
                raise _RefusalError(reason, is_wrong=not (self.has_imports and "." in one.name))

    def _refuse(self, line: int, reason: str) -> NoReturn:
        raise bad_line(self.file, line, reason)


def bad_line(file: str, line: int, reason: str) -> CpqError:
    return bad_field("FILE", f"{file}, line {line}: {reason}; nothing was imported.", line=line)


class _Formulas:
    """Reads one constraint: `!` binds closest, then `&`, `|`, `=>` and `<=>`."""

    def __init__(self, text: str) -> None:
        if len(text) > FORMULA_LENGTH_MAX:
            raise _RefusalError(f"a constraint has at most {FORMULA_LENGTH_MAX:,} characters")
        self._tokens = list(_tokens(text))
        self._place = 0

    def whole(self) -> Formula:
        formula = self._junction(0, 0)
        if self._place < len(self._tokens):
            raise _RefusalError(f"expected an operator, not {self._tokens[self._place]}")
        return formula

    def _junction(self, level: int, depth: int) -> Formula:
        if level == len(_LEVELS):
            return self._single(depth)
        parts = [self._junction(level + 1, depth)]
        while self._next() == _LEVELS[level]:
            self._place += 1
            parts.append(self._junction(level + 1, depth))
        if len(parts) == 1:
            return parts[0]
        if _LEVELS[level] in (Operator.AND, Operator.OR):
            return Formula(_LEVELS[level], parts=tuple(parts))
        if len(parts) > FORMULA_DEPTH_MAX:
            raise _RefusalError(f"a constraint is nested at most {FORMULA_DEPTH_MAX} deep")
        formula = parts[0]
        for part in parts[1:]:
            formula = Formula(_LEVELS[level], parts=(formula, part))
        return formula

    def _single(self, depth: int) -> Formula:
        if depth == FORMULA_DEPTH_MAX:
            raise _RefusalError(f"a constraint is nested at most {FORMULA_DEPTH_MAX} deep")
        sign = self._next()
        self._place += 1
        if sign == Operator.NOT:
            return Formula(Operator.NOT, parts=(self._single(depth + 1),))
        if sign == "(":
            formula = self._junction(0, depth + 1)
            if self._next() != ")":
                raise _RefusalError("a bracket is not closed")
            self._place += 1
            return formula
        if not sign or sign in (*Operator, ")"):
            raise _RefusalError(f"expected a feature, not {sign or 'the end'}")
        return Formula(None, _unquoted(sign))

    def _next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""


def _tokens(text: str) -> Iterator[str]:
    if _ARITHMETIC.search(_IMPLICATION.sub(" ", _QUOTED.sub("q", text))):
        raise _RefusalError("only formulas of features are translated, not arithmetic", is_wrong=False)
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise _RefusalError(f"cannot be read at {text[place : place + 20]!r}")
        place = found.end()
        if found["token"]:
            yield found["token"]


def _indent(line: str) -> int:
    """A tab reaches to the next multiple of four, as in editors."""
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())


def _parts(text: str) -> list[str]:
    """What the commas outside of brackets and quotes separate."""
    parts, opened, start = [], 0, 0
    for found in _SEPARATOR.finditer(text):
        opened += {"{": 1, "[": 1, "(": 1, "}": -1, "]": -1, ")": -1}.get(found[0], 0)
        if found[0] == "," and not opened:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    return [part for part in (*parts, text[start:].strip()) if part]


def _unquoted(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name


_SECTIONS = ("namespace", "include", "imports", "features", "constraints")
_GROUPS: dict[str, tuple[int, int | None]] = {
    "mandatory": (0, None),
    "optional": (0, None),
    "or": (1, None),
    "alternative": (1, 1),
}
_NAME = r"\"[^\"\n]{1,200}\"|[^\W\d][\w.-]{0,199}|\d[\w.-]{0,199}"
_FEATURE = re.compile(rf"(?:(?P<type>Boolean|Integer|Real|String)\s+)?(?P<name>{_NAME})(?=\s|$|\{{)")
_BOUNDS = re.compile(r"\[\s*(?P<low>\d{1,6})\s*(?:\.\.\s*(?P<high>\d{1,6}|\*)\s*)?\]")
_CARDINALITY = re.compile(r"cardinality\s*" + _BOUNDS.pattern)
_LEVELS = (Operator.EQUALS, Operator.IMPLIES, Operator.OR, Operator.AND)
_TOKEN = re.compile(r"\s*(?:(?P<token><=>|=>|[!&|()]|\"[^\"\n]{1,200}\"|[^\W\d](?:[\w.]|-(?!>))*|\d[\w.-]*)|$)")
_ARITHMETIC = re.compile(r"[=<>+*/']|\s-\s|\b(?:sum|avg|len|floor|ceil)\s*\(")
_IMPLICATION = re.compile(r"<?=>")
_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_COMMENT = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|//[^\n]*|/\*.*?\*/|(?P<unclosed>/\*)", re.DOTALL)
_SEPARATOR = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|[\[\](){},]")
