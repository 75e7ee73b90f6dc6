"""PURE. A stored quote: its root, one of its versions, that version's lines, and the prices of its option sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from cpq.domain.pricing import request as pricing_request
from cpq.domain.pricing import result as pricing_result
from cpq.domain.pricing.rate_cards import RateCard
from cpq.domain.pricing.request import Quantity, Request, Segment, mean_quantity
from cpq.domain.pricing.result import PricedQuote, unit_price
from cpq.domain.quotes.draft import AgreementChange, Draft, DraftLine
from cpq.domain.quotes.internal import Internal
from cpq.domain.quotes.lifecycle import QuoteStatus, VersionStatus, status_at
from cpq.domain.quotes.special_terms import SpecialTerms


@dataclass(frozen=True)
class QuoteVersion:
    """One version of a quote. Amounts and percentages are whole millionths."""

    number: int
    status: VersionStatus
    """As stored, or a draft again if nobody approved in time; `status_at` takes the last valid day into account."""
    reason: str | None
    """Why it was cancelled, declined, rejected or superseded, or which option sets are void."""
    deal_id: str | None
    currency: str
    term_months: int | None
    start_date: date | None
    end_date: date | None
    payment_terms: str
    notes: str | None
    option_set: str | None
    requested_discount: int
    subtotal: int
    discount_total: int
    tax_total: int
    total: int
    tax_note: str | None
    warnings: Sequence[str]
    """What the seller should know of this version before it goes out."""
    priced_at: datetime | None
    fingerprint: str
    hashes: Mapping[str, str]
    valid_until: date
    expires_at: datetime
    lapses_at: datetime | None
    """Until when it waits for approval; after that moment it is a draft again. None if it was not submitted, or if
    something else happened before that moment."""
    created_at: datetime
    created_by: str
    edited_by: Sequence[str]
    """Callers who changed it, and the people who own agents that made, changed or submitted it."""
    internal: Internal | None
    requested_valid_until: date | None
    """The last valid day that was asked for; None where it follows from the policies."""
    requested_amount: int | None
    """The discount on the whole quote as an amount, where it is no percentage."""
    agreement: AgreementChange | None
    """Where it changes what the customer owns."""

    @property
    def makers(self) -> tuple[str, ...]:
        return (self.created_by, *self.edited_by)

    def status_at(self, now: datetime) -> VersionStatus:
        return status_at(self.status, self.expires_at, now, self.lapses_at)


class QuoteLine(NamedTuple):
    """A line of a version. Amounts and percentages are whole millionths. A tuple, because a quote may have 10,000."""

    number: int
    product_id: str
    product_name: str
    product_names: Mapping[str, str]
    """In other languages; none for a line of before there were translations."""
    quantity: Quantity
    discount_pct: int
    attributes: Mapping[str, Any]
    notes: str | None
    option_set: str | None
    billing_period: str
    tax_category: str
    list_amount: int
    regular: int
    net: int
    cost: int | None
    selling_model: str | None
    """None for a bundle of before selling models were stored."""
    internal: Internal | None
    special: SpecialTerms | None
    ramp: tuple[Segment, ...]
    usage: RateCard | None = None
    """Of a line that is charged by its use."""
    components: Sequence[Mapping[str, Any]] | None = None
    """What the buyer chose for each piece of a bundle: `product_id`, `name`, `quantity`, `included`."""

    @property
    def unit_price(self) -> int:
        """The regular price of one unit, with a ramp that of its mean quantity."""
        return unit_price(self.regular, *mean_quantity(self.quantity, self.ramp))

    @property
    def credit(self) -> int:
        """What is given back for the line of an agreement that it replaces; its other amounts are of what is sold."""
        return self.special.agreed.credit if self.special and self.special.agreed else 0

    @property
    def total(self) -> int:
        """What the customer pays for it before tax; negative where more is given back than sold."""
        return self.net - self.credit

    @property
    def sold_as(self) -> str:
        """The selling model for people; of an old bundle its billing period."""
        return self.selling_model or self.billing_period

    def as_draft(self) -> DraftLine:
        return DraftLine(
            self.number,
            self.product_id,
            self.quantity,
            self.discount_pct,
            self.attributes,
            self.notes,
            self.option_set,
            self.ramp,
            self.selling_model,
            self.internal,
            self.special,
        )


@dataclass(frozen=True)
class Pricing:
    """The price of one option set, or of the whole quote: the pricer's request and result."""

    option_set: str
    """Empty for a quote without option sets."""
    request_values: dict[str, Any]
    result_values: dict[str, Any]

    @cached_property
    def request(self) -> Request:
        return pricing_request.load(self.request_values)

    @cached_property
    def result(self) -> PricedQuote:
        return pricing_result.load(self.result_values)

    @cached_property
    def amounts(self) -> PricedQuote:
        """The result without the steps of its waterfall, which are its largest part."""
        return pricing_result.load(self.result_values, with_steps=False)


