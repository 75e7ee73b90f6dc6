"""Units of power, pressure, flow, volume and weight, and exact conversion between them.

The factors are legal definitions as fractions: the pound is 0.45359237 kg, the inch 0.0254 m, gravity 9.80665 m/s².
A horsepower is the mechanical one of 550 ft·lbf/s, as catalogues in feet and pounds mean it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from heapq import nsmallest
from itertools import product
from typing import NamedTuple

DIGITS_SHOWN = 5
NUMBER_LENGTH_MAX = 30

NEAR_SHARE = Fraction(8, 100)
"""How far a product's own number may be from a converted one to be searched instead: motors are rated in round numbers
of either unit, and a 4 kW motor is the 5 HP one, 7 % off."""

VARIANTS_MAX = 4
"""How many forms of a query are searched when products have several numbers near its amounts."""

_FOOT, _INCH = Fraction("0.3048"), Fraction("0.0254")
_POUND = Fraction("0.45359237")
_POUND_FORCE = _POUND * Fraction("9.80665")


@dataclass(frozen=True, order=True)
class Unit:
    name: str
    kind: str
    size: Fraction
    """In watts, pascals, cubic metres a second, cubic metres or kilograms."""


@dataclass(frozen=True)
class Amount:
    number: Decimal
    unit: Unit

    def __str__(self) -> str:
        return f"{_plain(self.number)} {self.unit.name}"

    def in_unit(self, unit: Unit) -> Fraction:
        """The exact number in another unit of the same kind."""
        if unit.kind != self.unit.kind:
            raise ValueError(f"{self.unit.name} is no unit of {unit.kind}")
        return Fraction(self.number) * self.unit.size / unit.size


class Converted(NamedTuple):
    amount: Amount
    unit: Unit
    number: Fraction
    near: tuple[Decimal, ...]
    """The numbers that products have in this unit near this one, the nearest first."""

    @property
    def shown(self) -> str:
        return f"{shown(self.number)} {self.unit.name}"

    def text(self, choice: int = 0) -> str:
        """What is searched instead of the amount: the nearest number of products, or the next, if there is one."""
        return f"{_plain(self.near[choice])} {self.unit.name}" if self.near else self.shown


_TABLE: tuple[tuple[Unit, str], ...] = (
    (Unit("hp", "power", 550 * _FOOT * _POUND_FORCE), r"b?hp|horse\s?powers?"),
    (Unit("kW", "power", Fraction(1000)), r"kw|kilowatts?"),
    (Unit("W", "power", Fraction(1)), r"w|watts?"),
    (Unit("PS", "power", 75 * Fraction("9.80665")), r"ps"),
    (Unit("psi", "pressure", _POUND_FORCE / _INCH**2), r"psig?"),
    (Unit("bar", "pressure", Fraction(100_000)), r"bar\(g\)|barg?"),
    (Unit("mbar", "pressure", Fraction(100)), r"mbar"),
    (Unit("kPa", "pressure", Fraction(1000)), r"kpa"),
    (Unit("MPa", "pressure", Fraction(1_000_000)), r"mpa"),
    (Unit("cfm", "flow", _FOOT**3 / 60), r"[sai]?cfm|(?:ft³|ft\^?3|cu\.?\s?ft\.?)\s?/\s?min"),
    (Unit("m³/min", "flow", Fraction(1, 60)), r"(?:m³|m\^?3|cbm)\s?/\s?min"),
    (Unit("m³/h", "flow", Fraction(1, 3600)), r"(?:m³|m\^?3|cbm)\s?/\s?hr?"),
    (Unit("l/s", "flow", Fraction(1, 1000)), r"(?:l|lit(?:re|er)s?)\s?(?:/|per)\s?s(?:ec(?:ond)?)?|lps"),
    (Unit("l/min", "flow", Fraction(1, 60_000)), r"(?:l|lit(?:re|er)s?)\s?(?:/|per)\s?min(?:ute)?|lpm"),
    (Unit("gal", "volume", 231 * _INCH**3), r"gal(?:lons?|\.)?"),
    (Unit("l", "volume", Fraction(1, 1000)), r"l|lit(?:re|er)s?"),
    (Unit("m³", "volume", Fraction(1)), r"m³|m\^?3|cbm"),
    (Unit("lb", "weight", _POUND), r"lbs?|pounds?"),
    (Unit("kg", "weight", Fraction(1)), r"kgs?|kilograms?"),
)

UNITS = {unit.name: unit for unit, _ in _TABLE}

_NUMBER = r"\d{1,20}(?:[.,]\d{1,20})*"
_NAMES = "|".join(f"(?P<u{place}>{pattern})" for place, (_, pattern) in enumerate(_TABLE))
_UNIT = re.compile(_NAMES, re.IGNORECASE)
_AMOUNT = re.compile(rf"\s*(?P<number>\+?{_NUMBER})[\s-]?(?:{_NAMES})\s*", re.IGNORECASE)
_IN_TEXT = re.compile(
    rf"(?<![\w.,])(?:(?P<low>{_NUMBER})\s?(?:-|–|to|\.\.)\s?)?(?P<number>{_NUMBER})[\s-]?(?:{_NAMES})(?![\w/])",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def unit_named(text: str | None) -> Unit | None:
    """The unit that a text names, in any of its spellings."""
    found = _UNIT.fullmatch((text or "").strip())
    return _unit_of(found) if found else None


def read(text: str) -> Amount | None:
    """The amount that a text is, such as `75 kW`; None when it is anything else."""
    found = _AMOUNT.fullmatch(text)
    number = _number(found["number"].removeprefix("+")) if found else None
    return None if found is None or number is None else Amount(number, _unit_of(found))


def kinds(text: str) -> set[str]:
    """What the amounts in a text measure."""
    return {_unit_of(found).kind for found in _IN_TEXT.finditer(text)}


def converted(text: str, stated: Mapping[Unit, Mapping[Decimal, int]]) -> tuple[list[str], list[Converted]]:
    """A query with its amounts in the units of the products, and what was converted; with the nearest numbers that
    products have, then with the next ones.

    `stated` has the numbers of all products by unit, and how often each is stated. An amount stays when it is in the
    unit that products of its kind mostly use, or when a product states exactly that.
    """
    usual = {unit.kind: _usual(unit.kind, stated) for unit in stated}
    changed: dict[int, list[Converted]] = {}
    for found in _IN_TEXT.finditer(text):
        unit = _unit_of(found)
        target = usual.get(unit.kind)
        read_numbers = [_number(found[name]) for name in ("low", "number") if found[name]]
        if target is None or target == unit or None in read_numbers:
            continue
        amounts = [Amount(number, unit) for number in read_numbers if number is not None]
        if not any(amount.number in stated.get(unit, ()) for amount in amounts):
            changed[found.start()] = [_changed(amount, target, stated[target]) for amount in amounts]
    made = list(dict.fromkeys(change for changes in changed.values() for change in changes))
    return ([_written(text, changed, choices) for choices in _choices(made)] if made else []), made


def _choices(made: Iterable[Converted]) -> list[dict[Converted, int]]:
    """Which of its near numbers each amount becomes: the nearest of all first."""
    known = list(made)
    ranked = product(*(range(min(VARIANTS_MAX, max(1, len(one.near)))) for one in known))
    best = nsmallest(VARIANTS_MAX, ranked, key=lambda places: (sum(places), places))
    return [dict(zip(known, places, strict=True)) for places in best]


def _written(text: str, changed: Mapping[int, list[Converted]], choices: Mapping[Converted, int]) -> str:
    def other(found: re.Match[str]) -> str:
        changes = changed.get(found.start())
        return " to ".join(one.text(choices[one]) for one in changes) if changes else found[0]

    return _IN_TEXT.sub(other, text)


def shown(number: Fraction) -> str:
    """A number for people: five digits, or all digits before the point."""
    digits = max(DIGITS_SHOWN, len(str(abs(int(number)))))
    return _plain(Context(prec=digits).divide(Decimal(number.numerator), Decimal(number.denominator)))


def _changed(amount: Amount, unit: Unit, values: Iterable[Decimal]) -> Converted:
    number = amount.in_unit(unit)
    near = sorted((abs(Fraction(value) - number), value) for value in values)
    return Converted(amount, unit, number, tuple(value for off, value in near if off <= NEAR_SHARE * number))


def _usual(kind: str, stated: Mapping[Unit, Mapping[Decimal, int]]) -> Unit | None:
    """The unit in which most numbers of a kind are stated."""
    used = {unit: sum(values.values()) for unit, values in stated.items() if unit.kind == kind}
    return min((unit for unit in used if used[unit]), key=lambda unit: (-used[unit], unit.name), default=None)


def _unit_of(found: re.Match[str]) -> Unit:
    return next(unit for place, (unit, _) in enumerate(_TABLE) if found[f"u{place}"])


def _number(text: str) -> Decimal | None:
    """1,200 is twelve hundred, and 7,5 is seven and a half."""
    plain = text.replace(",", "") if _GROUPED.fullmatch(text) else text.replace(",", ".")
    return Decimal(plain) if plain.count(".") <= 1 and len(plain) <= NUMBER_LENGTH_MAX else None


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
