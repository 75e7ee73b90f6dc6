"""PURE. The pricing request: everything a price depends on, so that it can be computed again from the request alone.

Amounts are whole millionths of the currency's unit and percentages whole millionths of a percent, as in the database:
exact, small and fast. Days are ISO dates, which sort as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from cpq.base.rounding import Exact, nearest

ONE_HUNDRED_PERCENT = 100_000_000
"""In millionths of a percent."""

WRITTEN_MAX = 10_000
"""Number of products whose JSON values are cached."""

EDITION = 5
"""The edition of the rules for new requests; each edition keeps its rules, so that stored requests replay exactly.

From 2 on, equal lines claim odd cents by line number, and halves of negative amounts in steps round away from zero.
From 3 on, the free units of a product count once in a quote, shared by its lines, and have their cost.
From 4 on, tax that is rounded for the document is not charged on what a price or discount in money takes off.
From 5 on, a line that is charged by its use and puts nothing into the total has the margin of its rates.
"""


Quantity = int | Decimal
"""Of a line; a decimal only where it is not whole, with up to three decimals."""


class Tier(NamedTuple):
    """Units above the previous tier, up to and including `up_to`; the last tier is open."""

    up_to: int | None
    unit_price: int
    flat_fee: int = 0


class Derived(NamedTuple):
    """The price in another currency from which a price was converted, and how."""

    currency: str
    unit_price: int
    rate: int
    """Units of the quote's currency for one of the other, divided by `rate_of`."""
    rate_of: int
    rates_as_of: str
    rounding: str
    cost: int | None = None

    @property
    def shown_rate(self) -> int:
        """The rate for people, in millionths."""
        return nearest(self.rate * 1_000_000, self.rate_of)


class PriceRow(NamedTuple):
    """One price of one product, from a price book or agreed with an account."""

    id: str
    unit_price: int
    price_book_id: str | None = None
    account_id: str | None = None
    billing_period: str = "one_time"
    tier_mode: str = "none"
    tiers: tuple[Tier, ...] = ()
    quantity_scope: str = "line"
    package_size: int | None = None
    free_quantity: int = 0
    priority: int = 0
    valid_from: str | None = None
    valid_to: str | None = None
    cost: int | None = None
    tax_category: str = "standard"
    tax_included: bool = False
    surcharges: Mapping[str, Mapping[str, int]] = {}
    """Per unit, by option and by the chosen value as text."""
    is_evergreen: bool = False
    """Billed by the period without an end, so that a quote charges one period whatever its term."""
    name: str = ""
    derived: Derived | None = None
    """Where it comes from, if its price book has it only in another currency."""
    is_usage: bool = False
    """A rate card: what is used in each billing period is charged; `free_quantity` is included in each."""
    unit: str = ""
    """What a rate card counts, such as `API call`."""
    minimum_spend: int | None = None
    maximum_spend: int | None = None
    """Of a rate card, for each billing period."""
    billed: str = "advance"
    """Whether a period is due at its start or, with `arrears`, at its end."""
    cancellation_credit: str = "prorated"
    """What is given back for the rest of a cancelled line: `none`, `prorated`, `full_periods`."""

    @property
    def selling_model(self) -> str:
        """What a line picks it with."""
        return selling_model(self.billing_period, self.is_evergreen, self.name, self.is_usage)


class Component(NamedTuple):
    product_id: str
    quantity: int


class ChosenComponent(NamedTuple):
    """A component of one unit of a bundle that the buyer chose."""

    product_id: str
    quantity: int
    is_included: bool = False
    """Whether the price of the bundle includes it, so that it is charged nothing."""


class Product(NamedTuple):
    """A product's candidate prices, and the components of a bundle that is priced by them."""

    rows: tuple[PriceRow, ...]
    components: tuple[Component, ...] = ()
    bundle_discount: int = 0


class Segment(NamedTuple):
    """A part of a ramp with its own quantity, price, uplift or discount."""

    months: int
    quantity: int | None = None
    unit_price: int | None = None
    """Agreed with the account, so that it replaces list and contracted price."""
    uplift: int = 0
    override: int | None = None
    """Given by the seller instead of the regular price, like the line's `override`."""
    discount: int = 0
    until: str | None = None
    """Its last day, as long as its months are not counted yet."""


class Adjustment(NamedTuple):
    """The effect of a pricing rule on a line; the value is a percentage of `base`, or an amount off."""

    rule_id: str
    kind: str
    value: int
    base: str
    stacking: str = "sequential"


