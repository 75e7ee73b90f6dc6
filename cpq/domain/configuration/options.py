"""Values of one option: reads a given value as the option's type, or gives the reason why it cannot."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Literal

from cpq.base.errors import nearest
from cpq.base.money import AMOUNT_MAX, SIGNIFICANT_DIGITS_MAX, UNIT_PRICE_DIGITS, plain, significant_digits
from cpq.base.text import clean

if TYPE_CHECKING:
    from cpq.domain.configuration.declarations import OptionRow

Scalar = bool | Decimal | str
Key = tuple[type, Scalar]
"""A value with its type, because to Python true equals 1."""

Kind = Literal["number", "boolean", "text", "mixed"]

EXACT = Context(prec=80)
"""More digits than any sum of products of bounded numbers has, so that nothing is ever rounded."""

NONE = "none"
"""The value of an option that takes nothing."""

TEXT_LENGTH_MAX = 1000
NAME_LENGTH_MAX = 64
SHOWN_LENGTH_MAX = 40
SHOWN_VALUES_MAX = 12


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a choice: its option or rule, a sentence, and the expected value."""

    option: str | None
    rule_id: str | None
    message: str
    allowed: tuple[Scalar, ...] | None = None
    minimum: Decimal | None = None
    maximum: Decimal | None = None
    nearest: tuple[Scalar, ...] | None = None

    def details(self) -> dict[str, object]:
        """For the `details` of an error: the known fields, tuples as lists."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in known.items() if v is not None}


class ChoiceError(ValueError):
    """A value that its option cannot take."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Option:
    """One option, ready to read values. Text is read as a number only if JSON would read it so."""

    def __init__(self, name: str, row: OptionRow) -> None:
        """ValueError when the option contradicts itself."""
        self.name = name
        self.row = row
        self.kind = _kind(row)
        if self.kind != "number" and not row.min is row.max is row.step is None:
            raise ValueError("min, max and step belong to numbers")
        if row.step is not None and not row.step:
            raise ValueError("a step is more than 0")
        self.values: tuple[Scalar, ...] = ()
        self._listed: dict[Key, Scalar] = {}
        self.values = tuple([self.read(value) for value in row.values])
        self._listed = {(type(value), value): value for value in self.values}
        if len(self._listed) < len(self.values):
            raise ValueError("a value is listed twice")
        whole = [value for value in self.values if isinstance(value, Decimal) and value == int(value)]
        self._listed |= {(int, value): value for value in whole}
        self.default = None if row.default is None else self.read(row.default)

    def read(self, value: object) -> Scalar:
        """The value as the option's type; ChoiceError when it has another type or is not offered."""
        try:
            if (listed := self._listed.get((type(value), value))) is not None:  # type: ignore[arg-type] # Or unhashable.
                return listed
        except TypeError:
            pass  # A list, an object, a signalling NaN: the reader has the message for it.
        try:
            typed = _READERS[self.kind](value)
        except ValueError as error:
            raise ChoiceError(self._refuse(f"{self.name} {error}.")) from None
        if (type(typed), typed) not in self._listed and (problem := self._beyond(typed)):
            raise ChoiceError(problem)
        return typed

    def missing(self) -> Problem:
        """The problem of a required option that was left out."""
        return self._refuse(f"{self.name} is required.")

    def possible(self) -> tuple[Scalar, ...]:
        """Every possible value, if they can be listed."""
        return self.values or ((True, False) if self.kind == "boolean" else ())

    def _beyond(self, typed: Scalar) -> Problem | None:
        """Check a value that is not listed; listed values were checked at compile time."""
        if self.values:
            listed = one_of(self.values)
            return self._refuse(f"{self.name} is {listed}, not {shown(typed)}.", self._like(typed))
        if self.row.type == "integer" and isinstance(typed, Decimal) and typed != typed.to_integral_value():
            around = self._stepping(typed, self.row.step or Decimal(1))
            return self._refuse(f"{self.name} is a whole number, not {shown(typed)}.", around)
        return self._out_of_range(typed) if isinstance(typed, Decimal) else None

    def _out_of_range(self, value: Decimal) -> Problem | None:
        low, high, step = self.row.min, self.row.max, self.row.step
        if low is not None and value < low:
            return self._refuse(f"{self.name} is at least {shown(low)}, not {shown(value)}.")
        if high is not None and value > high:
            return self._refuse(f"{self.name} is at most {shown(high)}, not {shown(value)}.")
        if step is not None and EXACT.remainder(EXACT.subtract(value, low or Decimal(0)), step):
            steps = f"steps of {shown(step)} from {shown(low or Decimal(0))}"
            return self._refuse(f"{self.name} goes in {steps}, not {shown(value)}.", self._stepping(value, step))
        return None

    def _stepping(self, value: Decimal, step: Decimal) -> tuple[Scalar, ...]:
        """The two numbers on a step around this one, if they are in range."""
        base = self.row.min if self.row.min is not None and self.row.step is not None else Decimal(0)
        below = EXACT.subtract(value, EXACT.remainder(EXACT.subtract(value, base), step))
        below = EXACT.subtract(below, step) if below > value else below
        around = (plain(below), plain(EXACT.add(below, step)))
        low, high = self.row.min, self.row.max
        return tuple(n for n in around if (low is None or n >= low) and (high is None or n <= high))

    def _like(self, typed: Scalar) -> tuple[Scalar, ...]:
        """The listed values most like this one: a word spelt alike, the next smaller and larger number."""
        if isinstance(typed, str):
            words = [value for value in self.values if isinstance(value, str)]
            return tuple(nearest(typed, words)) if len(typed) <= NAME_LENGTH_MAX else ()
        if not isinstance(typed, Decimal):
            return ()
        numbers = sorted(value for value in self.values if isinstance(value, Decimal))
        place = bisect(numbers, typed)
        return tuple(numbers[max(0, place - 1) : place + 1])

    def _refuse(self, message: str, like: tuple[Scalar, ...] = ()) -> Problem:
        return Problem(
            self.name, None, message, self.possible() or None, self.row.min, self.row.max, nearest=like or None
        )


