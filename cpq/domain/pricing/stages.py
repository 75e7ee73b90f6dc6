"""PURE. The stages of the waterfall that a line goes through by itself, from the list price to the regular price.

An amount is an exact fraction, numerator over denominator, until it is rounded once at the line discount.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from typing import NamedTuple

from cpq.base.errors import Code, CpqError, bad_field
from cpq.domain.pricing.quantities import Counts
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, PERIOD_MONTHS, Component, PriceRow, Request, Segment
from cpq.domain.pricing.result import Step
from cpq.domain.pricing.terms import add_months, factor

WHOLE_TERM = Segment(0)


class Term(NamedTuple):
    """How many billing periods a price falls due for, as a fraction, and that number for people, in millionths."""

    periods: int
    of: int
    shown: int


ONCE = Term(1, 1, 1_000_000)


@dataclass(slots=True)
class Plan:
    """What is decided about a product once for the whole quote: its prices, and the stages that act on them."""

    product_id: str
    listed: PriceRow
    """The list price; the contracted one where there is no list price."""
    row: PriceRow
    """The price that is charged."""
    costs: PriceRow
    """The price that says what we pay; it may say nothing."""
    stages: list[Stage]
    """What happens to each part of a line, in the order of the waterfall; what changes the amount leaves a step."""
    billing_period: str
    tax_category: str
    is_tax_included: bool
    term: Term
    """The whole one; a segment of a ramp has its own."""
    is_listed: bool
    is_contracted: bool
    is_like_list: bool
    """Billed as often as the list price, and with tax as it is: amounts of both can be added and compared."""
    components: tuple[Component, ...] = ()
    """Those of a bundle that is priced by them: its own list price carries the options and nothing else."""
    bundle_discount: int = 0


class Part:
    """One price on its way down the waterfall: a line's own, a component's, or that of one segment of a ramp."""

    __slots__ = (
        "choices",
        "cost",
        "cost_below",
        "customer",
        "denominator",
        "listed",
        "listed_below",
        "name",
        "numerator",
        "offset",
        "plan",
        "quantity",
        "regular",
        "segment",
        "steps",
        "surcharge",
        "taxed",
    )

    def __init__(
        self, plan: Plan, quantity: int, choices: Mapping[str, str], segment: Segment = WHOLE_TERM, name: str = ""
    ) -> None:
        self.plan = plan
        self.quantity = quantity
        self.choices = choices
        self.segment = segment
        self.name = name
        self.steps: tuple[Step, ...] = ()
        self.denominator = self.listed_below = self.cost_below = 1
        self.surcharge = self.offset = 0
        self.numerator: int
        self.listed: int
        self.cost: int | None
        self.regular: int
        self.customer: int
        self.taxed: tuple[tuple[str, int], ...] = ()
        """Tax categories with their weights, for a bundle that has several."""

    def note(self, stage: str, source: str, value: int | None) -> None:
        amount = self.numerator if self.denominator == 1 else nearest(self.numerator, self.denominator)
        self.steps += (new_tuple(Step, (stage, amount, source, value, self.name)),)


Stage = Callable[["Prices", Part], None]


class Prices:
    """The facts of one request that its lines share: which price of a product wins, how long a term is."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._plans: dict[str, Plan] = {}
        self._terms: dict[tuple[str, int, int], Term] = {}
        self._counts: Counts | None = None
        self._has_ramps = any(line.ramp for line in request.lines)

    def plan(self, product_id: str) -> Plan:
        plan = self._plans.get(product_id)
        if plan is None:
            plan = self._plans[product_id] = self._decide(product_id)
        return plan

    def run(self, part: Part) -> Part:
        """Take a part through the stages that have something to do for its price."""
        for stage in part.plan.stages:
            stage(self, part)
        return part

    def _decide(self, product_id: str) -> Plan:
        product = self.request.products[product_id]
        listed, contracted = choose(self.request, product_id)
        is_listed = listed is not None
        row = contracted or listed
        if row is None:
            raise CpqError(
                Code.CURRENCY_MISMATCH, f"{product_id} has no price in {self.request.currency}.", field="/product_id"
            )
        listed = listed or row
        if product.components:
            listed = listed._replace(unit_price=0, tier_mode="none", tiers=(), package_size=None, cost=0)
            row = contracted or listed
        self._check_tax(product_id, row)
        term = self.term(row.billing_period)
        stages: list[Stage] = [take_list_price]
        if contracted:
            stages.append(take_contracted_price)
        if row.tier_mode != "none":
            stages.append(apply_tiers)
        if row.surcharges or listed.surcharges:
            stages.append(add_options)
        stages.append(take_cost)
        if self._has_ramps or term != ONCE or row.billing_period != listed.billing_period:
            stages.append(apply_term)
        if row.tax_included != listed.tax_included:
            stages.append(level_list_tax)
        return Plan(
            product_id,
            listed,
            row,
            listed if row.cost is None else row,
            stages,
            row.billing_period,
            row.tax_category,
            row.tax_included,
            term,
            is_listed,
            contracted is not None,
            row.billing_period == listed.billing_period and row.tax_included == listed.tax_included,
            product.components,
            product.bundle_discount,
        )

    def _check_tax(self, product_id: str, row: PriceRow) -> None:
        request = self.request
        if row.tax_category not in request.tax_rates and (request.tax_status == "taxable" or row.tax_included):
            raise CpqError(
                Code.CONFLICT,
                f"{product_id} is of the tax category {row.tax_category}, which has no rate in the account's tax zone.",
                field="/product_id",
                allowed=sorted(request.tax_rates),
                hint="Add the rate to the tax policy, or correct the category of the price.",
            )

    def units(self, part: Part) -> int:
        """How many units of a part's product the whole quote has in all of the part's months, its own among them."""
        counts = self._counts
        if counts is None:
            counts = self._counts = Counts(self.request)
        product_id, months = part.plan.product_id, part.segment.months
        if part.plan.row.billing_period == "one_time":
            return counts.once(product_id)
        return counts.during(product_id, (part.offset, part.offset + months) if months else counts.term)

    def agreed(self, plan: Plan, unit_price: int) -> Plan:
        """The plan with a price that is agreed for one segment of a ramp, in place of list price and contract."""
        row = plan.row._replace(unit_price=unit_price, tier_mode="none", tiers=(), package_size=None)
        later = [stage for stage in plan.stages if stage not in (take_list_price, take_contracted_price, apply_tiers)]
        return replace(plan, row=row, stages=[take_list_price, take_contracted_price, *later])

    def term(self, billing_period: str, offset: int = 0, months: int = 0) -> Term:
        """How many billing periods the term is, or a segment of so many months that starts `offset` months later."""
        key = (billing_period, offset, months)
        found = self._terms.get(key)
        if found is None:
            share = self._reckon(PERIOD_MONTHS.get(billing_period), offset, months)
            shown = nearest(share.numerator * 1_000_000, share.denominator)
            found = self._terms[key] = Term(share.numerator, share.denominator, shown)
        return found

    def _reckon(self, period_months: int | None, offset: int, segment_months: int) -> Fraction:
        """One period when the quote has no term."""
        request = self.request
        months = segment_months or request.term_months
        if period_months is None or not (months or request.ends_on):
            return Fraction(1)
        if months and (request.part_periods != "actual_days" or (offset + months) % period_months == 0 == offset):
            return Fraction(months, period_months)
        start = date.fromisoformat(request.starts_on or request.as_of)
        try:
            end = add_months(start, offset + months) if months else _day_after(request.ends_on or "")
            share = factor(request.part_periods, start, end, period_months)
        except (ValueError, OverflowError):
            raise bad_field("/term_months", "The term ends after the last day of the calendar.") from None
        if offset:
            share -= factor(request.part_periods, start, add_months(start, offset), period_months)
        return share