class LineTerm(NamedTuple):
    """The dates of a line that differ from the quote's: all three, by months or by the last day."""

    months: int | None = None
    starts_on: str | None = None
    ends_on: str | None = None
    left: str = ""
    """Of the line of an agreement: what its own calendar has left, exactly: `10 months`, `37/31 months`, `9 weeks`."""
    anchored_on: str | None = None
    """The day from which a new line of an agreement counts its periods, together with the agreement's other lines."""
    part_periods: str = ""
    """How parts of a period are counted, where it is another mode than the quote's."""


class Usage(NamedTuple):
    """What a line of a rate card commits to, by a quantity or an amount for each period, and what is expected."""

    quantity: Quantity | None = None
    amount: int | None = None
    per: str = ""
    """The period of the commitment; empty for that of the price."""
    expected: Quantity | None = None
    """For each period of the price; it gives an estimate, which is in no total."""

    @property
    def is_committed(self) -> bool:
        return self.quantity is not None or self.amount is not None


class Line(NamedTuple):
    id: str
    product_id: str
    quantity: Quantity
    """On a ramp, the quantity of segments that have none of their own."""
    discount: int = 0
    choices: Mapping[str, str] = {}
    ramp: tuple[Segment, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    selling_model: str = ""
    """Only prices of this model compete; empty where the product has only one."""
    part_models: Mapping[str, str] = {}
    """The same for components of a bundle, by their product."""
    override: int | None = None
    """The price of a unit, of a recurring one for a period, that the seller gives instead of the regular price."""
    amount_off: int = 0
    """A discount on the line as an amount, instead of `discount`."""
    term: LineTerm | None = None
    """Where it is another than the quote's."""
    usage: Usage | None = None
    """Only for a rate card."""
    credit: int = 0
    """The value that the line of an agreement had from this day on, which is given back."""
    priced_as: str = ""
    """The key in `products` of the prices that the line of an agreement keeps; empty for its product's own."""
    settled: int | None = None
    """The net that was agreed for exactly these days before, which rounding must not change."""
    chosen: tuple[ChosenComponent, ...] = ()
    """What the buyer chose for a bundle, in addition to the components that each of it has."""

    @property
    def charged(self) -> tuple[Component, ...]:
        """The chosen components that have a price beside that of the bundle."""
        return tuple([Component(part.product_id, part.quantity) for part in self.chosen if not part.is_included])

    @property
    def price_key(self) -> str:
        return self.priced_as or self.product_id


class Tax(NamedTuple):
    """One of several taxes on a line; its base includes those that it is on top of."""

    name: str
    code: str
    rate: int
    on_top_of: tuple[str, ...] = ()


class Request(NamedTuple):
    """A complete quote to be priced: no clock, setting or table is needed."""

    currency: str
    as_of: str
    lines: tuple[Line, ...]
    products: Mapping[str, Product]
    price_books: tuple[str, ...]
    """In order of precedence: the account's, its region's, the default one."""
    tax_rates: Mapping[str, int]
    """By tax category, for the account's zone; where it has several taxes, all together, for people."""
    tax_status: str = "taxable"
    tax_note: str | None = None
    term_months: int | None = None
    starts_on: str | None = None
    ends_on: str | None = None
    """The last day of a term that is not a number of months."""
    requested_discount: int = 0
    rounding: str = "half_up"
    tax_rounding: str = "group"
    part_periods: str = "whole_months"
    tax_codes: Mapping[str, str] = {}
    """By tax category, the code of EN 16931. Without codes, each category is a tax group of its own."""
    tax_reasons: Mapping[str, str] = {}
    """By tax category, why no tax is charged."""
    edition: int = 1
    taxes: Mapping[str, tuple[Tax, ...]] = {}
    """By tax category, where a line bears several taxes."""
    requested_amount: int = 0
    """The discount on the quote as an amount, instead of `requested_discount`."""


def selling_model(billing_period: str, is_evergreen: bool, name: str, is_usage: bool = False) -> str:
    """The word for a selling model: `monthly`, `monthly_evergreen`, with the name of the price `yearly:prepaid`."""
    model = f"{billing_period}_evergreen" if is_evergreen else billing_period
    if is_usage:
        model = f"{billing_period}_usage"
    return f"{model}:{name}" if name else model


def exact(quantity: Quantity) -> Exact:
    """A quantity to calculate with."""
    return quantity if quantity.__class__ is int else Fraction(quantity)


def largest_quantity(quantity: Quantity, ramp: Iterable[Segment]) -> Quantity:
    """The largest quantity of a line; a segment without a quantity has the line's."""
    return max([segment.quantity or quantity for segment in ramp], default=quantity)


def mean_quantity(quantity: Quantity, ramp: Iterable[Segment]) -> tuple[int, int]:
    """The mean quantity over the term, as a fraction: the units of a ramp times their months, and its months.

    The quantities of a ramp are whole.
    """
    if not isinstance(quantity, int):
        return quantity.as_integer_ratio()
    weighed = [((segment.quantity or quantity) * segment.months, segment.months) for segment in ramp]
    return (sum([units for units, _ in weighed]), sum([months for _, months in weighed])) if weighed else (quantity, 1)


def dump(request: Request) -> dict[str, Any]:
    """The request as JSON values, without defaults."""
    plain = _sparse(request)
    plain["lines"] = list(map(_dump_line, request.lines))
    plain["products"] = {id_: _dump_product(product) for id_, product in request.products.items()}
    return plain


def load(plain: Mapping[str, Any]) -> Request:
    """The request that `dump` wrote."""
    lines = tuple(_load_line(line) for line in plain["lines"])
    products = {id_: _load_product(product) for id_, product in plain["products"].items()}
    books = tuple(plain["price_books"])
    taxes = {category: tuple(map(_load_tax, taxes)) for category, taxes in plain.get("taxes", {}).items()}
    return Request(**{**plain, "lines": lines, "products": products, "price_books": books, "taxes": taxes})


def _dump_line(line: Line) -> dict[str, Any]:
    """Written by hand for speed, because there are many lines."""
    id_, product_id, quantity, discount, choices, ramp, adjustments, selling_model, part_models, *own = line
    plain: dict[str, Any] = {"id": id_, "product_id": product_id, "quantity": quantity}
    if discount:
        plain["discount"] = discount
    if choices:
        plain["choices"] = choices
    if ramp or adjustments:
        plain["ramp"] = [_sparse(segment) for segment in ramp]
        plain["adjustments"] = [_sparse(adjustment) for adjustment in adjustments]
    if selling_model:
        plain["selling_model"] = selling_model
    if part_models:
        plain["part_models"] = part_models
    if own != _NOTHING_OWN:
        given = zip(_OWN, own, _NOTHING_OWN, strict=True)
        plain |= {name: value for name, value, default in given if value != default}
        if line.term is not None:
            plain["term"] = _sparse(line.term)
        if line.usage is not None:
            plain["usage"] = _sparse(line.usage)
    return plain


_OWN = Line._fields[9:]
_NOTHING_OWN = [None, 0, None, None, 0, "", None, ()]


def _dump_product(product: Product) -> dict[str, Any]:
    """Cached as long as the product is the same object, because many quotes contain it."""
    known = _WRITTEN.get(id(product))
    if known is None:
        if len(_WRITTEN) >= WRITTEN_MAX:
            _WRITTEN.clear()
        known = _WRITTEN[id(product)] = product, _written(product)
    return known[1]


_WRITTEN: dict[int, tuple[Product, dict[str, Any]]] = {}
"""Holds the product itself, so that no other object can get its id."""


def _written(product: Product) -> dict[str, Any]:
    rows = [_sparse(row) for row in product.rows]
    is_bundle = product.components or product.bundle_discount
    return {**_sparse(product), "rows": rows} if is_bundle else {"rows": rows}


def _sparse(value: Any) -> dict[str, Any]:
    return {
        name: part
        for name, part, default in zip(value._fields, value, _defaults(value.__class__), strict=True)
        if part is not default and part != default
    }


@cache
def _defaults(kind: type[Any]) -> tuple[object, ...]:
    """The default of each field; for a required field, a value that nothing equals."""
    return tuple(kind._field_defaults.get(name, object()) for name in kind._fields)


def _load_tax(plain: Any) -> Tax:
    name, code, rate, below = plain
    return Tax(name, code, rate, tuple(below))


def _load_line(plain: Mapping[str, Any]) -> Line:
    ramp = tuple(Segment(**segment) for segment in plain.get("ramp", ()))
    adjustments = tuple(Adjustment(**adjustment) for adjustment in plain.get("adjustments", ()))
    term = LineTerm(**plain["term"]) if "term" in plain else None
    usage = Usage(**plain["usage"]) if "usage" in plain else None
    chosen = tuple(ChosenComponent(*component) for component in plain.get("chosen", ()))
    own = {"ramp": ramp, "adjustments": adjustments, "term": term, "usage": usage, "chosen": chosen}
    return Line(**{**plain, **own})


def _load_row(plain: Mapping[str, Any]) -> PriceRow:
    tiers = tuple(Tier(*tier) for tier in plain.get("tiers", ()))
    derived = plain.get("derived")
    return PriceRow(**{**plain, "tiers": tiers, "derived": Derived(*derived) if derived else None})


def _load_product(plain: Mapping[str, Any]) -> Product:
    rows = tuple(map(_load_row, plain["rows"]))
    components = tuple(Component(*component) for component in plain.get("components", ()))
    return Product(rows, components, plain.get("bundle_discount", 0))
