"""PURE. The stages of the waterfall that a line goes through by itself, from the list price to the regular price.

An amount is an exact fraction, numerator over denominator, until it is rounded once at the line discount.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import NamedTuple

from cpq.errors import Code, CpqError, bad_field
from cpq.pricing.request import ONE_HUNDRED_PERCENT, PERIOD_MONTHS, Component, PriceRow, Request, Segment
from cpq.pricing.result import Step
from cpq.pricing.terms import add_months, factor

WHOLE_TERM = Segment(0)


class Plan(NamedTuple):
    """What is decided about a product once for the whole quote: its prices, and the stages that act on them."""

    product_id: str
    listed: PriceRow
    """The list price; the contracted one where there is no list price."""
    row: PriceRow
    """The price that is charged."""
    stages: tuple[Stage, ...]
    is_listed: bool
    is_contracted: bool
    is_frame: bool
    """The product is a bundle priced by its components: its own list price carries the options and nothing else."""
    components: tuple[Component, ...]
    bundle_discount: int


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
        "others",
        "plan",
        "quantity",
        "regular",
        "row",
        "segment",
        "steps",
        "surcharge",
        "taxed",
    )

    def __init__(
        self, plan: Plan, quantity: int, choices: Mapping[str, str], segment: Segment = WHOLE_TERM, name: str = ""
    ) -> None:
        self.plan = plan
        self.row = plan.row
        self.quantity = quantity
        self.choices = choices
        self.segment = segment
        self.name = name
        self.steps: list[Step] = []
        self.denominator = self.listed_below = self.cost_below = 1
        self.surcharge = self.offset = 0
        self.numerator: int
        self.listed: int
        self.cost: int | None
        self.regular: int
        self.customer: int
        self.others: int | None = None
        """Units of the product elsewhere in the quote; not known until a price asks for them."""
        self.taxed: tuple[tuple[str, int], ...] = ()
        """Tax categories with their weights, for a bundle that has several."""

    def note(self, stage: str, source: str, value: int | None) -> None:
        amount = self.numerator if self.denominator == 1 else nearest(self.numerator, self.denominator)
        self.steps.append(new_tuple(Step, (stage, amount, source, value, self.name)))


Stage = Callable[["Prices", Part], None]


class Prices:
    """The facts of one request that its lines share: which price of a product wins, how long a term is."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._plans: dict[str, Plan] = {}
        self._factors: dict[tuple[str, int, int], tuple[int, int]] = {}
        self._quantities: dict[str, int] = {}
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
        is_listed, is_frame = listed is not None, bool(product.components)
        row = contracted or listed
        if row is None:
            raise CpqError(
                Code.CURRENCY_MISMATCH, f"{product_id} has no price in {self.request.currency}.", field="/currency"
            )
        listed = listed or row
        if is_frame:
            listed = listed._replace(unit_price=0, tier_mode="none", tiers=(), package_size=None, cost=0)
            row = contracted or listed
        self._check_tax(product_id, row)
        idle: set[Stage] = set()
        if contracted is None and not self._has_ramps:
            idle.add(take_contracted_price)
        if row.tier_mode == "none":
            idle.add(apply_tiers)
        if not row.surcharges and not listed.surcharges:
            idle.add(add_options)
        if row.billing_period == "one_time" == listed.billing_period:
            idle.add(apply_term)
        stages = tuple([stage for stage in STAGES if stage not in idle])
        is_contracted = contracted is not None
        frame = (is_frame, product.components, product.bundle_discount)
        return Plan(product_id, listed, row, stages, is_listed, is_contracted, *frame)

    def _check_tax(self, product_id: str, row: PriceRow) -> None:
        request = self.request
        if row.tax_category not in request.tax_rates and (request.tax_status == "taxable" or row.tax_included):
            raise CpqError(
                Code.CONFLICT,
                f"{product_id} is of the tax category {row.tax_category}, which has no rate in the account's tax zone.",
                allowed=sorted(request.tax_rates),
                hint="Add the rate to the tax policy, or correct the category of the price.",
            )

    def units(self, product_id: str) -> int:
        """How many units of a product the whole quote has, inside bundles too."""
        if not self._quantities:
            for line in self.request.lines:
                self._count(line.product_id, line.quantity)
                for component in self.request.products[line.product_id].components:
                    self._count(component.product_id, line.quantity * component.quantity)
        return self._quantities[product_id]

    def _count(self, product_id: str, quantity: int) -> None:
        self._quantities[product_id] = self._quantities.get(product_id, 0) + quantity

    def factor(self, billing_period: str, offset: int, months: int) -> tuple[int, int]:
        """How many billing periods the term is, or a segment of so many months that starts `offset` months later."""
        key = (billing_period, offset, months)
        found = self._factors.get(key)
        if found is None:
            found = self._factors[key] = self._reckon(PERIOD_MONTHS.get(billing_period), offset, months)
        return found

    def _reckon(self, period_months: int | None, offset: int, segment_months: int) -> tuple[int, int]:
        """One period when the quote has no term."""
        request = self.request
        months = segment_months or request.term_months
        if period_months is None or not (months or request.ends_on):
            return 1, 1
        if months and (request.part_periods != "actual_days" or (offset + months) % period_months == 0 == offset):
            return months, period_months
        start = date.fromisoformat(request.starts_on or request.as_of)
        try:
            end = add_months(start, offset + months) if months else _day_after(request.ends_on or "")
            share = factor(request.part_periods, start, end, period_months)
        except (ValueError, OverflowError):
            raise bad_field("/term_months", "The term ends after the last day of the calendar.") from None
        if offset:
            share -= factor(request.part_periods, start, add_months(start, offset), period_months)
        return share.numerator, share.denominator


