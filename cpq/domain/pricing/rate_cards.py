"""PURE. Rate cards as they are sold: rates, commitment and estimate of each usage line, and which one gives more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from cpq.base.money import amount as amount_in_units
from cpq.base.rounding import MinorUnit
from cpq.domain.pricing.parts import Plan
from cpq.domain.pricing.plans import Plans
from cpq.domain.pricing.price_selection import PriceSelection
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Line, PriceRow, Quantity, Request, Tier, Usage, exact
from cpq.domain.pricing.usage import (
    NOTHING,
    bill,
    committed,
    in_figures,
    overridden,
    per_period,
    rate_figures,
    rounded_rate,
    rule_factor,
)


class RateCard(NamedTuple):
    """The rate card of a line as the customer gets it. Amounts are whole millionths.

    Rates are after pricing rules, or the one that the seller gives; `discount` is then taken off all its amounts.
    """

    unit: str
    billing_period: str
    tier_mode: str
    unit_price: int
    """For a unit, or a package."""
    tiers: tuple[Tier, ...] = ()
    package_size: int | None = None
    included: int = 0
    minimum: int | None = None
    maximum: int | None = None
    discount: int = 0
    """The line's own discount in millionths of a percent; that of the quote does not lower rates."""
    quantity: Quantity | None = None
    """Committed to in each period."""
    amount: int | None = None
    per: str = ""
    """The period of the committed amount."""
    committed: int = 0
    """The commitment or minimum spend of one billing period, before discounts; 0 where nothing is in the total."""
    expected: Quantity | None = None
    estimate: int | None = None
    """What one period with the expected use costs by the rate card, after its discount."""
    beyond: int | None = None
    """What the expected use costs over the term beyond what the total includes."""

    @property
    def stored(self) -> dict[str, Any]:
        """As JSON values, without defaults."""
        default = RateCard._field_defaults
        return {name: value for name, value in self._asdict().items() if name not in default or value != default[name]}

    @property
    def rates(self) -> str:
        """The card in one line, without the commitment."""
        figures = "; ".join(rate_figures(self._row))
        return f"{figures}; all less {amount_in_units(self.discount)} %" if self.discount else figures

    @property
    def in_figures(self) -> str:
        """The whole card in one line, for formats that have no place for its parts."""
        figures = in_figures(self._row, Usage(self.quantity, self.amount, self.per))
        return f"{figures}; all less {amount_in_units(self.discount)} %" if self.discount else figures

    @property
    def _row(self) -> PriceRow:
        return PriceRow(
            "",
            self.unit_price,
            billing_period=self.billing_period,
            tier_mode=self.tier_mode,
            tiers=self.tiers,
            package_size=self.package_size,
            free_quantity=self.included,
            unit=self.unit,
            minimum_spend=self.minimum,
            maximum_spend=self.maximum,
        )

    @property
    def is_committed(self) -> bool:
        return self.quantity is not None or self.amount is not None


def load(value: Mapping[str, Any] | None) -> RateCard | None:
    """From the database, where a line without a rate card has null."""
    if value is None:
        return None
    return RateCard(**{**value, "tiers": tuple(Tier(*tier) for tier in value.get("tiers", ()))})


def usage_lines(request: Request) -> frozenset[str]:
    """The ids of the lines that are charged by their use."""
    return frozenset(rate_cards(request))


def rate_cards(request: Request, selection: PriceSelection | None = None) -> dict[str, RateCard]:
    """By line id, for the lines that are charged by their use."""
    sold = {id_ for id_, product in request.products.items() for row in product.rows if row.is_usage}
    if not sold:
        return {}
    plans = Plans(request, selection or PriceSelection(request))
    minor_unit = MinorUnit(request.currency, request.rounding)
    found = {}
    for line in request.lines:
        if line.price_key in sold:
            plan = plans.of(line.price_key, line.selling_model, line.term)
            if plan.row.is_usage:
                found[line.id] = _rate_card(line, plan, minor_unit)
    return found


def _rate_card(line: Line, plan: Plan, minor_unit: MinorUnit) -> RateCard:
    usage = line.usage or NOTHING
    factor = rule_factor(line, plan)
    card = overridden(plan.row, line.override) if line.override is not None else _scaled(plan.row, factor)
    is_given = line.override is not None
    included = committed(card, usage, plan) if is_given else committed(plan.row, usage, plan) * factor
    kept = ONE_HUNDRED_PERCENT - line.discount
    estimate = beyond = None
    if usage.expected is not None:
        due = plan.term.times(bill(card, exact(usage.expected)))
        estimate = minor_unit.round(per_period(due, plan.term), kept, ONE_HUNDRED_PERCENT)
        more = due - included
        beyond = minor_unit.round(more, kept, ONE_HUNDRED_PERCENT) if more > 0 else 0
    return RateCard(
        card.unit,
        card.billing_period,
        card.tier_mode,
        card.unit_price,
        card.tiers,
        card.package_size,
        card.free_quantity,
        card.minimum_spend,
        card.maximum_spend,
        line.discount,
        usage.quantity,
        usage.amount,
        (usage.per or card.billing_period) if usage.is_committed else "",
        minor_unit.round(per_period(included, plan.term)),
        usage.expected,
        estimate,
        beyond,
    )


def _scaled(row: PriceRow, factor: Fraction) -> PriceRow:
    """The card after pricing rules, which change all its amounts alike."""
    if factor == 1:
        return row
    return row._replace(
        unit_price=rounded_rate(row.unit_price * factor),
        tiers=tuple(
            Tier(up_to, rounded_rate(unit_price * factor), rounded_rate(flat_fee * factor))
            for up_to, unit_price, flat_fee in row.tiers
        ),
        minimum_spend=None if row.minimum_spend is None else rounded_rate(row.minimum_spend * factor),
        maximum_spend=None if row.maximum_spend is None else rounded_rate(row.maximum_spend * factor),
    )


def what_is_more(before: RateCard | None, after: RateCard | None) -> Iterator[str]:
    """Every respect in which a customer gets more by a rate card, or something else."""
    if before is None or after is None:
        if before is not after:
            yield "the rate card changed"
        return
    if any(getattr(before, name) != getattr(after, name) for name in _SAME) or _bounds(before) != _bounds(after):
        yield "the rate card changed"
        return
    lower = any(
        is_ * (ONE_HUNDRED_PERCENT - after.discount) < was * (ONE_HUNDRED_PERCENT - before.discount)
        for was, is_ in zip(_amounts(before), _amounts(after), strict=True)
    )
    if lower:
        yield "the rates are lower"
    if after.included > before.included:
        yield f"the included units went from {before.included:,} to {after.included:,}"
    if _least(after.minimum, after) < _least(before.minimum, before):
        yield "the minimum spend is lower"
    if after.maximum is not None and (
        before.maximum is None or _least(after.maximum, after) < _least(before.maximum, before)
    ):
        yield "the maximum spend is lower"
    if after.quantity != before.quantity or (after.amount or 0) < (before.amount or 0):
        yield "the commitment changed"


def _least(spend: int | None, card: RateCard) -> int:
    return (spend or 0) * (ONE_HUNDRED_PERCENT - card.discount)


def _bounds(card: RateCard) -> list[int | None]:
    return [tier.up_to for tier in card.tiers]


def _amounts(card: RateCard) -> list[int]:
    return [card.unit_price, *(part for tier in card.tiers for part in (tier.unit_price, tier.flat_fee))]


_SAME = ("unit", "billing_period", "tier_mode", "package_size", "per", "expected")
"""What must be the same; the amounts are compared."""
