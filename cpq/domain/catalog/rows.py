"""PURE. What one row of an imported file may say: categories, products, prices, accounts, each with its bounds."""

from __future__ import annotations

import re
import zoneinfo
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, model_validator

from cpq.base.money import MINOR_DIGITS, SIGNIFICANT_DIGITS_MAX, significant_digits, to_micro
from cpq.base.text import clean, clean_identifier, clean_line

AMOUNT_MAX = Decimal(10) ** 12
QUANTITY_MAX = 1_000_000
BOUND_MAX = 10**12


class ProductType(StrEnum):
    SIMPLE = "simple"
    CONFIGURABLE = "configurable"
    BUNDLE = "bundle"
    SERVICE = "service"


class Relation(StrEnum):
    REQUIRES = "requires"
    EXCLUDES = "excludes"
    RECOMMENDS = "recommends"
    COMPONENT = "component"
    SUBSTITUTE = "substitute"


class BillingPeriod(StrEnum):
    ONE_TIME = "one_time"
    MONTHLY = "monthly"
    QUARTERLY = "quarterly"
    YEARLY = "yearly"


class TierMode(StrEnum):
    NONE = "none"
    VOLUME = "volume"
    GRADUATED = "graduated"
    PACKAGE = "package"


class QuantityScope(StrEnum):
    """Whose quantity reaches a tier: one line's, or the product's over the whole quote."""

    LINE = "line"
    QUOTE = "quote"


class BundlePricing(StrEnum):
    OWN = "own"
    COMPONENTS = "components"
    COMPONENTS_LESS_PERCENT = "components_less_percent"


class TaxStatus(StrEnum):
    TAXABLE = "taxable"
    EXEMPT = "exempt"
    REVERSE_CHARGE = "reverse_charge"


def _identifier(text: str) -> str:
    if _IDENTIFIER.fullmatch(text):
        return text
    text = clean_identifier(text)
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError("is made of letters, digits and _ . : - and starts with a letter or a digit")
    return text


def _exact(value: object) -> object:
    if isinstance(value, float):
        raise ValueError("is a binary float; write the number as text")
    # Decimal would read more than people write: 1_000, other scripts' digits.
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        raise ValueError("is not a number")
    return value


def _finite(number: Decimal) -> Decimal:
    if not number.is_finite():
        raise ValueError("is a finite number")
    if number.copy_abs() > AMOUNT_MAX:  # Not abs(), which overflows.
        raise ValueError(f"is beyond {AMOUNT_MAX:f}")
    if significant_digits(number) > SIGNIFICANT_DIGITS_MAX:
        raise ValueError(f"has more than {SIGNIFICANT_DIGITS_MAX} significant digits")
    to_micro(number)
    return number or Decimal(0)  # Not -0.


def _counted(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("is a boolean, not a whole number")
    return value


def _day(value: object) -> object:
    # A bare number would be read as seconds since 1970.
    if isinstance(value, int | float | Decimal) or (isinstance(value, str) and not _ISO_DAY.fullmatch(value)):
        raise ValueError("is not a date such as 2026-01-31")
    return value


def _storable(value: Any) -> Any:
    """A free value with every text in it cleaned; its depth is bounded by the reader of the file."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_storable(name): _storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    if isinstance(value, float):
        raise ValueError("holds a binary float")
    return _finite(value) if isinstance(value, Decimal) else value


def _currency(code: str) -> str:
    code = code.strip().upper()
    if code not in MINOR_DIGITS:
        raise ValueError("is not an ISO 4217 currency code")
    return code


def _country(code: str) -> str:
    if not _COUNTRY.fullmatch(code):
        raise ValueError("is not two capital letters such as DE or US")
    return code


def _locale(name: str) -> str:
    if not _LOCALE.fullmatch(name):
        raise ValueError("is not a language, or language and country, such as de or en_US")
    return name


def _time_zone(name: str) -> str:
    # Not zoneinfo.ZoneInfo(name): that would read a file the row names.
    if name not in _time_zones():
        raise ValueError("is not an IANA time zone such as Europe/Berlin")
    return name


@cache
def _time_zones() -> set[str]:
    return zoneinfo.available_timezones()


def _empty_as_absent(value: object) -> object:
    return None if value == "" else value


_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_COUNTRY = re.compile(r"[A-Z]{2}")
_LOCALE = re.compile(r"[a-z]{2,3}([_-][A-Za-z]{4})?([_-][A-Z]{2})?")
_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Identifier = Annotated[str, Field(max_length=64), AfterValidator(_identifier)]
CategoryId = Annotated[Identifier, AfterValidator(str.lower)]
"""Categories are known by words in small letters, so that a search need not guess."""

Name = Annotated[str, Field(max_length=200), AfterValidator(clean_line)]
Word = Annotated[str, Field(max_length=64), AfterValidator(clean_line)]
Prose = Annotated[str, Field(max_length=20_000), AfterValidator(clean)]
Number = Annotated[Decimal, BeforeValidator(_exact), AfterValidator(_finite)]
Amount = Annotated[Number, Field(ge=0)]
Whole = Annotated[int, BeforeValidator(_counted)]
Day = Annotated[date, BeforeValidator(_day)]
Currency = Annotated[str, AfterValidator(_currency)]
Free = Annotated[Any, AfterValidator(_storable)]
Scalar = StrictBool | Number | Annotated[str, Field(max_length=1000), AfterValidator(clean)]


class Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SpecDefinition(Row):
    """A filterable property of every product of a category: a number in one unit, or one of listed words."""

    kind: Literal["number", "enum"]
    unit: Word | None = None
    values: tuple[Word, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "enum" and not self.values:
            raise ValueError("an enum spec lists its values")
        if self.kind == "number" and not self.unit:
            raise ValueError("a number spec names its unit")
        return self


class AttributeDefinition(Row):
    """A typed fact about every product of a category; not filtered by, but checked and shown."""

    type: Literal["text", "integer", "number", "boolean", "date", "enum"]
    values: tuple[Word, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.type == "enum") != bool(self.values):
            raise ValueError("values go with the type enum, and only with it")
        return self


class CategoryRow(Row):
    id: CategoryId
    name: Name
    specs: dict[Word, SpecDefinition] = Field(default_factory=dict)
    attributes: dict[Word, AttributeDefinition] = Field(default_factory=dict)


class Relationship(Row):
    kind: Relation
    product_id: Identifier
    quantity: Annotated[Whole, Field(ge=1, le=QUANTITY_MAX)] = 1


class Bundle(Row):
    """How a bundle's price comes about; its components are its relationships of kind `component`."""

    pricing: BundlePricing = BundlePricing.OWN
    discount_percent: Annotated[Number, Field(ge=0, le=100)] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.pricing is BundlePricing.COMPONENTS_LESS_PERCENT) != (self.discount_percent is not None):
            raise ValueError("discount_percent goes with components_less_percent, and only with it")
        return self


