"""PURE. What a seller arranged for one line: its own price, an amount off, dates, or an item of no catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple

from cpq.domain.billing_periods import NOUNS, is_recurring, spelling
from cpq.domain.pricing.request import LineTerm, Quantity, Usage

CUSTOM = "custom"
"""The product id of a line without a product is this word and the line's number: `custom:3`."""


class CustomItem(NamedTuple):
    """What a line sells that is in no catalogue: freight, a crane, a part that was made for the customer."""

    name: str
    description: str | None = None
    unit: str | None = None
    category: str | None = None
    tax_category: str | None = None
    cost: int | None = None
    """Of a unit; unknown where it is not given."""

    @property
    def given(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}


class Commitment(NamedTuple):
    """What the buyer of a usage line commits to in each period: a quantity, or an amount in millionths."""

    quantity: Quantity | None = None
    amount: int | None = None
    per: str = ""
    """A billing period such as `monthly`, or `term`; empty for that of the price."""

    @property
    def given(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value not in (None, "")}


class AgreedLine(NamedTuple):
    """What a line of a quote changes in an agreement, and from which stored price it is priced again."""

    action: str
    """`add`, `change`, `remove` or `renew`."""
    line_id: str | None = None
    """The line of the agreement; None for one that is added."""
    agreement_id: str | None = None
    """Of that line, where it is not the agreement that the quote changes."""
    name: str | None = None
    """Of the product when it was sold, for one that is in no catalogue any more."""
    quantity_before: str | None = None
    """As text, because it may have decimals; None where nothing was there."""
    credit: int = 0
    """The value of what held from the first day on, which is given back."""
    kept: int = 0
    """The part of that value that is not given back."""
    bound: int = 0
    """The part of `credit` that would not be given back if the line ended on that day."""
    prolongs: bool = False
    """Whether it sells days after the line's old end, at prices that are kept."""
    anchored_on: str | None = None
    """The day from which the billing periods of the line are counted."""
    left: str = ""
    """What its calendar has left, exactly: `10 months`, `37/31 months`, `9 weeks`."""
    part_periods: str = ""
    until: str | None = None
    """The first day that it leaves as it is, where the line of the agreement has other terms later."""
    basis: tuple[str, int, int] | None = None
    """Quote, version and line whose stored prices it keeps; None for today's prices."""
    uplift: int = 0
    settled: int | None = None
    """The net of a line that leads back to what held before on the same day."""
    settled_price: int | None = None
    """Its price for one unit and period then: the net is rounded."""
    settled_periods: str = ""
    """Where it had no such price, the periods that keep its recurring revenue: `2/3`."""
    yearly_before: int = 0
    """The recurring revenue of a year before."""
    ignores_contract: bool = False
    """Whether a renewal takes the list price although the account has one of its own."""


class SpecialTerms(NamedTuple):
    """Prices and amounts are whole millionths."""

    unit_price: int | None = None
    """Instead of the regular price of a unit, for one period where it recurs."""
    price_reason: str | None = None
    discount_amount: int = 0
    start_date: date | None = None
    term_months: int | None = None
    end_date: date | None = None
    """Instead of the months."""
    custom: CustomItem | None = None
    """Instead of a product; `unit_price` is then its price, and needs no reason."""
    commitment: Commitment | None = None
    expected_quantity: Quantity | None = None
    """What is expected to be used in each period; only for an estimate."""
    agreed: AgreedLine | None = None
    """Where the quote changes an agreement."""

    @property
    def has_dates(self) -> bool:
        return not (self.start_date is None and self.term_months is None and self.end_date is None)

    @property
    def stored(self) -> dict[str, Any] | None:
        """As JSON values, without what was not arranged."""
        found = {name: value for name, value in self._asdict().items() if value is not None and value != _NONE[name]}
        return {name: _plain(value) for name, value in found.items()} or None

    @property
    def usage(self) -> Usage | None:
        """What the pricer takes of a usage line."""
        if self.commitment is None and self.expected_quantity is None:
            return None
        return Usage(*(self.commitment or Commitment()), self.expected_quantity)

    def term_within(self, start: date | None, months: int | None, end: date | None) -> LineTerm | None:
        """The line's dates in a quote of these dates: what it does not say, the quote says."""
        if not self.has_dates:
            return None
        starts_on = self.start_date or start
        if self.term_months is None and self.end_date is None:
            return LineTerm(None if end else months, _iso(starts_on), _iso(end))
        return LineTerm(self.term_months, _iso(starts_on), _iso(self.end_date))


NOTHING_SPECIAL = SpecialTerms()
_NONE = NOTHING_SPECIAL._asdict()
_NOT_AGREED = AgreedLine("")._asdict()

CLEARABLE = (
    "unit_price",
    "discount_amount",
    "start_date",
    "term_months",
    "end_date",
    "commitment",
    "expected_quantity",
)
"""What a change of a line can take back. The reason goes with the price."""


WHOLE_TERM = "term"
"""The period of an amount that is committed to once for the whole term."""


def period_word(text: str) -> str:
    """The billing period that a word of a caller means: `month` and `monthly` are the same."""
    found = spelling(text)
    if found is not None and is_recurring(found):
        return found
    if text.strip().casefold() != WHOLE_TERM:
        raise ValueError(f"is not one of {', '.join([*NOUNS.values(), WHOLE_TERM])}, or a number such as `2 weeks`")
    return WHOLE_TERM


def load(value: Mapping[str, Any] | None) -> SpecialTerms | None:
    """From the database, where nothing special is null."""
    if value is None:
        return None
    days = {name: date.fromisoformat(value[name]) for name in ("start_date", "end_date") if name in value}
    custom = CustomItem(**value["custom"]) if "custom" in value else None
    commitment = Commitment(**value["commitment"]) if "commitment" in value else None
    agreed = _load_agreed(value["agreed"]) if "agreed" in value else None
    return SpecialTerms(**{**value, **days, "custom": custom, "commitment": commitment, "agreed": agreed})


def _load_agreed(value: Mapping[str, Any]) -> AgreedLine:
    basis = value.get("basis")
    return AgreedLine(**{**value, "basis": tuple(basis) if basis else None})


def changed(before: SpecialTerms | None, given: Mapping[str, Any]) -> SpecialTerms | None:
    """With other terms. A price that is taken back takes its reason with it, and months replace a last day."""
    given = dict(given)
    if given.get("unit_price", 0) is None:
        given.setdefault("price_reason", None)
    if given.get("term_months") is not None:
        given.setdefault("end_date", None)
    if given.get("end_date") is not None:
        given.setdefault("term_months", None)
    if given.get("discount_amount", 0) is None:
        given["discount_amount"] = 0
    known = before.custom if before else None
    if known and isinstance(given.get("custom"), Mapping):
        given["custom"] = known._replace(**given["custom"])
    new = (before or NOTHING_SPECIAL)._replace(**given)
    return None if new == NOTHING_SPECIAL else new


def _plain(value: object) -> object:
    if isinstance(value, CustomItem | Commitment):
        return value.given
    if isinstance(value, AgreedLine):
        return {name: part for name, part in value._asdict().items() if part != _NOT_AGREED.get(name)}
    return value.isoformat() if isinstance(value, date) else value


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None
