"""PURE. The values that the stages change: the price of a line, or of one part of it, with its product's plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from cpq.base.rounding import Exact, divide, nearest
from cpq.domain.pricing.request import Component, Line, PriceRow, Segment
from cpq.domain.pricing.result import Stage, Step, new_tuple

if TYPE_CHECKING:
    from cpq.domain.pricing.terms import Terms

WHOLE_TERM = Segment(0)
"""The segment of a line without a ramp."""


class Term(NamedTuple):
    """The number of billing periods, as a fraction, and for people in millionths."""

    periods: int
    of: int
    shown: int

    def times(self, amount: Exact) -> Exact:
        """An amount for one period, over the whole term."""
        return amount * self.periods if self.of == 1 else divide(amount * self.periods, self.of)


ONCE = Term(1, 1, 1_000_000)


@dataclass(slots=True)
class Plan:
    """The decisions about a product that hold for the whole quote."""

    product_id: str
    listed: PriceRow
    """The list price, or the contracted price without one."""
    row: PriceRow
    """The charged price."""
    costs: PriceRow
    """The price with our cost, if there is a cost."""
    is_listed: bool
    is_contracted: bool
    billing_period: str
    tax_category: str
    is_tax_included: bool
    terms: Terms
    """Of the quote, or of a line with dates of its own."""
    term: Term
    """The whole term; a segment of a ramp has its own."""
    is_like_list: bool
    """Billed and taxed like the list price, so that amounts of both can be added and compared."""
    components: tuple[Component, ...] = ()
    """The components of a bundle that is priced by them; its own list price covers only the options."""
    bundle_discount: int = 0
    shares_free_units: bool = False
    """Whether it has free units, which all its lines in the quote share; before the third edition each had its own."""
    rounds_half_away: bool = False
    """Whether halves of negative amounts in steps round away from zero; requests of the first edition round them up."""
    is_plain: bool = True
    """Whether it has one price for a quantity: it is neither priced by components nor charged by its use."""


@dataclass(slots=True)
class Part:
    """One price that goes through the stages: a line's own, a component's, or that of one segment of a ramp.

    `amount` is its amount after the stages so far, `listed` its list amount, both exact and in millionths.
    """

    line: Line
    plan: Plan
    quantity: Exact
    choices: Mapping[str, str]
    segment: Segment = WHOLE_TERM
    offset: int = 0
    """Months of the ramp before the segment."""
    name: str = ""
    amount: Exact = 0
    listed: Exact = 0
    cost: Exact | None = None
    surcharge: int = 0
    """The surcharge of the chosen options per unit."""
    term: Term = ONCE
    listed_term: Term = ONCE
    among: Exact | None = None
    """The units of the quote that share the free ones of the product; None where each line has its own."""
    divisor: int = 1
    listed_divisor: int = 1
    """The unreduced divisor of both amounts. Only the discount off list of a free line depends on it."""
    steps: tuple[Step, ...] = ()

    def note(self, stage: Stage, amount: Exact, source: str, value: int | None) -> None:
        """Add the step of a stage to the trace: the amount after it, the source that decided, and its value."""
        shown = amount if isinstance(amount, int) else self._shown(amount)
        self.steps += (new_tuple(Step, (stage, shown, source, value, self.name)),)

    def _shown(self, amount: Fraction) -> int:
        if amount < 0 and self.plan.rounds_half_away:
            return -nearest(-amount.numerator, amount.denominator)
        return nearest(amount.numerator, amount.denominator)


class OwnPrice(NamedTuple):
    """A segment of a ramp before rules, with the price or the discount that the seller gave it."""

    amount: Exact
    typed_in: Exact | None
    discount: int


@dataclass(slots=True)
class LinePrice(Part):
    """The price of a whole line. From the line discount on, its amounts are rounded to minor units."""

    list_amount: int = field(init=False)
    regular: int = field(init=False)
    net: int = field(init=False)
    """The customer price, until the quote discount lowers it."""
    given: Exact | None = None
    """The amount that the seller gives instead of the regular one."""
    own: tuple[OwnPrice, ...] | None = None
    """The segments of its ramp, where one has a price or a discount of its own."""
    has_one_term: bool = True
    """Whether all its parts are charged for the same number of periods."""
    tax_weights: tuple[tuple[str, int], ...] = ()
    """Tax categories with their weights, for a bundle that has several."""
