"""Rows of prices and price books in an imported file: fields and validation."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from cpq.base.rounding import PriceRounding
from cpq.domain import billing_periods
from cpq.domain.billing_periods import ONE_TIME
from cpq.domain.billing_terms import Billed, CancellationCredit
from cpq.domain.field_types import Amount, Currency, Day, Identifier, Name, Number, Row, Whole, Word, empty_as_absent

BOUND_MAX = 10**12


BillingPeriod = Annotated[str, Field(max_length=64), AfterValidator(billing_periods.billing_period)]
"""Once, or a week, a month, a quarter, a half-year, a year or a number of them, in the one spelling."""


class SellingModel(StrEnum):
    """What the price is for: once, for each period of a term or without an end, or for what is used in each period."""

    ONE_TIME = "one_time"
    TERM = "term"
    EVERGREEN = "evergreen"
    USAGE = "usage"

    @classmethod
    def of(cls, billing_period: str) -> SellingModel:
        """The model of a price that names none."""
        return cls.ONE_TIME if billing_period == ONE_TIME else cls.TERM


_ONLY_USAGE = ("unit", "minimum_spend", "maximum_spend")


class TierMode(StrEnum):
    NONE = "none"
    VOLUME = "volume"
    GRADUATED = "graduated"
    PACKAGE = "package"


class QuantityScope(StrEnum):
    """The quantity that selects a tier: one line's, or the product's over the whole quote."""

    LINE = "line"
    QUOTE = "quote"


class PriceBookRow(Row):
    id: Identifier
    name: Name
    region: Word | None = None
    is_default: bool = False
    base_currency: Annotated[Currency | None, BeforeValidator(empty_as_absent)] = None
    """With it, a price that the book has in this currency alone is converted into the currency of the quote."""
    price_rounding: Annotated[PriceRounding | None, BeforeValidator(empty_as_absent)] = None
    """How a converted price is rounded; left out, to the minor unit."""

    @model_validator(mode="after")
    def _rounds_what_it_converts(self) -> Self:
        if self.price_rounding and not self.base_currency:
            raise ValueError("price_rounding goes with base_currency: only converted prices are rounded by it")
        return self


class Tier(Row):
    """Quantities above the previous tier, up to and including `up_to`; the last tier is open (`up_to` absent)."""

    up_to: Annotated[Whole, Field(ge=1, le=BOUND_MAX)] | None = None
    unit_price: Amount
    flat_fee: Amount = Decimal(0)


class PriceRow(Row):
    """One price of one product, in a price book, or agreed with one account (a contracted price)."""

    id: Identifier | None = None
    product_id: Identifier
    price_book: Annotated[Identifier | None, BeforeValidator(empty_as_absent)] = None
    account_id: Annotated[Identifier | None, BeforeValidator(empty_as_absent)] = None
    currency: Currency
    unit_price: Amount
    billing_period: BillingPeriod = ONE_TIME
    selling_model: Annotated[SellingModel | None, BeforeValidator(empty_as_absent)] = None
    """Left out, `one_time` for a one-time price and `term` for any other."""
    name: Annotated[Word | None, BeforeValidator(empty_as_absent)] = None
    """Keeps prices of the same billing period apart: a line picks with `prepaid` or `yearly:prepaid`."""
    tier_mode: TierMode = TierMode.NONE
    tiers: tuple[Tier, ...] = ()
    quantity_scope: QuantityScope = QuantityScope.LINE
    package_size: Annotated[Whole, Field(ge=1, le=BOUND_MAX)] | None = None
    free_quantity: Annotated[Whole, Field(ge=0, le=BOUND_MAX)] = 0
    priority: Annotated[Whole, Field(ge=-1000, le=1000)] = 0
    valid_from: Annotated[Day | None, BeforeValidator(empty_as_absent)] = None
    valid_to: Annotated[Day | None, BeforeValidator(empty_as_absent)] = None
    cost: Annotated[Amount | None, BeforeValidator(empty_as_absent)] = None
    tax_category: Word = "standard"
    tax_included: bool = False
    surcharges: dict[Word, dict[str, Number]] = Field(default_factory=dict)
    unit: Annotated[Word | None, BeforeValidator(empty_as_absent)] = None
    """What a usage price counts, such as `API call`."""
    minimum_spend: Annotated[Amount | None, BeforeValidator(empty_as_absent)] = None
    maximum_spend: Annotated[Amount | None, BeforeValidator(empty_as_absent)] = None
    """Of a usage price, for each billing period."""
    billed: Annotated[Billed | None, BeforeValidator(empty_as_absent)] = None
    """Left out, a period is due at its start."""
    cancellation_credit: Annotated[CancellationCredit | None, BeforeValidator(empty_as_absent)] = None
    """Left out, the rest of a cancelled line is given back by days."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.price_book is None) == (self.account_id is None):
            raise ValueError("a price has either a price_book or, when contracted, an account_id")
        if self.valid_from and self.valid_to and self.valid_from > self.valid_to:
            raise ValueError("valid_from is after valid_to")
        if (self.tier_mode is TierMode.PACKAGE) != (self.package_size is not None):
            raise ValueError("package_size goes with the tier mode package, and only with it")
        if (self.sold_as is SellingModel.ONE_TIME) != (self.billing_period == ONE_TIME):
            raise ValueError("the selling model one_time goes with the billing period one_time, and only with it")
        if self.name and (":" in self.name or _is_reserved(self.name)):
            raise ValueError("the name of a price has no colon and is no billing period or selling model")
        if self.free_quantity and self.package_size is None and self.sold_as is not SellingModel.USAGE:
            raise ValueError("free_quantity goes with the tier mode package or the selling model usage")
        if self.billing_period == ONE_TIME and (self.billed or self.cancellation_credit):
            raise ValueError("billed and cancellation_credit go with a billing period: a purchase is due once")
        self._check_usage()
        self._check_tiers()
        self._check_surcharges()
        return self

    def _check_tiers(self) -> None:
        """Bounds are shared and half-open, so a gap or an overlap cannot be written; only the order is checked."""
        if bool(self.tiers) != (self.tier_mode in (TierMode.VOLUME, TierMode.GRADUATED)):
            raise ValueError("tiers go with the tier modes volume and graduated, and only with them")
        bounds = [tier.up_to for tier in self.tiers]
        if bounds and bounds[-1] is not None:
            raise ValueError("the last tier is open: leave its up_to out")
        closed = [bound for bound in bounds[:-1] if bound is not None]
        if len(closed) != len(bounds[:-1]):
            raise ValueError("only the last tier is open: every other one has up_to")
        if closed != sorted(set(closed)):
            raise ValueError("the tiers' up_to values rise")

    def _check_usage(self) -> None:
        if self.sold_as is not SellingModel.USAGE:
            given = [name for name in _ONLY_USAGE if getattr(self, name) is not None]
            if given:
                raise ValueError(f"{given[0]} goes with the selling model usage, and only with it")
            return
        if not self.unit:
            raise ValueError("a usage price names the unit that it counts, such as `API call`")
        if self.surcharges or self.tax_included or self.quantity_scope is not QuantityScope.LINE:
            raise ValueError("a usage price has no surcharges, is without tax, and counts per line")
        least, most = self.minimum_spend or Decimal(0), self.maximum_spend
        if most is not None and (most < least or not most):
            raise ValueError("maximum_spend is above 0, and not below minimum_spend")

    def _check_surcharges(self) -> None:
        """An agreed price replaces what it could be taken off; a list price stops at zero, or reduces a bundle."""
        dearest = max([self.unit_price, *(tier.unit_price + tier.flat_fee for tier in self.tiers)])
        reductions = [-amount for amounts in self.surcharges.values() for amount in amounts.values()]
        if self.account_id and max(reductions, default=Decimal(0)) > dearest:
            raise ValueError("a reduction by an option is larger than the agreed price")

    @property
    def sold_as(self) -> SellingModel:
        return self.selling_model or SellingModel.of(self.billing_period)

    def key(self) -> str:
        """The row's id: as given, or built from its distinguishing fields, so that a re-import finds it again."""
        owner = f"book={self.price_book}" if self.price_book else f"account={self.account_id}"
        parts = [owner, self.product_id, self.currency, self.billing_period, self.valid_from or "always", self.priority]
        if self.sold_as in (SellingModel.EVERGREEN, SellingModel.USAGE):
            parts.append(self.sold_as)
        if self.name:
            parts.append(f"name={self.name}")
        return self.id or "|".join(map(str, parts))


def _is_reserved(name: str) -> bool:
    """Whether a line picks prices without a name with this word."""
    return name.casefold() in frozenset(SellingModel) or billing_periods.spelling(name) is not None