def keys(values: Iterable[Scalar]) -> frozenset[Key]:
    return frozenset((type(value), value) for value in values)


def number(value: object) -> Decimal:
    """A bounded exact number; ValueError with the reason. A binary float is read as its shortest decimal text."""
    if isinstance(value, float):
        value = repr(value)
    if isinstance(value, str) and len(value) <= SHOWN_LENGTH_MAX and _JSON_NUMBER.fullmatch(value):
        value = Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError(f"is a number, not {shown(value)}")
    # Compared before the conversion, which is slow for an int of very many digits.
    if isinstance(value, int) and not -_WHOLE_MAX <= value <= _WHOLE_MAX:
        raise ValueError(f"is beyond {_WHOLE_MAX}")
    exact = Decimal(value)
    if not exact.is_finite():
        raise ValueError("is a finite number")
    if exact.copy_abs() > AMOUNT_MAX:  # Not abs(), which overflows.
        raise ValueError(f"is beyond {_WHOLE_MAX}")
    if significant_digits(exact) > SIGNIFICANT_DIGITS_MAX:
        raise ValueError(f"has more than {SIGNIFICANT_DIGITS_MAX} significant digits")
    if exact != exact.quantize(_MICRO, context=EXACT):
        raise ValueError(f"has more than {UNIT_PRICE_DIGITS} decimals")
    return plain(exact)


def text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"is text, not {shown(value)}")
    if len(value) > TEXT_LENGTH_MAX:
        raise ValueError(f"has more than {TEXT_LENGTH_MAX} characters")
    return clean(value)


def scalar(value: object) -> Scalar:
    """Any single value, typed as it is: no text becomes a number here."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int | float | Decimal):
        return number(value)
    raise ValueError(f"is a single value, not {shown(value)}")


def spelled(value: object) -> str:
    """A choice in the spelling of a price's surcharges: `208`, `true`, `water`."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)


def shown(value: object) -> str:
    """The value for a sentence: short, on one line, spelled as in JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value[:SHOWN_LENGTH_MAX]) + ("…" if len(value) > SHOWN_LENGTH_MAX else "")
    if isinstance(value, Decimal):
        return str(value)[:SHOWN_LENGTH_MAX]
    if isinstance(value, int):
        return str(value) if -_WHOLE_MAX <= value <= _WHOLE_MAX else "a huge number"
    return "null" if value is None else "an object" if isinstance(value, Mapping) else "a list"


def one_of(values: tuple[Scalar, ...]) -> str:
    """`'a'`, `1 or 2`, `one of 1, 2, 3`."""
    words = [shown(value) for value in values[:SHOWN_VALUES_MAX]]
    if len(values) > SHOWN_VALUES_MAX:
        words.append("…")
    return f"one of {', '.join(words)}" if len(words) > 2 else " or ".join(words)


def _boolean(value: object) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise ValueError(f"is true or false, not {shown(value)}")
    return value


def _kind(row: OptionRow) -> Kind:
    """An enum whose values are all of one type reads as that type does."""
    if row.type != "enum":
        return _KINDS[row.type]
    types = {type(value) for value in row.values}
    return _ENUM_KINDS[types.pop()] if len(types) == 1 else "mixed"


_KINDS: dict[str, Kind] = {"integer": "number", "number": "number", "boolean": "boolean", "text": "text"}
_ENUM_KINDS: dict[type, Kind] = {Decimal: "number", bool: "boolean", str: "text"}
_READERS: dict[Kind, Callable[[object], Scalar]] = {
    "number": number,
    "boolean": _boolean,
    "text": text,
    "mixed": scalar,
}
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_WHOLE_MAX = int(AMOUNT_MAX)
_MICRO = Decimal(10) ** -UNIT_PRICE_DIGITS
