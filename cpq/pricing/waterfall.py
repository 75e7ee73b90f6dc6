"""PURE. The stages of the waterfall that a line goes through by itself, from the list price to the regular price.

An amount is an exact fraction, numerator over denominator, until it is rounded once at the line discount.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from cpq.errors import Code, CpqError
from cpq.pricing.request import ONE_HUNDRED_PERCENT, PERIOD_MONTHS, Adjustment, Line, PriceRow, Request, Segment
from cpq.pricing.result import Step
from cpq.pricing.terms import add_months, factor

WHOLE_TERM = Segment(0)


class Part:
    """One price on its way down the waterfall: a line's own, a component's, or that of one segment of a ramp."""

    __slots__ = (
        "choices",
        "cost",
        "denominator",
        "listed",
        "listed_amount",
        "name",
        "numerator",
        "product_id",
        "quantity",
        "row",
        "segment",
        "steps",
        "surcharge",
    )

    def __init__(self, line: Line, product_id: str, quantity: int, segment: Segment, name: str) -> None:
        self.product_id = product_id
        self.quantity = quantity
        self.segment = segment
        self.choices = line.choices if product_id == line.product_id else {}
        self.name = name
        self.steps: list[Step] = []
        self.denominator = 1
        self.surcharge = 0
        self.cost: int | None
        self.row: PriceRow
        self.listed: PriceRow
        self.numerator: int
        self.listed_amount: int

    def note(self, stage: str, source: str, value: int | None) -> None:
        amount = self.numerator if self.denominator == 1 else nearest(self.numerator, self.denominator)
        self.steps.append(_new_tuple(Step, (stage, amount, source, value, self.name)))


Stage = Callable[["Prices", Part, Line], None]


class Chosen(NamedTuple):
    """The list price of a product that wins, the contracted one that replaces it, and the stages that act on them."""

    listed: PriceRow | None
    contracted: PriceRow | None
    stages: tuple[Stage, ...]


class Prices:
    """The facts of one request that its lines share: which price of a product wins, how long a term is."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._chosen: dict[str, Chosen] = {}
        self._factors: dict[tuple[str, int], tuple[int, int]] = {}
        self._has_ramps = any(line.ramp for line in request.lines)
        self._quantities: dict[str, int] = {}
        for line in request.lines:
            self._quantities[line.product_id] = self._quantities.get(line.product_id, 0) + line.quantity

    def run(self, part: Part, line: Line) -> None:
        """Take a part through the stages that have something to do for its price."""
        chosen = self._chosen.get(part.product_id)
        if chosen is None:
            chosen = self._chosen[part.product_id] = self._choose(part.product_id)
        listed, contracted, stages = chosen
        part.listed = listed or contracted  # type: ignore[assignment] # One of them is there.
        part.row = contracted or part.listed
        for stage in stages:
            stage(self, part, line)

    def _choose(self, product_id: str) -> Chosen:
        listed, contracted = choose(self.request, product_id)
        row = contracted or listed
        if row is None:
            raise CpqError(
                Code.CURRENCY_MISMATCH, f"{product_id} has no price in {self.request.currency}.", field="/currency"
            )
        first = listed or row
        idle: set[Stage] = set()
        if contracted is None and not self._has_ramps:
            idle.add(take_contracted_price)
        if row.tier_mode == "none" == first.tier_mode:
            idle.add(apply_tiers)
        if not row.surcharges and not first.surcharges:
            idle.add(add_options)
        if row.billing_period == "one_time":
            idle.add(apply_term)
        return Chosen(listed, contracted, tuple([stage for stage in STAGES if stage not in idle]))

    def others(self, line: Line) -> int:
        """How many units of the same product the other lines of the quote have."""
        return self._quantities[line.product_id] - line.quantity

    def factor(self, billing_period: str, segment_months: int) -> tuple[int, int]:
        """How many billing periods the term is, or a segment of it; one period when the quote has no term."""
        key = (billing_period, segment_months)
        found = self._factors.get(key)
        if found is None:
            found = self._factors[key] = self._reckon(PERIOD_MONTHS[billing_period], segment_months)
        return found

    def _reckon(self, period_months: int, segment_months: int) -> tuple[int, int]:
        request = self.request
        months = segment_months or request.term_months
        if months and (request.part_periods != "actual_days" or months % period_months == 0):
            return months, period_months
        start = date.fromisoformat(request.starts_on or request.as_of)
        if months:
            end = add_months(start, months)
        elif request.ends_on:
            end = date.fromisoformat(request.ends_on) + timedelta(days=1)
        else:
            return 1, 1
        share = factor(request.part_periods, start, end, period_months)
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
    """The whole number nearest to a fraction that is not negative; a half goes up."""
    return (2 * numerator + denominator) // (2 * denominator)


def take_list_price(_prices: Prices, part: Part, _line: Line) -> None:
    listed = part.listed
    part.numerator = part.listed_amount = listed.unit_price * part.quantity
    part.note("list", listed.id, listed.unit_price)