def choose(request: Request, product_id: str) -> tuple[PriceRow | None, PriceRow | None]:
    """Exactly one list price wins: by the order of the books, then priority, specificity, id; valid on the day."""
    day, books = request.as_of, request.price_books
    listed: PriceRow | None = None
    contracted: PriceRow | None = None
    best = best_contracted = None
    for row in request.products[product_id].rows:
        if (row.valid_from and row.valid_from > day) or (row.valid_to and row.valid_to < day):
            continue
        bounds = (row.valid_from is not None) + (row.valid_to is not None)
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
        tier = next(tier for tier in row.tiers if tier.up_to is None or quantity <= tier.up_to)
        return tier.unit_price * quantity + tier.flat_fee
    if row.tier_mode == "graduated":
        amount = low = 0
        for tier in row.tiers:
            high = quantity if tier.up_to is None or quantity < tier.up_to else tier.up_to
            amount += (high - low) * tier.unit_price + tier.flat_fee
            if high == quantity:
                break
            low = high
        return amount
    return row.unit_price * sold(row, quantity)


def sold(row: PriceRow, quantity: int) -> int:
    """How many times the unit price is charged: for each unit, or for each package that is begun."""
    if row.package_size is None:
        return quantity
    return -(-max(0, quantity - row.free_quantity) // row.package_size)


def take_list_price(_prices: Prices, part: Part) -> None:
    plan = part.plan
    row = plan.listed
    part.numerator = part.listed = row.unit_price * (
        part.quantity if row.package_size is None else sold(row, part.quantity)
    )
    if plan.is_listed:
        part.note("list", row.id, row.unit_price)


def take_contracted_price(_prices: Prices, part: Part) -> None:
    """An agreed price replaces the list price; the price of a ramp's segment replaces both."""
    agreed = part.segment.unit_price
    if agreed is not None:
        part.row = part.row._replace(unit_price=agreed, tier_mode="none", tiers=(), package_size=None)
    elif not part.plan.is_contracted:
        return
    part.numerator = part.row.unit_price * sold(part.row, part.quantity)
    part.note("contracted", part.row.id if agreed is None else part.name, part.row.unit_price)


def apply_tiers(prices: Prices, part: Part) -> None:
    row, quantity = part.row, part.quantity
    if row.tier_mode == "none":
        return
    # Counted over the quote, a line bears the share of the whole charge that its quantity is of the whole quantity.
    counted = _counted(prices, part, row)
    part.numerator = charge(row, counted)
    if counted != quantity:
        part.numerator, part.denominator = _reduced(part.numerator * quantity, counted)
    part.note("tier", row.tier_mode, counted)


def add_options(_prices: Prices, part: Part) -> None:
    plan, choices = part.plan, part.choices
    priced = part.row.surcharges or plan.listed.surcharges
    if not priced or not choices:
        return
    chosen = {name: priced[name][value] for name, value in choices.items() if name in priced and value in priced[name]}
    if not any(chosen.values()):
        return
    part.surcharge = sum(chosen.values())
    added = part.surcharge * part.quantity
    part.numerator += added * part.denominator
    part.listed += added
    # What is taken off a bundle is taken off its components, so there it may be more than its own price.
    if added < 0 and not plan.is_frame:
        part.numerator, part.listed = max(0, part.numerator), max(0, part.listed)
    named = ", ".join(f"{name}={choices[name]}" for name in sorted(chosen))
    part.note("options", named, part.surcharge)


def take_cost(prices: Prices, part: Part) -> None:
    """What the quantity costs us for one period. An option costs as large a share of its price as the product does."""
    row, listed = part.plan.row, part.plan.listed
    if row.cost is None:
        row = listed
    if row.cost is None:
        part.cost = None
        return
    quantity = part.quantity
    if row.package_size is None:
        part.cost = row.cost * quantity
    else:
        counted = _counted(prices, part, row)
        part.cost = row.cost * sold(row, counted)
        if counted != quantity:
            part.cost, part.cost_below = _reduced(part.cost * quantity, counted)
    if part.surcharge:
        base = listed.unit_price
        share = row.cost * part.surcharge * quantity
        part.cost = max(0, part.cost * base + share * part.cost_below) if base else None
        part.cost_below *= base or 1


def apply_term(prices: Prices, part: Part) -> None:
    """The uplift of a segment is in the price alone: neither the list price nor our cost rises with it."""
    plan, segment = part.plan, part.segment
    period, listed_period = part.row.billing_period, plan.listed.billing_period
    periods, of = prices.factor(period, part.offset, segment.months)
    if periods != of:
        part.numerator *= periods
        part.denominator *= of
        if part.cost is not None and (period == listed_period or plan.row.cost is not None):
            part.cost *= periods
            part.cost_below *= of
    if period == listed_period:
        part.listed *= periods
        part.listed_below = of
    else:
        _apply_listed_term(prices, part)
    if segment.uplift:
        part.numerator *= ONE_HUNDRED_PERCENT + segment.uplift
        part.denominator *= ONE_HUNDRED_PERCENT
    elif periods == of:
        return
    if part.denominator != 1:
        part.numerator, part.denominator = _reduced(part.numerator, part.denominator)
    part.note("term", period, nearest(periods * 1_000_000, of))


def _apply_listed_term(prices: Prices, part: Part) -> None:
    """For a list price that is billed in other periods than the price that replaces it."""
    plan = part.plan
    periods, of = prices.factor(plan.listed.billing_period, part.offset, part.segment.months)
    part.listed *= periods
    part.listed_below = of
    if part.cost is not None and plan.row.cost is None:
        part.cost *= periods
        part.cost_below *= of


def _counted(prices: Prices, part: Part, row: PriceRow) -> int:
    """The quantity that decides a tier: the line's, or with that of the other lines of the quote."""
    if row.quantity_scope == "line":
        return part.quantity
    if part.others is None:
        part.others = prices.units(part.plan.product_id) - part.quantity
    return part.quantity + part.others


def _reduced(numerator: int, denominator: int) -> tuple[int, int]:
    """The same fraction with the denominator 1 where it is whole, which is the most common case and the cheapest."""
    quotient, rest = divmod(numerator, denominator)
    return (numerator, denominator) if rest else (quotient, 1)


def _day_after(day: str) -> date:
    return date.fromisoformat(day) + timedelta(days=1)


STAGES: tuple[Stage, ...] = (
    take_list_price,
    take_contracted_price,
    apply_tiers,
    add_options,
    take_cost,
    apply_term,
)
"""What happens to each part of a line, in this order; a stage that changes the amount leaves a step."""

new_tuple = tuple.__new__
"""A third of the cost of calling a named tuple's class, and steps are made by the thousand."""
