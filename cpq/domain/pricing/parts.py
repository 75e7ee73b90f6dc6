"""PURE. What goes down the waterfall: the price of a line, or of one part of it, with the plan for its product."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cpq.base.rounding import Exact, divide, nearest
from cpq.domain.pricing.request import Component, Line, PriceRow, Segment
from cpq.domain.pricing.result import Stage, Step, new_tuple

WHOLE_TERM = Segment(0)
"""The segment of what is not on a ramp."""


class Term(NamedTuple):
    """How many billing periods a price falls due for, as a fraction, and that number for people, in millionths."""

    periods: int
    of: int
    shown: int

    def times(self, amount: Exact) -> Exact:
        """What an amount for one period comes to."""
        return amount * self.periods if self.of == 1 else divide(amount * self.periods, self.of)


ONCE = Term(1, 1, 1_000_000)


@dataclass(slots=True)
class Plan:
    """What is decided about a product once for the whole quote."""

    product_id: str
    listed: PriceRow
    """The list price; the contracted one where there is no list price."""
    row: PriceRow
    """The price that is charged."""
    costs: PriceRow
    """The price that says what we pay; it may say nothing."""
    is_listed: bool
    is_contracted: bool
    billing_period: str
    tax_category: str
    is_tax_included: bool
    term: Term
    """The whole one; a segment of a ramp has its own."""
    is_like_list: bool
    """Billed as often as the list price, and with tax as it is: amounts of both can be added and compared."""
    components: tuple[Component, ...] = ()
    """Those of a bundle that is priced by them: its own list price carries the options and nothing else."""
    bundle_discount: int = 0


@dataclass(slots=True)
class Part:
    """One price on its way through the stages: a line's own, a component's, or that of one segment of a ramp.

    `amount` is what it comes to after the stages so far, `listed` what it lists at, both exact and in millionths.
    """

    line: Line
    plan: Plan
    quantity: int
    choices: Mapping[str, str]
    segment: Segment = WHOLE_TERM
    offset: int = 0
    """The months of the ramp before the segment."""
    name: str = ""
    amount: Exact = 0
    listed: Exact = 0
    cost: Exact | None = None
    surcharge: int = 0
    """What the chosen options add to a unit."""
    term: Term = ONCE
    listed_term: Term = ONCE
    divisor: int = 1
    listed_divisor: int = 1
    """What both amounts were divided by, not reduced. Only the discount off list of a free line depends on it."""
    steps: tuple[Step, ...] = ()

    def note(self, stage: Stage, amount: Exact, source: str, value: int | None) -> None:
        """Add the step of a stage that acted to the trace: the amount after it, what decided, and by how much."""
        shown = amount if isinstance(amount, int) else nearest(amount.numerator, amount.denominator)
        self.steps += (new_tuple(Step, (stage, shown, source, value, self.name)),)


@dataclass(slots=True)
class LinePrice(Part):
    """The price of a whole line. From the line discount on, its amounts are rounded to minor units."""

    list_amount: int = field(init=False)
    regular: int = field(init=False)
    net: int = field(init=False)
    """The customer price, until the quote discount lowers it."""
    tax_weights: tuple[tuple[str, int], ...] = ()
    """Tax categories with their weights, for a bundle that has several."""
