"""PURE. Billing periods: weeks, months, quarters, half-years, years and any number of them, each with one spelling."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

ONE_TIME = "one_time"

MONTHS_MAX = 120
WEEKS_MAX = 520
"""The longest period, ten years."""


class Length(NamedTuple):
    """How long a period is: a number of months, or of weeks."""

    months: int = 0
    weeks: int = 0


NAMED = {
    "weekly": Length(weeks=1),
    "monthly": Length(1),
    "quarterly": Length(3),
    "half_yearly": Length(6),
    "yearly": Length(12),
}
"""The periods with a word of their own; others are a number and a unit, such as `2_weeks` and `18_months`."""

NOUNS = {"weekly": "week", "monthly": "month", "quarterly": "quarter", "half_yearly": "half-year", "yearly": "year"}

_UNITS = {noun.replace("-", "_"): NAMED[word] for word, noun in NOUNS.items()}
_SPELLINGS = {length: word for word, length in NAMED.items()}
_COUNTED = re.compile(r"([1-9][0-9]{0,3})_+([a-z_]+?)s?")


@lru_cache(maxsize=1024)
def length(billing_period: str) -> Length | None:
    """The length of a period by its one spelling; None for a price that does not recur."""
    if billing_period in NAMED:
        return NAMED[billing_period]
    found = _COUNTED.fullmatch(billing_period)
    long = _times(found[1], found[2]) if found else None
    return long if long and _spelled(long) == billing_period else None


def is_recurring(billing_period: str) -> bool:
    return length(billing_period) is not None


def spelling(given: str) -> str | None:
    """The one spelling of a period in anybody's words: `month`, `2 weeks`, `4 quarters`; None for anything else."""
    word = given.strip().casefold().replace("-", "_").replace(" ", "_")
    if word == ONE_TIME or word in NAMED:
        return word
    found = _COUNTED.fullmatch(word)
    long = _UNITS.get(word) or (_times(found[1], found[2]) if found else None)
    return _spelled(long) if long else None


def billing_period(given: str) -> str:
    """The one spelling of a period in a file; a refusal that lists the words for anything else."""
    found = spelling(given)
    if found is None:
        raise ValueError(
            f"is not one of {', '.join((ONE_TIME, *NAMED))}, or a number of weeks, months or years, up to ten years, "
            "such as 2_weeks or 18_months"
        )
    return found


def all_spellings() -> frozenset[str]:
    """Every period that a price can have, for checks of policies."""
    months = (_spelled(Length(months=count)) for count in range(1, MONTHS_MAX + 1))
    weeks = (_spelled(Length(weeks=count)) for count in range(1, WEEKS_MAX + 1))
    return frozenset((ONE_TIME, *months, *weeks))


def counted(billing_period: str) -> tuple[int, str]:
    """A period as a number of a unit, for words: `(2, "weeks")`, `(18, "months")`; `(1, "month")`."""
    if billing_period in NOUNS:
        return 1, NOUNS[billing_period]
    count, _, unit = billing_period.partition("_")
    return int(count), unit


def in_words(billing_period: str) -> str:
    """A period as a caller may write it: `month`, `2 weeks`."""
    count, unit = counted(billing_period)
    return unit if count == 1 else f"{count} {unit}"


def noun(billing_period: str) -> str:
    """A period inside a sentence: `month`, `period of 2 weeks`."""
    count, unit = counted(billing_period)
    return unit if count == 1 else f"period of {count} {unit}"


def _times(count: str, unit: str) -> Length | None:
    """A number of a unit, or None where the unit is unknown or the period too long."""
    one = _UNITS.get(unit)
    if one is None:
        return None
    many = Length(one.months * int(count), one.weeks * int(count))
    return many if many.months <= MONTHS_MAX and many.weeks <= WEEKS_MAX else None


def _spelled(length: Length) -> str:
    """`12 months` and `4 quarters` are both `yearly`: equal periods are equal words."""
    if length in _SPELLINGS:
        return _SPELLINGS[length]
    if length.weeks:
        return f"{length.weeks}_weeks"
    return f"{length.months // 12}_years" if length.months % 12 == 0 else f"{length.months}_months"