class Option(Row):
    """One choice a buyer has. The words are those of the configuration rules that refer to it."""

    type: Literal["enum", "integer", "number", "boolean", "text"]
    label: Name | None = None
    values: tuple[Scalar, ...] = ()
    unit: Word | None = None
    min: Number | None = None
    max: Number | None = None
    step: Amount | None = None
    default: Scalar | None = None
    required: bool = False
    keep: Annotated[Whole, Field(ge=1, le=9)] = 1
    active_when: dict[Word, Free] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type == "enum" and not self.values:
            raise ValueError("an enum option lists its values")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min is above max")
        # With their types, because to Python true is one of 1 and 2.
        values = [(type(value), value) for value in self.values]
        if self.default is not None and values and (type(self.default), self.default) not in values:
            raise ValueError("the default is not one of the values")
        return self


class Rule(Row):
    """A constraint between options: a sentence to quote, an optional condition, and exactly one construct."""

    id: Word
    say: Annotated[str, Field(max_length=500), AfterValidator(clean_line)]
    when: dict[Word, Free] | None = None
    then: dict[Word, Free] | None = None
    forbid: dict[Word, Free] | None = None
    table: dict[Word, Free] | None = None
    compare: dict[Word, Free] | None = None
    choose: dict[Word, Free] | None = None

    @model_validator(mode="after")
    def _one_construct(self) -> Self:
        constructs = [self.then, self.forbid, self.table, self.compare, self.choose]
        if sum(construct is not None for construct in constructs) != 1:
            raise ValueError("a rule has exactly one of then, forbid, table, compare, choose")
        self.options_named()
        return self

    def options_named(self) -> set[str]:
        compared = [name for side in ("left", "right") for name in _names(self.compare, side, dict)]
        columns = [*_names(self.table, "columns", list), *_names(self.choose, "from", list)]
        return {*(self.when or {}), *(self.then or {}), *(self.forbid or {}), *compared, *columns} - {"const"}


def _names(construct: dict[str, Any] | None, part: str, kind: type[dict[str, Any]] | type[list[str]]) -> list[str]:
    """The options that a part of a construct names, as the keys of a mapping or the items of a list."""
    named = (construct or {}).get(part, kind())
    if not isinstance(named, kind) or not all(isinstance(name, str) for name in named):
        raise ValueError(f"{part} is a {'mapping from' if kind is dict else 'list of'} names of options")
    return list(named)