def take_contracted_price(_prices: Prices, part: Part, _line: Line) -> None:
    """An agreed price replaces the list price; the price of a ramp's segment replaces both."""
    agreed = part.segment.unit_price
    if agreed is not None:
        part.row = part.row._replace(unit_price=agreed, tier_mode="none", tiers=())
    elif part.row.account_id is None:
        return
    part.numerator = part.row.unit_price * part.quantity
    part.note("contracted", part.row.id if agreed is None else part.name, part.row.unit_price)


def apply_tiers(prices: Prices, part: Part, line: Line) -> None:
    row, quantity = part.row, part.quantity
    if part.listed.tier_mode == "package":
        part.listed_amount = charge(part.listed, quantity)
    if row.tier_mode == "none":
        return
    # Counted over the quote, a line bears the share of the whole charge that its quantity is of the whole quantity.
    counted = quantity + prices.others(line) if row.quantity_scope == "quote" else quantity
    part.numerator = charge(row, counted) * quantity
    part.denominator = counted
    if part.numerator % counted == 0:
        part.numerator, part.denominator = part.numerator // counted, 1
    part.note("tier", row.tier_mode, counted)


def charge(row: PriceRow, quantity: int) -> int:
    """What a quantity costs by the row's own tiers."""
    if row.tier_mode == "package":
        assert row.package_size is not None
        return packages(row, quantity) * row.unit_price
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
    return row.unit_price * quantity


def packages(row: PriceRow, quantity: int) -> int:
    assert row.package_size is not None
    return -(-max(0, quantity - row.free_quantity) // row.package_size)


def add_options(_prices: Prices, part: Part, _line: Line) -> None:
    priced = part.row.surcharges or part.listed.surcharges
    if not priced or not part.choices:
        return
    chosen = {
        name: priced[name][value] for name, value in part.choices.items() if name in priced and value in priced[name]
    }
    part.surcharge = sum(chosen.values())
    if not part.surcharge and not any(chosen.values()):
        return
    added = part.surcharge * part.quantity
    part.numerator = max(0, part.numerator + added * part.denominator)
    part.listed_amount = max(0, part.listed_amount + added)
    named = ", ".join(f"{name}={part.choices[name]}" for name in sorted(chosen))
    part.note("options", named, part.surcharge)


def apply_term(prices: Prices, part: Part, _line: Line) -> None:
    row, segment = part.row, part.segment
    periods, of = prices.factor(row.billing_period, segment.months)
    if segment.uplift:
        periods, of = periods * (ONE_HUNDRED_PERCENT + segment.uplift), of * ONE_HUNDRED_PERCENT
    if periods == of:
        return
    if periods % of == 0:
        periods, of = periods // of, 1
    part.numerator *= periods
    part.denominator *= of
    part.listed_amount = nearest(part.listed_amount * periods, of)
    if part.cost is not None:
        part.cost = nearest(part.cost * periods, of)
    part.note("term", row.billing_period, nearest(periods * 1_000_000, of))


def take_cost(_prices: Prices, part: Part, _line: Line) -> None:
    """What the quantity costs us for one period. An option costs as large a share of its price as the machine does."""
    row = part.row
    cost = part.listed.cost if row.cost is None else row.cost
    if cost is not None:
        if part.surcharge and part.listed.unit_price:
            base = part.listed.unit_price
            cost = nearest(cost * max(0, base + part.surcharge), base)
        cost *= packages(row, part.quantity) if row.tier_mode == "package" else part.quantity
    part.cost = cost


STAGES: tuple[Stage, ...] = (
    take_list_price,
    take_contracted_price,
    apply_tiers,
    add_options,
    take_cost,
    apply_term,
)
"""What happens to each part of a line, in this order; a stage that changes the amount leaves a step."""

_new_tuple = tuple.__new__
"""A third of the cost of calling a named tuple's class, and steps are made by the thousand."""


def adjust(
    adjustments: Sequence[Adjustment], quantity: int, numerator: int, denominator: int, listed: int
) -> tuple[int, int, list[Step]]:
    """Markups first, then percentages, then amounts. Of rules that stack as `best_of`, the best for the buyer acts."""
    steps: list[Step] = []
    for kind in ("markup", "percentage", "amount"):
        candidates = [adjustment for adjustment in adjustments if adjustment.kind == kind]
        rivals = sorted((a for a in candidates if a.stacking == "best_of"), key=lambda a: (a.value, a.rule_id))
        best = (rivals[0] if kind == "markup" else rivals[-1]) if rivals else None
        for rule in sorted(candidates, key=lambda a: a.rule_id):
            if rule.stacking == "best_of" and rule is not best:
                steps.append(Step("adjustment", nearest(numerator, denominator), f"{rule.rule_id} (not the best)", 0))
                continue
            if kind == "amount":
                off = rule.value * (quantity if rule.base == "unit" else 1) * denominator
            else:
                off = (listed * denominator if rule.base == "list" else numerator) * rule.value
                numerator, denominator = numerator * ONE_HUNDRED_PERCENT, denominator * ONE_HUNDRED_PERCENT
            numerator = numerator + off if kind == "markup" else max(0, numerator - off)
            steps.append(Step("adjustment", nearest(numerator, denominator), rule.rule_id, rule.value))
    return numerator, denominator, steps