@dataclass(frozen=True)
class Quote:
    """A quote with one of its versions and that version's lines.

    `currency`, `total`, `valid_until` and `expires_at` are those of the current version, which need not be `version`.
    """

    id: str
    number: str
    """The number for people, `2026-000123`."""
    account_id: str
    account_name: str
    time_zone: str
    """The account's time zone, which decides when a day ends."""
    currency: str
    current_version: int
    edit: int
    """The number of changes of the quote."""
    status: QuoteStatus
    """The current status: a quote past its last valid day has expired, whatever is stored."""
    total: int
    valid_until: date
    expires_at: datetime
    created_at: datetime
    created_by: str
    owner: str | None
    """The name of the seller behind it; None when an agent without an owner made it."""
    version: QuoteVersion
    lines: Sequence[QuoteLine]

    @property
    def is_current(self) -> bool:
        """Whether `version` is the current one."""
        return self.version.number == self.current_version

    @property
    def has_lapsed(self) -> bool:
        """Whether `version` is a draft again, because nobody approved it in time."""
        return self.version.status is VersionStatus.DRAFT and self.version.lapses_at is not None

    @property
    def is_fixed(self) -> bool:
        """Whether `version` is a draft that was submitted: it never changes, and the quote continues with the next."""
        return self.is_rejected or self.has_lapsed

    @property
    def is_rejected(self) -> bool:
        """Whether `version` was rejected: it cannot be changed, and the quote continues with the next one."""
        return self.version.status is VersionStatus.REJECTED

    @property
    def end_date(self) -> date | None:
        """The last day of the version: of its term, or of a line that runs longer."""
        if all(line.special is None for line in self.lines):
            return self.version.end_date
        draft = self.as_draft()
        return max(filter(None, map(draft.last_day_of, draft.lines)), default=self.version.end_date)

    @property
    def open_marks(self) -> list[tuple[int | None, str]]:
        """What a person must look at before the customer gets the version, with the number of its line, if any."""
        parts = [(None, self.version.internal), *((line.number, line.internal) for line in self.lines)]
        return [(number, text) for number, part in parts if part for text in part.open_marks]

    def as_draft(self, **changes: Any) -> Draft:
        """The draft of this version, as a base for changes."""
        version = self.version
        asked = {
            "account_id": self.account_id,
            "currency": version.currency,
            "deal_id": version.deal_id,
            "term_months": version.term_months,
            "start_date": version.start_date,
            "end_date": version.end_date if version.term_months is None else None,
            "valid_until": version.requested_valid_until,
            "payment_terms": version.payment_terms,
            "notes": version.notes,
            "requested_discount": version.requested_discount,
            "requested_amount": version.requested_amount or 0,
            "option_set": version.option_set,
            "internal": version.internal,
            "agreement": version.agreement,
            "lines": tuple(line.as_draft() for line in self.lines),
        }
        return Draft(**{**asked, **changes})


def line_id(quote_id: str, number: int) -> str:
    """The public id of a line; it is the same in every version."""
    return f"{quote_id}-ql-{number}"


def stored_quantity(quantity: int, quantity_of: int) -> Quantity:
    """The quantity of a line from its two columns."""
    return quantity if quantity_of == 1 else (Decimal(quantity) / quantity_of).normalize()