class ProductRow(Row):
    id: Identifier
    sku: Word
    name: Name
    description: Prose = ""
    product_type: ProductType = ProductType.SIMPLE
    category: CategoryId
    active: bool = True
    attributes: dict[Word, Scalar] = Field(default_factory=dict)
    specs: dict[Word, Number | Word] = Field(default_factory=dict)
    options: dict[Word, Option] = Field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    recommend: tuple[Rule, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    bundle: Bundle | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        is_plain = not (self.options or self.rules or self.recommend or self.relationships or self.bundle)
        if is_plain and self.product_type is not ProductType.BUNDLE:
            return self
        if self.options and self.product_type not in (ProductType.CONFIGURABLE, ProductType.BUNDLE):
            raise ValueError("options belong to a configurable product or a bundle")
        if self.bundle and self.product_type is not ProductType.BUNDLE:
            raise ValueError("bundle pricing belongs to a bundle")
        if self.product_type is ProductType.BUNDLE and not self._components():
            raise ValueError("a bundle has relationships of kind component")
        if any(relation.product_id == self.id for relation in self.relationships):
            raise ValueError("a product has no relationship with itself")
        self._check_options()
        named = [(relation.kind, relation.product_id) for relation in self.relationships]
        if len(named) != len(set(named)):
            raise ValueError("a relationship is named twice")
        return self

    def _check_options(self) -> None:
        for name, option in self.options.items():
            self._require_known(set(option.active_when or ()), f"option {name}")
        for rule in (*self.rules, *self.recommend):
            self._require_known(rule.options_named(), f"rule {rule.id}")

    def _require_known(self, names: set[str], where: str) -> None:
        if unknown := sorted(names - self.options.keys()):
            raise ValueError(f"{where} names {unknown[0]!r}, which is not an option of this product")

    def _components(self) -> list[Relationship]:
        return [relation for relation in self.relationships if relation.kind is Relation.COMPONENT]


class PriceBookRow(Row):
    id: Identifier
    name: Name
    region: Word | None = None
    is_default: bool = False


class Tier(Row):
    """Quantities above the tier before it, up to and including `up_to`; the last tier is open (`up_to` absent)."""

    up_to: Annotated[Whole, Field(ge=1, le=BOUND_MAX)] | None = None
    unit_price: Amount
    flat_fee: Amount = Decimal(0)


class PriceRow(Row):
    """One price of one product, in a price book, or agreed with one account (a contracted price)."""

    id: Identifier | None = None
    product_id: Identifier
    price_book: Annotated[Identifier | None, BeforeValidator(_empty_as_absent)] = None
    account_id: Annotated[Identifier | None, BeforeValidator(_empty_as_absent)] = None
    currency: Currency
    unit_price: Amount
    billing_period: BillingPeriod = BillingPeriod.ONE_TIME
    tier_mode: TierMode = TierMode.NONE
    tiers: tuple[Tier, ...] = ()
    quantity_scope: QuantityScope = QuantityScope.LINE
    package_size: Annotated[Whole, Field(ge=1, le=BOUND_MAX)] | None = None
    free_quantity: Annotated[Whole, Field(ge=0, le=BOUND_MAX)] = 0
    priority: Annotated[Whole, Field(ge=-1000, le=1000)] = 0
    valid_from: Annotated[Day | None, BeforeValidator(_empty_as_absent)] = None
    valid_to: Annotated[Day | None, BeforeValidator(_empty_as_absent)] = None
    cost: Annotated[Amount | None, BeforeValidator(_empty_as_absent)] = None
    tax_category: Word = "standard"
    tax_included: bool = False
    surcharges: dict[Word, dict[str, Number]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.price_book is None) == (self.account_id is None):
            raise ValueError("a price names either its price_book or, when contracted, its account_id")
        if self.valid_from and self.valid_to and self.valid_from > self.valid_to:
            raise ValueError("valid_from is after valid_to")
        if (self.tier_mode is TierMode.PACKAGE) != (self.package_size is not None):
            raise ValueError("package_size goes with the tier mode package, and only with it")
        if self.free_quantity and self.package_size is None:
            raise ValueError("free_quantity goes with the tier mode package, and only with it")
        self._check_tiers()
        return self

    def _check_tiers(self) -> None:
        """Bounds are shared and half-open, so a gap or an overlap cannot be written; what is left is the order."""
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

    def key(self) -> str:
        """The row's id: the given one, or one made of what distinguishes it, so that a re-import finds it again."""
        owner = f"book={self.price_book}" if self.price_book else f"account={self.account_id}"
        parts = (owner, self.product_id, self.currency, self.billing_period, self.valid_from or "always", self.priority)
        return self.id or "|".join(map(str, parts))


class AccountRow(Row):
    id: Identifier
    name: Name
    segment: Word
    region: Word
    country: Annotated[str, AfterValidator(_country)]
    tax_zone: Word
    tax_status: TaxStatus = TaxStatus.TAXABLE
    tax_note: Name | None = None
    locale: Annotated[str, AfterValidator(_locale)] = "en_US"
    time_zone: Annotated[str, AfterValidator(_time_zone)] = "UTC"
    currency: Currency = "USD"
    price_book: Identifier = "list"
    contact: Name | None = None
    address: Annotated[str, Field(max_length=500), AfterValidator(clean)] | None = None
    active: bool = True

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.tax_status is not TaxStatus.TAXABLE and not self.tax_note:
            raise ValueError("an exempt or reverse-charge account says why in tax_note")
        return self
