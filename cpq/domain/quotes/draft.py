"""PURE. A draft: a quote as requested, before accounts, products and prices are looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from cpq.base.text import canonical_json
from cpq.domain.pricing import terms
from cpq.domain.pricing.request import Quantity, Segment
from cpq.domain.quotes.internal import Internal

OWN_CURRENCY = ""
"""The account's own currency, which is known once the account is looked up."""


class DraftLine(NamedTuple):
    """A line as requested. Percentages are whole millionths of a percent."""

    number: int
    product_id: str
    quantity: Quantity
    discount_pct: int = 0
    attributes: Mapping[str, Any] = {}
    notes: str | None = None
    option_set: str | None = None
    ramp: tuple[Segment, ...] = ()
    selling_model: str | None = None
    """Which of the product's selling models, where it has several."""
    internal: Internal | None = None


@dataclass(frozen=True)
class Draft:
    """A quote as requested, before anything is looked up."""

    account_id: str
    currency: str
    """`OWN_CURRENCY` until the account is looked up, if none was asked for."""
    lines: tuple[DraftLine, ...]
    deal_id: str | None = None
    term_months: int | None = None
    start_date: date | None = None
    end_date: date | None = None
    """Given instead of `term_months`: the last day of a term that ends with another contract."""
    valid_until: date | None = None
    """The last day on which it can be accepted, if one was asked for; else the policies decide."""
    payment_terms: str | None = None
    notes: str | None = None
    requested_discount: int = 0
    option_set: str | None = None
    internal: Internal | None = None

    @property
    def option_sets(self) -> list[str]:
        """The names of its option sets, in the order of their first lines; empty for a quote without."""
        return list(dict.fromkeys(line.option_set for line in self.lines if line.option_set))

    @property
    def last_day(self) -> date | None:
        """The last day of the term: as given, or from start and months; None when the term is open."""
        if self.start_date is None or self.term_months is None:
            return self.end_date
        return terms.last_day(self.start_date, self.term_months)

    @property
    def text_length(self) -> int:
        """The characters of all free texts: notes, also the internal ones, and the names and values of attributes."""
        return sum(self.text_lengths.values())

    @cached_property
    def text_lengths(self) -> dict[str, int]:
        """The characters of each free text, by its place in the arguments of `quote_create`."""
        found = {"/notes": len(self.notes)} if self.notes else {}
        if self.internal:
            found["/internal_notes"] = self.internal.text_length
        for place, line in enumerate(self.lines):
            if line.notes:
                found[f"/line_items/{place}/notes"] = len(line.notes)
            if line.attributes:
                found[f"/line_items/{place}/attributes"] = _length(line.attributes)
            if line.internal:
                found[f"/line_items/{place}/internal_notes"] = line.internal.text_length
        return found

    @property
    def running_months(self) -> int | None:
        return running_months(self.term_months, self.start_date, self.end_date)

    def is_same(self, other: Draft) -> bool:
        """Whether both are equal, with the free values of lines compared as written: to Python true equals 1."""
        return self == other and canonical_json(self._attributes) == canonical_json(other._attributes)

    @cached_property
    def for_customer(self) -> Draft:
        """Without what only the seller reads."""
        if self.internal is None and all(line.internal is None for line in self.lines):
            return self
        return replace(self, internal=None, lines=tuple(line._replace(internal=None) for line in self.lines))

    @property
    def _attributes(self) -> list[object]:
        return [line.attributes for line in self.lines]


def _length(value: object) -> int:
    """The characters of a free value; a number counts as a short text."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(len(name) + _length(part) for name, part in value.items())
    return sum(map(_length, value)) if isinstance(value, list | tuple) else 8


def running_months(term_months: int | None, start_date: date | None, end_date: date | None) -> int | None:
    """The term of a quote in months; a started month counts. None when the term is open."""
    if end_date is None or start_date is None or term_months is not None:
        return term_months
    end = end_date + timedelta(days=1)
    months = terms.whole_months(start_date, end)
    return months + (terms.add_months(start_date, months) < end)
