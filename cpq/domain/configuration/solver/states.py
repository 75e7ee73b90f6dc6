"""The states of an option in the solver: inactive, left out, or one of its values.

A wide range of numbers and free text have too many values to list. They are cut at the constants of the rules: values
between two such landmarks behave alike in every rule, so that the landmarks stand for all of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from math import gcd

from cpq.base.money import AMOUNT_MAX, from_micro, to_micro
from cpq.domain.configuration.options import ChoiceError, Key, Option, Scalar, number
from cpq.domain.configuration.rules import is_taken

LISTED_MAX = 1_000
"""The most numbers of a range that can be listed one by one."""

SHORT_MAX = 30
"""A range of more numbers is listed only where a rule compares it with another one."""

_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class AnyText:
    """A text that no rule names, and that only the customer can give."""

    is_taken: bool


State = Scalar | AnyText


class Grid:
    """The numbers a range takes, as whole millionths: from a first one in equal steps."""

    def __init__(self, option: Option) -> None:
        row = option.row
        step = 1 if row.step is None else to_micro(row.step)
        base = to_micro(row.min) if row.min is not None and row.step is not None else 0
        if row.type == "integer":
            base, step = _whole(base, step if row.step is not None else _MICROS)
        self.step = step
        self._base = base
        limit = to_micro(AMOUNT_MAX)
        self.first = self.at_or_above(-limit if row.min is None else to_micro(row.min))
        self.last = self.at_or_below(limit if row.max is None else to_micro(row.max))

    def count(self) -> int:
        return max(0, (self.last - self.first) // self.step + 1)

    def at_or_above(self, micro: int) -> int:
        return micro + (self._base - micro) % self.step

    def at_or_below(self, micro: int) -> int:
        return micro - (micro - self._base) % self.step


def _whole(base: int, step: int) -> tuple[int, int]:
    """The first whole number, and the step between whole ones, among base + k * step."""
    common = gcd(step, _MICROS)
    if base % common:
        return 1, 2 * to_micro(AMOUNT_MAX) + 2  # None: no multiple lies within the bounds of a number.
    cycle = _MICROS // common
    count = (-base // common) * pow(step // common, -1, cycle) % cycle if cycle > 1 else 0
    return base + count * step, step * cycle


class States:
    """The states of one option, numbered in the solver's order: inactive, left out, then values, numbers ascending."""

    def __init__(self, option: Option, values: Collection[State], *, can_be_inactive: bool, is_wide: bool) -> None:
        self.option = option
        self.name = option.name
        self.is_wide = is_wide
        """Whether the values are landmarks that stand for others too."""

        self.values = tuple(values)
        self.inactive = 0 if can_be_inactive else None
        self.unset = None if option.default is not None else int(can_be_inactive)
        self.offset = int(can_be_inactive) + (option.default is None)
        self.count = self.offset + len(self.values)
        self._places: dict[Key | AnyText, int] = {
            value if isinstance(value, AnyText) else (type(value), value): place
            for place, value in enumerate(self.values, self.offset)
        }

    @property
    def is_long(self) -> bool:
        """Whether neighbours with the same answer are shown as one range."""
        return self.is_wide or (
            self.option.kind == "number" and not self.option.values and len(self.values) > SHORT_MAX
        )

    def place(self, value: Scalar) -> int:
        """The state that stands for this value of the option."""
        if (exact := self._places.get((type(value), value))) is not None:
            return exact
        if isinstance(value, Decimal):
            # Of the landmarks around it the lower one: nothing that a rule names lies between them.
            known = [other for other in self.values if isinstance(other, Decimal)]
            return self.offset + max(0, bisect_left(known, value) - 1)
        return self._places[AnyText(is_taken(value))]

    def near(self, given: object) -> Decimal | None:
        """Of a range the number next to a number that it does not take, the lower one of two."""
        if self.option.kind != "number" or self.option.values:
            return None
        grid = Grid(self.option)
        try:
            micro = to_micro(number(given))
        except ValueError:
            return None
        around = {min(max(mark, grid.first), grid.last) for mark in (grid.at_or_below(micro), grid.at_or_above(micro))}
        offered = [read for mark in sorted(around) for read in _readable(self.option, [mark])]
        nearest = min(offered, key=lambda one: abs(to_micro(one) - micro), default=None)
        return nearest if grid.count() else None

    def value(self, place: int) -> State | None:
        """None for an option that is inactive or left out."""
        return self.values[place - self.offset] if place >= self.offset else None

    def mask(self, values: Iterable[State]) -> int:
        """The states of these values as bits."""
        bits = 0
        for value in values:
            bits |= 1 << self._places[value if isinstance(value, AnyText) else (type(value), value)]
        return bits

    @cached_property
    def taken(self) -> int:
        """The states that count as taken in a choice among options."""
        return self.mask(v for v in self.values if (v.is_taken if isinstance(v, AnyText) else is_taken(v)))

    def active(self) -> int:
        return ((1 << self.count) - 1) & ~int(self.inactive is not None)

    @cached_property
    def neutral(self) -> int | None:
        """The state of an option that nobody chose: its default, or left out; None when it must be chosen."""
        if self.option.default is not None:
            return self.place(self.option.default)
        return None if self.option.row.required else self.unset

    def preferred(self) -> Iterator[int]:
        """The places in the order in which equally good answers are preferred: nothing more than needed first."""
        neutral = self.neutral
        first = [place for place in (self.inactive, neutral, self.unset) if place is not None]
        declared = [self.place(value) for value in self.option.values] or list(range(self.offset, self.count))
        yield from dict.fromkeys([*first, *declared])


