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
from cpq.domain.quotes.special_terms import NOTHING_SPECIAL, AgreedLine, CustomItem, SpecialTerms

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
    special: SpecialTerms | None = None

    @property
    def custom(self) -> CustomItem | None:
        """What it sells instead of a product."""
        return self.special.custom if self.special else None

    @property
    def agreed(self) -> AgreedLine | None:
        """What it changes in an agreement."""
        return self.special.agreed if self.special else None


class AgreementChange(NamedTuple):
    """The agreement that a quote changes, as it was when the quote was made."""

    kind: str
    """`amendment`, `renewal` or `cancellation`."""
    agreement_id: str
    sequence: int
    """The number of orders that it was made from; the quote is void once there are more."""
    effective: date
    also: tuple[tuple[str, int], ...] = ()
    """Other agreements that are renewed into this one, with their numbers of orders."""
    arguments: Mapping[str, Any] = {}
    """Of the call that made the quote, so that it can be made again."""
    end: date | None = None
    """The last day of the agreement before the change; None without an end."""
    uplift: int = 0

    @property
    def bases(self) -> dict[str, int]:
        """The agreements that it rests on, with their numbers of orders."""
        return {self.agreement_id: self.sequence, **dict(self.also)}

    @property
    def stored(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            **self._asdict(),
            "effective": self.effective.isoformat(),
            "end": self.end.isoformat() if self.end else None,
            "also": [list(one) for one in self.also],
            "arguments": dict(self.arguments),
        }


def load_change(value: Mapping[str, Any] | None) -> AgreementChange | None:
    """From the database, where a quote that changes no agreement has null."""
    if value is None:
        return None
    end = date.fromisoformat(value["end"]) if value["end"] else None
    also = tuple((id_, number) for id_, number in value["also"])
    return AgreementChange(**{**value, "effective": date.fromisoformat(value["effective"]), "end": end, "also": also})


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
    requested_amount: int = 0
    """The discount on the whole quote as an amount, instead of a percentage."""
    option_set: str | None = None
    internal: Internal | None = None
    agreement: AgreementChange | None = None
    """Where it changes what the customer owns."""

    @property
    def option_sets(self) -> list[str]:
        """The names of its option sets, in the order of their first lines; empty for a quote without."""
        return list(dict.fromkeys(line.option_set for line in self.lines if line.option_set))

    @cached_property
    def custom_lines(self) -> tuple[DraftLine, ...]:
        """Lines that sell what is in no catalogue; a plain line is asked nothing, because there are many."""
        return tuple([line for line in self.lines if line.special is not None and line.special.custom])

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
            if line.special and line.special.custom:
                found[f"/line_items/{place}/custom"] = _length(line.special.custom.given)
            if line.special and line.special.price_reason:
                found[f"/line_items/{place}/price_reason"] = len(line.special.price_reason)
            if line.internal:
                found[f"/line_items/{place}/internal_notes"] = line.internal.text_length
        return found

    @property
    def running_months(self) -> int | None:
        """The term in months, to the end of the line that runs longest; None when all are open."""
        found = [running_months(self.term_months, self.start_date, self.end_date)]
        for line in self.lines:
            if line.special and line.special.has_dates:
                own = line.special
                found += [own.term_months, running_months(None, own.start_date or self.start_date, own.end_date)]
                found.append(running_months(None, self.start_date, self.last_day_of(line)))
        return max([months for months in found if months is not None], default=None)

    def months_of(self, line: DraftLine) -> int | None:
        """The months of a line's term; None where it has none or another end."""
        if line.special is None or not line.special.has_dates:
            return self.term_months
        if line.special.term_months is not None:
            return line.special.term_months
        start, end = line.special.start_date or self.start_date, self.last_day_of(line)
        if start is None or end is None:
            return self.term_months
        months = terms.whole_months(start, end + timedelta(days=1))
        return months if terms.last_day(start, months) == end else None

    def last_day_of(self, line: DraftLine) -> date | None:
        """The last day of a line: its own, or that of the quote."""
        own = line.special or NOTHING_SPECIAL
        start = own.start_date or self.start_date
        if own.term_months is not None and start is not None:
            return terms.last_day(start, own.term_months)
        return own.end_date or self.last_day

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
