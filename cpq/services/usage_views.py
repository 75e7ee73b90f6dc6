"""What answers show of a line that is charged by its use: its rate card, commitment and estimate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NotRequired

from typing_extensions import TypedDict

from cpq.base.described import Described
from cpq.base.money import Amount, amount, readable
from cpq.domain import billing_periods
from cpq.domain.billing_periods import is_recurring
from cpq.domain.pricing.rate_cards import RateCard
from cpq.domain.pricing.request import Quantity
from cpq.domain.quotes.special_terms import Commitment


class RateView(TypedDict):
    up_to: int | None
    """Units of one period above the included ones; null: all beyond."""
    unit_price: Amount
    flat_fee: Amount


class CommitmentView(TypedDict):
    quantity: NotRequired[Quantity]
    amount: NotRequired[Amount]
    per: str


class RateCardView(TypedDict):
    """Rates before `discount_pct`, which is taken off all amounts of the card."""

    unit: str
    billing_period: str
    tier_mode: str
    unit_price: Amount
    """For a unit, or a package."""
    tiers: list[RateView]
    package_size: NotRequired[int]
    included_quantity: int
    """In each period."""
    minimum_spend: NotRequired[Amount]
    maximum_spend: NotRequired[Amount]
    discount_pct: Amount
    committed_per_period: Amount
    """The commitment or minimum spend in the total, before discounts; 0 where nothing is."""
    estimate_per_period: NotRequired[Amount]
    """What the expected use costs by this card. It is in no total."""
    estimate_beyond_total: NotRequired[Amount]
    """What the expected use costs over the term on top of what the total includes."""
    rates: str
    """All of the card in one line."""
    in_words: str
    """What of it is in the total."""


class UsageView(TypedDict):
    """Absent where the line is not charged by its use."""

    rate_card: NotRequired[Annotated[RateCardView, Described("Of a line that is charged by its use.")]]
    commitment: NotRequired[CommitmentView]
    expected_quantity: NotRequired[Annotated[Quantity, Described("In each period, for the estimate.")]]


NOT_METERED: UsageView = {}
"""Of most lines."""


def usage_view(card: RateCard | None, currency: str) -> UsageView:
    view: UsageView = {}
    if card is None:
        return view
    view["rate_card"] = _card_view(card, currency)
    if card.is_committed:
        view["commitment"] = commitment_view(Commitment(card.quantity, card.amount, card.per))
    if card.expected is not None:
        view["expected_quantity"] = card.expected
    return view


def commitment_view(committed: Commitment) -> CommitmentView:
    per = committed.per
    view: CommitmentView = {"per": billing_periods.in_words(per) if is_recurring(per) else per}
    if committed.quantity is not None:
        view["quantity"] = committed.quantity
    if committed.amount is not None:
        view["amount"] = amount(committed.amount)
    return view


def _card_view(card: RateCard, currency: str) -> RateCardView:
    view: RateCardView = {
        "unit": card.unit,
        "billing_period": card.billing_period,
        "tier_mode": card.tier_mode,
        "unit_price": amount(card.unit_price),
        "tiers": [
            {"up_to": up_to, "unit_price": amount(unit_price), "flat_fee": amount(flat_fee)}
            for up_to, unit_price, flat_fee in card.tiers
        ],
        "included_quantity": card.included,
        "discount_pct": amount(card.discount),
        "committed_per_period": amount(card.committed),
        "rates": card.rates,
        "in_words": in_words(card, currency),
    }
    if card.package_size is not None:
        view["package_size"] = card.package_size
    if card.minimum is not None:
        view["minimum_spend"] = amount(card.minimum)
    if card.maximum is not None:
        view["maximum_spend"] = amount(card.maximum)
    if card.estimate is not None and card.beyond is not None:
        view["estimate_per_period"] = amount(card.estimate)
        view["estimate_beyond_total"] = amount(card.beyond)
    return view


def in_words(card: RateCard, currency: str) -> str:
    """What is in the total and what is not, in one or two sentences."""
    return " ".join(_sentences(card, currency))


def _sentences(card: RateCard, currency: str) -> Iterator[str]:
    noun = billing_periods.noun(card.billing_period)
    committed = readable(amount(card.committed), currency)
    if card.quantity is not None:
        what = f"the commitment of {card.quantity:,} × {card.unit} a {noun}, which is {committed} {currency} a {noun}"
    elif card.amount is not None:
        per = f"a {billing_periods.noun(card.per)}" if is_recurring(card.per) else "for the term"
        what = f"the commitment of {readable(amount(card.amount), currency)} {currency} {per}"
        if card.minimum and card.committed == card.minimum:
            what += f", raised to the minimum spend of {committed} {currency} a {noun}"
    elif card.minimum:
        what = f"the minimum spend of {committed} {currency} a {noun}"
    else:
        yield f"Use is billed by the rate card for each {noun}; nothing for it is in the total."
        yield from _estimate(card, currency, noun)
        return
    less = f" before its discount of {amount(card.discount)} %" if card.discount else ""
    yield f"The total includes {what}{less}; use beyond it is billed by the rate card and is not in the total."
    yield from _estimate(card, currency, noun)


def _estimate(card: RateCard, currency: str, noun: str) -> Iterator[str]:
    if card.estimate is not None:
        yield (
            f"Estimate, not in the total: {card.expected:,} × {card.unit} a {noun} would cost "
            f"{readable(amount(card.estimate), currency)} {currency} a {noun}."
        )