def length_of_range(option: Option) -> int:
    """How many numbers a range has; 0 for another option."""
    return 0 if option.kind != "number" or option.values else Grid(option).count()


def states_of(option: Option, constants: Iterable[Scalar], *, can_be_inactive: bool, is_cut: bool) -> States:
    """The states of an option whose rules name these constants; a range is listed or cut at them."""
    values: Collection[State]
    if option.kind == "boolean" and not option.values:
        values, is_wide = (False, True), False
    elif option.values:
        numbers = option.kind == "number"
        values, is_wide = (sorted(option.values, key=Decimal) if numbers else option.values), False  # type: ignore[arg-type]
    elif option.kind == "number":
        values, is_wide = _landmarks(option, constants) if is_cut else _listed(option), is_cut
    else:
        named = dict.fromkeys(value for value in (*constants, option.default) if isinstance(value, str))
        values, is_wide = (*named, AnyText(is_taken=False), AnyText(is_taken=True)), True
    return States(option, values, can_be_inactive=can_be_inactive, is_wide=is_wide)


def _listed(option: Option) -> list[Decimal]:
    grid = Grid(option)
    return _readable(option, range(grid.first, grid.last + 1, grid.step))


def _landmarks(option: Option, constants: Iterable[Scalar]) -> list[Decimal]:
    """The bounds, and each constant with its neighbours on both sides; so has 0, at which something is taken or not."""
    grid = Grid(option)
    marks = {grid.first, grid.last}
    for constant in (*constants, option.default, Decimal(0)):
        if isinstance(constant, Decimal):
            low, high = grid.at_or_below(to_micro(constant)), grid.at_or_above(to_micro(constant))
            marks |= {low - grid.step, low, high, high + grid.step}
    return _readable(option, sorted(mark for mark in marks if grid.first <= mark <= grid.last))


def _readable(option: Option, micros: Iterable[int]) -> list[Decimal]:
    """Without numbers of more digits than an option takes."""
    numbers = []
    for micro in micros:
        try:
            read = option.read(from_micro(micro))
        except ChoiceError:
            continue
        assert isinstance(read, Decimal)
        numbers.append(read)
    return numbers