def choose(request: Request, product_id: str) -> tuple[PriceRow | None, PriceRow | None]:
    """Exactly one list price wins: by the order of the books, then priority, specificity, id; valid on the day."""
    day, books = request.as_of, request.price_books
    listed: PriceRow | None = None
    contracted: PriceRow | None = None
    best = best_contracted = None
    for row in request.products[product_id].rows:
        first, last = row.valid_from, row.valid_to
        if (first and first > day) or (last and last < day):
            continue
        bounds = (first is not None) + (last is not None)
        if row.account_id is not None:
            key: tuple[int, int, int, str] = (0, -row.priority, -bounds, row.id)
            if best_contracted is None or key < best_contracted:
                contracted, best_contracted = row, key
        elif row.price_book_id in books:
            key = (books.index(row.price_book_id), -row.priority, -bounds, row.id)
            if best is None or key < best:
                listed, best = row, key
    return listed, contracted


def nearest(numerator: int, denominator: int) -> int:
    """The whole number nearest to a fraction; a half goes up."""
    return (2 * numerator + denominator) // (2 * denominator)


def charge(row: PriceRow, quantity: int) -> int:
    """What a quantity costs by the row's own tiers."""
    if row.tier_mode == "volume":
        for up_to, unit_price, flat_fee in row.tiers:
            if up_to is None or quantity <= up_to:
                return unit_price * quantity + flat_fee
    if row.tier_mode == "graduated":
        amount = low = 0
        for up_to, unit_price, flat_fee in row.tiers:
            if up_to is None or quantity <= up_to:
                return amount + (quantity - low) * unit_price + flat_fee
            amount += (up_to - low) * unit_price + flat_fee
            low = up_to
    assert not row.tiers, "the last tier is open"
    return row.unit_price * sold(row, quantity)


