"""PURE. The result of pricing: the totals, the lines, and for each line the steps that led to its amount."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from cpq.base.rounding import nearest
from cpq.domain.pricing.request import Quantity

MIXED = "mixed"
"""The tax category or billing period of a bundle whose parts have several."""


class Stage(StrEnum):
    """The stages of the waterfall in order, by the names under which their steps are stored.

    Modules of stages look up their member once: before Python 3.12 a lookup takes as long as making a step.
    """

    LIST = "list"
    CURRENCY = "currency"
    CONTRACTED = "contracted"
    TIER = "tier"
    USAGE = "usage"
    OPTIONS = "options"
    TERM = "term"
    ADJUSTMENT = "adjustment"
    OVERRIDE = "override"
    LINE_DISCOUNT = "line discount"
    QUOTE_DISCOUNT = "quote discount"
    TAX = "tax"
    CREDIT = "credit"
    """Of an agreement: what the line was worth before from its day on."""
    COST_AND_MARGIN = "cost and margin"


new_tuple = tuple.__new__
"""Makes a step or a line in half the time of calling its class; a quote has thousands of them."""


class Step(NamedTuple):
    """The effect of one stage on a line: the amount after it, the source that decided, and its value."""

    stage: Stage
    amount: int
    source: str = ""
    value: int | None = None
    part: str = ""
    """The component of a bundle or the segment of a ramp, when the step is about only that part."""


class PricedLine(NamedTuple):
    """A line's amounts without tax. `discount` is the discretionary discount in percent: line and quote together."""

    id: str
    product_id: str
    quantity: Quantity
    """On a ramp, the largest."""
    list_amount: int
    regular: int
    net: int
    discount: int
    discount_off_list: int
    cost: int | None
    margin: int | None
    billing_period: str
    tax_category: str
    steps: tuple[Step, ...]
    mean_quantity: tuple[int, int] | None = None
    """On a ramp, its units times their months, and its months: the quantity for the unit price."""

    @property
    def discount_amount(self) -> int:
        return self.regular - self.net

    @property
    def units(self) -> tuple[int, int]:
        """The quantity that unit prices divide by, as a fraction."""
        return self.mean_quantity or self.quantity.as_integer_ratio()

    @property
    def base_unit_price(self) -> int:
        return unit_price(self.regular, *self.units)

    @property
    def unit_price(self) -> int:
        return unit_price(self.net, *self.units)


class TaxGroup(NamedTuple):
    """The tax of all amounts with the same category code and rate, or of one category where a request has no codes."""

    category: str
    """The seller's own categories in this group."""
    rate: int
    base: int
    tax: int
    code: str | None = None
    """S, Z, E, AE, K, G or O, by EN 16931."""
    reason: str | None = None
    """Why no tax is charged."""
    name: str | None = None
    """The tax, where lines bear several; its base then may include other taxes."""


class PricedQuote(NamedTuple):
    """Always: subtotal - discount_total + tax_total = total, and the lines, less what they give back, add up to it."""

    currency: str
    lines: tuple[PricedLine, ...]
    subtotal: int
    discount_total: int
    tax_total: int
    total: int
    tax_groups: tuple[TaxGroup, ...]
    tax_note: str | None
    discount: int
    discount_off_list: int
    cost: int | None
    margin: int | None

    @property
    def net(self) -> int:
        return self.subtotal - self.discount_total


def unit_price(amount: int, quantity: int, of: int = 1) -> int:
    """The amount per unit for `quantity / of` units, to six decimals, or fewer when it would have over 15 digits."""
    micro = nearest(amount * of, quantity)
    if micro < 10**15:
        return micro
    surplus: int = 10 ** max(0, len(str(micro)) - 15)
    return nearest(micro, surplus) * surplus


def dump(priced: PricedQuote) -> dict[str, Any]:
    """The result as JSON values, for hash and storage. Lines and steps are lists of fields, which saves a third."""
    return priced._replace(tax_groups=_stored_groups(priced))._asdict()


def shown(priced: PricedQuote) -> list[Any]:
    """The result as JSON values without costs and margins, so that its hash may be shown and reveals nothing."""
    *public, _, _ = priced._replace(tax_groups=_stored_groups(priced))
    lines = [(*line[:_COST], *line[_COST + 2 :]) for line in priced.lines]
    return [lines, *(value for value in public if value is not priced.lines)]


_COST = PricedLine._fields.index("cost")


def _stored_groups(priced: PricedQuote) -> tuple[Any, ...]:
    """Groups keep the fields that they had before there were codes, or names of taxes."""
    return tuple(group if group.name else group[:_NAME] if group.code else group[:_CODE] for group in priced.tax_groups)


_CODE, _NAME = TaxGroup._fields.index("code"), TaxGroup._fields.index("name")


def load(plain: dict[str, Any], *, with_steps: bool = True) -> PricedQuote:
    """The result that `dump` wrote; without steps, its largest part, for callers that need only amounts."""
    lines = tuple(
        PricedLine._make((*known, tuple(map(_load_step, steps)) if with_steps else (), tuple(mean) if mean else None))
        for *known, steps, mean in plain["lines"]
    )
    groups = tuple(TaxGroup(*group) for group in plain["tax_groups"])
    return PricedQuote(**{**plain, "lines": lines, "tax_groups": groups})


def _load_step(plain: list[Any]) -> Step:
    stage, *rest = plain
    return Step(Stage(stage), *rest)