def sold(row: PriceRow, quantity: int) -> int:
    """How many times the unit price is charged: for each unit, or for each package that is begun."""
    if row.package_size is None:
        return quantity
    return -(-max(0, quantity - row.free_quantity) // row.package_size)


def take_list_price(_prices: Prices, part: Part) -> None:
    plan = part.plan
    row = plan.listed
    unit_price = row.unit_price
    amount = unit_price * (part.quantity if row.package_size is None else sold(row, part.quantity))
    part.numerator = part.listed = amount
    if plan.is_listed:
        part.steps = (new_tuple(Step, ("list", amount, row.id, unit_price, part.name)),)


def take_contracted_price(_prices: Prices, part: Part) -> None:
    """An agreed price replaces the list price; the price of a ramp's segment replaces both."""
    row = part.plan.row
    part.numerator = row.unit_price * sold(row, part.quantity)
    part.note("contracted", row.id if part.segment.unit_price is None else part.name, row.unit_price)


def apply_tiers(prices: Prices, part: Part) -> None:
    row, quantity = part.plan.row, part.quantity
    # Counted over the quote, a line bears the share of the whole charge that its quantity is of the whole quantity.
    counted = _counted(prices, part, row)
    part.numerator = charge(row, counted)
    if counted != quantity:
        part.numerator, part.denominator = _reduced(part.numerator * quantity, counted)
    part.note("tier", row.tier_mode, counted)


def add_options(_prices: Prices, part: Part) -> None:
    plan = part.plan
    priced = plan.row.surcharges or plan.listed.surcharges
    chosen: list[str] = []
    surcharge = 0
    has_price = False
    for name, value in part.choices.items():
        if name in priced and value in priced[name]:
            chosen.append(f"{name}={value}")
            surcharge += priced[name][value]
            has_price = has_price or priced[name][value] != 0
    if not has_price:
        return
    part.surcharge = surcharge
    added = surcharge * part.quantity
    part.numerator += added * part.denominator
    if not plan.is_like_list:
        if priced is not plan.row.surcharges:
            raise _unlike(plan)
        added = sum([plan.listed.surcharges.get(name, {}).get(value, 0) for name, value in part.choices.items()])
        part.surcharge = surcharge if plan.costs is plan.row else added
        added *= part.quantity
    part.listed += added
    # What is taken off a bundle is taken off its components, so there it may be more than its own price.
    if added < 0 and not plan.components:
        part.numerator, part.listed = max(0, part.numerator), max(0, part.listed)
    part.note("options", ", ".join(sorted(chosen)), surcharge)


def take_cost(prices: Prices, part: Part) -> None:
    """What the quantity costs us for one period. An option costs as large a share of its price as the product does."""
    row, quantity = part.plan.costs, part.quantity
    cost = row.cost
    if cost is None:
        part.cost = None
        return
    if row.package_size is None:
        part.cost = cost * quantity
    else:
        counted = _counted(prices, part, row)
        part.cost = cost * sold(row, counted)
        if counted != quantity:
            part.cost, part.cost_below = _reduced(part.cost * quantity, counted)
    if part.surcharge:
        base = (part.plan.listed if part.plan.is_like_list else row).unit_price
        share = cost * part.surcharge * quantity
        part.cost = max(0, part.cost * base + share * part.cost_below) if base else None
        part.cost_below *= base or 1


def apply_term(prices: Prices, part: Part) -> None:
    """The uplift of a segment is in the price alone: neither the list price nor our cost rises with it."""
    plan, segment = part.plan, part.segment
    term = plan.term if segment is WHOLE_TERM else prices.term(plan.billing_period, part.offset, segment.months)
    periods, of, shown = term
    part.numerator *= periods
    part.denominator *= of
    if plan.billing_period != plan.listed.billing_period:
        periods, of, _ = prices.term(plan.listed.billing_period, part.offset, segment.months)
    part.listed *= periods
    part.listed_below = of
    if part.cost is not None:
        periods, of, _ = term if plan.costs.billing_period == plan.billing_period else (periods, of, 0)
        part.cost *= periods
        part.cost_below *= of
    if segment.uplift:
        part.numerator *= ONE_HUNDRED_PERCENT + segment.uplift
        part.denominator *= ONE_HUNDRED_PERCENT
    if segment.uplift or term != ONCE:
        part.note("term", plan.billing_period, shown)


def level_list_tax(prices: Prices, part: Part) -> None:
    """Put into the list amount the tax that the contracted price includes, or take out what that one does not."""
    plan = part.plan
    taxed = plan.row if plan.is_tax_included else plan.listed
    whole = ONE_HUNDRED_PERCENT + prices.request.tax_rates.get(taxed.tax_category, 0)
    with_tax, without = (whole, ONE_HUNDRED_PERCENT) if plan.is_tax_included else (ONE_HUNDRED_PERCENT, whole)
    part.listed *= with_tax
    part.listed_below *= without


def _unlike(plan: Plan) -> CpqError:
    return CpqError(
        Code.CONFLICT,
        f"The account's price {plan.row.id} of {plan.product_id} is billed or taxed in another way than the list "
        "price, so the list's surcharges of options do not fit it.",
        field="/product_id",
        hint="Give the account's price its own surcharges, or leave out the options that cost extra.",
    )


def _counted(prices: Prices, part: Part, row: PriceRow) -> int:
    """The quantity that decides a tier: the line's, or with that of the other lines of the quote."""
    return part.quantity if row.quantity_scope == "line" else prices.units(part)


def _reduced(numerator: int, denominator: int) -> tuple[int, int]:
    """The same fraction with the denominator 1 where it is whole, which is the most common case and the cheapest."""
    quotient, rest = divmod(numerator, denominator)
    return (numerator, denominator) if rest else (quotient, 1)


def _day_after(day: str) -> date:
    return date.fromisoformat(day) + timedelta(days=1)


new_tuple = tuple.__new__
"""A third of the cost of calling a named tuple's class, and steps are made by the thousand."""
