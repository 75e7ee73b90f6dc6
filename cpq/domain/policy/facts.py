"""The facts that a policy may read: declared once, with type and meaning, for the checker, the docs and the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from enum import StrEnum
from operator import attrgetter, itemgetter
from string import ascii_uppercase
from types import MappingProxyType
from typing import Any, NamedTuple

from cpq.base.money import MINOR_DIGITS
from cpq.domain import billing_periods
from cpq.domain.policy.language.nodes import Declared, Kind, Value

EXACT = Context(prec=60)
WORKING = Context(prec=200)
"""Precise enough that sums of facts are exact in any order of the lines."""

LARGEST = Decimal(10) ** 30
DECIMALS_MAX = 100
PLAIN_LENGTH = 30
HUNDRED = Decimal(100)
_ZERO = Decimal(0)


@dataclass(frozen=True)
class Part:
    """A product inside the bundle of a line, with the facts that policies read."""

    product_id: str = ""
    sku: str = ""
    category: str = ""
    product_type: str = "simple"
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class LineInputs:
    """The facts of a line before pricing; pricing rules read these."""

    line_id: str = ""
    product_id: str = ""
    sku: str = ""
    category: str = ""
    product_type: str = "simple"
    quantity: Decimal = Decimal(1)
    billing_period: str = "one_time"
    attributes: Mapping[str, object] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    """The components of a bundle."""
    is_custom: bool = False
    is_usage: bool = False

    def __post_init__(self) -> None:
        _require_numbers(self)


@dataclass(frozen=True)
class LineFacts(LineInputs):
    """The facts of a priced line. Amounts are in the quote's currency; 100 is 100 percent; None is unknown."""

    unit_price: Decimal = Decimal(0)
    regular: Decimal = Decimal(0)
    net: Decimal = Decimal(0)
    discount: Decimal = Decimal(0)
    discount_off_list: Decimal = Decimal(0)
    margin: Decimal | None = None
    cost: Decimal | None = None
    tax_category: str = "standard"


@dataclass(frozen=True)
class QuoteInputs:
    """The facts of a quote before pricing; pricing rules read these."""

    currency: str = "USD"
    term_months: Decimal | None = None
    payment_terms: str = "net_30"
    segment: str = ""
    region: str = ""
    country: str = ""
    kind: str = "new"

    def __post_init__(self) -> None:
        _require_numbers(self)


@dataclass(frozen=True)
class QuoteFacts(QuoteInputs):
    """The facts of a priced quote."""

    gross: Decimal = Decimal(0)
    net: Decimal = Decimal(0)
    total: Decimal = Decimal(0)
    discount: Decimal = Decimal(0)
    discount_off_list: Decimal = Decimal(0)
    margin: Decimal | None = None
    validity_days: Decimal = Decimal(30)
    deal_others_gross: Decimal | None = _ZERO
    deal_others_net: Decimal | None = _ZERO
    account_others_gross: Decimal | None = _ZERO
    account_others_net: Decimal | None = _ZERO
    account_90_days_gross: Decimal | None = _ZERO
    account_90_days_net: Decimal | None = _ZERO
    account_90_days_credit: Decimal | None = _ZERO
    has_free_text: bool = False
    free_text_has_numbers: bool = False
    free_text_has_terms: bool = False
    delta: Decimal | None = None
    credit: Decimal = _ZERO
    arr_change: Decimal = _ZERO
    uplift_pct: Decimal = _ZERO
    days_before_end: Decimal | None = None
    credit_beyond_terms: Decimal = _ZERO
    missing_uplift_pct: Decimal = _ZERO
    backdated_days: Decimal = _ZERO
    lines: tuple[LineFacts, ...] = ()


class OtherQuotes(NamedTuple):
    """The other quotes of the same deal and account, in the policy's currency; None when a rate is missing."""

    deal_others_gross: Decimal | None = _ZERO
    deal_others_net: Decimal | None = _ZERO
    account_others_gross: Decimal | None = _ZERO
    account_others_net: Decimal | None = _ZERO
    account_90_days_gross: Decimal | None = _ZERO
    account_90_days_net: Decimal | None = _ZERO
    account_90_days_credit: Decimal | None = _ZERO


NO_OTHERS = OtherQuotes()


class ChangeFacts(NamedTuple):
    """What a quote changes in an agreement; amounts in the quote's currency."""

    delta: Decimal | None = None
    credit: Decimal = _ZERO
    arr_change: Decimal = _ZERO
    uplift_pct: Decimal = _ZERO
    days_before_end: Decimal | None = None
    credit_beyond_terms: Decimal = _ZERO
    missing_uplift_pct: Decimal = _ZERO
    backdated_days: Decimal = _ZERO


NO_CHANGE = ChangeFacts()


class Unit(StrEnum):
    """The unit of a number; a text, a set or a boolean has none."""

    NONE = ""
    PERCENT = "percent"
    AMOUNT = "in the quote's currency"
    VALUE = "in the policy's currency"
    MONTHS = "months"
    DAYS = "days"
    PIECES = "pieces"


class Declaration(NamedTuple):
    """One fact: its kind, its meaning, whether a pricing rule may read it, and the bounds or words it never leaves."""

    kind: Kind
    meaning: str
    unit: Unit = Unit.NONE
    is_before_pricing: bool = False
    low: Decimal | None = None
    high: Decimal | None = None
    words: frozenset[str] = frozenset()


COUNTRIES = frozenset(first + second for first in ascii_uppercase for second in ascii_uppercase)
"""Every pair of letters; a list of existing countries would need maintenance."""

LINE_FACTS: dict[str, Declaration] = {
    "line_id": Declaration(Kind.TEXT, "the line's identifier"),
    "product_id": Declaration(Kind.TEXT, "the product's identifier", is_before_pricing=True),
    "sku": Declaration(Kind.TEXT, "the product's stock-keeping code", is_before_pricing=True),
    "category": Declaration(Kind.TEXT, "the product's category", is_before_pricing=True),
    "product_type": Declaration(
        Kind.TEXT,
        "simple, configurable, bundle or service",
        is_before_pricing=True,
        words=frozenset({"simple", "configurable", "bundle", "service"}),
    ),
    "quantity": Declaration(
        Kind.NUMBER, "quantity; on a ramp, of its largest stretch", Unit.PIECES, is_before_pricing=True, low=_ZERO
    ),
    "billing_period": Declaration(
        Kind.TEXT,
        "one_time, weekly, monthly, quarterly, half_yearly, yearly, or a number such as 2_weeks, 18_months, 2_years",
        is_before_pricing=True,
        words=billing_periods.all_spellings(),
    ),
    "tax_category": Declaration(Kind.TEXT, "the tax category of its price, such as standard"),
    "is_custom": Declaration(
        Kind.BOOLEAN, "whether it is an item of no catalogue, with a price that was typed in", is_before_pricing=True
    ),
    "is_usage": Declaration(
        Kind.BOOLEAN, "whether it is charged by its use, at the rates of a rate card", is_before_pricing=True
    ),
    "unit_price": Declaration(
        Kind.NUMBER, "net amount divided by quantity; on a ramp, by its mean over the months", Unit.AMOUNT, low=_ZERO
    ),
    "regular": Declaration(Kind.NUMBER, "amount before any discretionary discount", Unit.AMOUNT, low=_ZERO),
    "net": Declaration(Kind.NUMBER, "amount after line and quote discount", Unit.AMOUNT, low=_ZERO),
    "discount": Declaration(
        Kind.NUMBER,
        "line and quote discount together, off the regular price; tiers, contracts and rules do not count as discount",
        Unit.PERCENT,
        low=_ZERO,
        high=HUNDRED,
    ),
    "discount_off_list": Declaration(
        Kind.NUMBER, "how far net is below the list price; negative above it", Unit.PERCENT, high=HUNDRED
    ),
    "margin": Declaration(
        Kind.NUMBER,
        "(net − cost) / net; of a usage line with nothing in the total, of its lowest rate; unknown without a cost",
        Unit.PERCENT,
        high=HUNDRED,
    ),
    "cost": Declaration(Kind.NUMBER, "our cost of the line; may be unknown", Unit.AMOUNT, low=_ZERO),
}
"""Facts of a line, written `line.quantity`; a product's attributes are declared in terms.yaml."""

QUOTE_FACTS: dict[str, Declaration] = {
    "currency": Declaration(
        Kind.TEXT, "the quote's ISO 4217 code", is_before_pricing=True, words=frozenset(MINOR_DIGITS)
    ),
    "segment": Declaration(Kind.TEXT, "the account's segment", is_before_pricing=True),
    "region": Declaration(Kind.TEXT, "the account's region", is_before_pricing=True),
    "country": Declaration(Kind.TEXT, "the account's country, two letters", is_before_pricing=True, words=COUNTRIES),
    "payment_terms": Declaration(Kind.TEXT, "such as net_30", is_before_pricing=True),
    "is_standard_terms": Declaration(
        Kind.BOOLEAN, "whether the payment terms are among the standard ones", is_before_pricing=True
    ),
    "has_term": Declaration(Kind.BOOLEAN, "whether the quote has a term in months", is_before_pricing=True),
    "term_months": Declaration(
        Kind.NUMBER, "length of the term; unknown without a term", Unit.MONTHS, is_before_pricing=True, low=_ZERO
    ),
    "kind": Declaration(
        Kind.TEXT,
        "new, or what it does to an agreement: amendment, renewal, cancellation",
        is_before_pricing=True,
        words=frozenset({"new", "amendment", "renewal", "cancellation"}),
    ),
    "delta_value": Declaration(
        Kind.NUMBER, "what a change adds to the agreement, net; of a new sale its net_value", Unit.VALUE
    ),
    "credit": Declaration(
        Kind.NUMBER, "what a change gives back on lines that get cheaper or end", Unit.AMOUNT, low=_ZERO
    ),
    "credit_value": Declaration(Kind.NUMBER, "credit, converted at the stored rate", Unit.VALUE, low=_ZERO),
    "arr_change": Declaration(
        Kind.NUMBER, "by how much a change raises the recurring revenue of a year; 0 for a new sale", Unit.AMOUNT
    ),
    "account_credit_value": Declaration(
        Kind.NUMBER,
        "credit_value, and what other changes of the account give back that are open or recent (90 days)",
        Unit.VALUE,
        low=_ZERO,
    ),
    "credit_beyond_terms": Declaration(
        Kind.NUMBER, "the part of credit that the end of these lines would not give back", Unit.AMOUNT, low=_ZERO
    ),
    "uplift_pct": Declaration(
        Kind.NUMBER,
        "by how much a renewal raises the last prices, after a discount on the quote; of its lines the smallest",
        Unit.PERCENT,
    ),
    "missing_uplift_pct": Declaration(
        Kind.NUMBER,
        "by how much a renewal or a longer term raises prices less than renewal_uplift_percent of terms.yaml",
        Unit.PERCENT,
        low=_ZERO,
    ),
    "backdated_days": Declaration(
        Kind.NUMBER,
        "days from the first day of a change to that of its price; 0 where it is not past",
        Unit.DAYS,
        low=_ZERO,
    ),
    "days_before_end": Declaration(
        Kind.NUMBER,
        "days from a change to the end of the agreement; unknown for a new sale or without an end",
        Unit.DAYS,
    ),
    "gross": Declaration(
        Kind.NUMBER, "sum of the regular amounts; of a change, of what is sold from its day on", Unit.AMOUNT, low=_ZERO
    ),
    "net": Declaration(Kind.NUMBER, "sum of the net amounts of the same lines", Unit.AMOUNT, low=_ZERO),
    "total": Declaration(Kind.NUMBER, "net and tax", Unit.AMOUNT, low=_ZERO),
    "gross_value": Declaration(Kind.NUMBER, "gross, converted at the stored rate", Unit.VALUE, low=_ZERO),
    "net_value": Declaration(Kind.NUMBER, "net, converted at the stored rate", Unit.VALUE, low=_ZERO),
    "total_value": Declaration(Kind.NUMBER, "total, converted at the stored rate", Unit.VALUE, low=_ZERO),
    "currency_rate": Declaration(
        Kind.NUMBER, "value of one unit of the quote's currency; unknown without a rate", Unit.VALUE, low=_ZERO
    ),
    "discount_value": Declaration(
        Kind.NUMBER, "all discretionary discounts in money, converted at the stored rate", Unit.VALUE, low=_ZERO
    ),
    "deal_others_net": Declaration(
        Kind.NUMBER, "net of the other quotes of the deal that are open or recent", Unit.VALUE, low=_ZERO
    ),
    "deal_net_value": Declaration(Kind.NUMBER, "net_value and deal_others_net together", Unit.VALUE, low=_ZERO),
    "deal_discount": Declaration(
        Kind.NUMBER, "all discounts of the deal off its gross", Unit.PERCENT, low=_ZERO, high=HUNDRED
    ),
    "deal_discount_value": Declaration(Kind.NUMBER, "all discounts of the deal in money", Unit.VALUE, low=_ZERO),
    "account_others_net": Declaration(
        Kind.NUMBER, "net of the other quotes of the account that are open or recent", Unit.VALUE, low=_ZERO
    ),
    "account_net_value": Declaration(Kind.NUMBER, "net_value and account_others_net together", Unit.VALUE, low=_ZERO),
    "account_discount_value": Declaration(
        Kind.NUMBER, "all discounts of these quotes of the account in money", Unit.VALUE, low=_ZERO
    ),
    "account_90_days_net": Declaration(
        Kind.NUMBER, "as account_others_net, of 90 days whatever deal_days is", Unit.VALUE, low=_ZERO
    ),
    "account_discount_90_days": Declaration(
        Kind.NUMBER,
        "all discretionary discounts of this and the account's other quotes, open or recent (90 days), off their gross",
        Unit.PERCENT,
        low=_ZERO,
        high=HUNDRED,
    ),
    "discount": Declaration(
        Kind.NUMBER, "all discretionary discounts off gross", Unit.PERCENT, low=_ZERO, high=HUNDRED
    ),
    "discount_off_list": Declaration(
        Kind.NUMBER, "how far net is below list; negative above it", Unit.PERCENT, high=HUNDRED
    ),
    "margin": Declaration(
        Kind.NUMBER,
        "(net − cost) / net, or that of a usage line with nothing in the total if lower; unknown when a line's is",
        Unit.PERCENT,
        high=HUNDRED,
    ),
    "validity_days": Declaration(
        Kind.NUMBER, "days from the price to the last day on which the quote can be accepted", Unit.DAYS, low=_ZERO
    ),
    "has_free_text": Declaration(
        Kind.BOOLEAN, "whether an agent wrote a text for the customer that is no clause of the library"
    ),
    "free_text_has_numbers": Declaration(Kind.BOOLEAN, "whether such a text holds a number"),
    "free_text_has_terms": Declaration(
        Kind.BOOLEAN, "whether such a text holds words of terms, or a number of percent, money, days or months"
    ),
    "line_count": Declaration(Kind.NUMBER, "number of lines", Unit.PIECES, low=Decimal(1)),
    "categories": Declaration(Kind.TEXTS, "the categories of its products and of the components of bundles"),
}
"""Facts of the quote, written by their bare name."""


SECRET = frozenset({"margin", "cost", "line.margin", "line.cost"})
"""Facts that only some callers may see; numbers that reveal them are hidden too."""


def share(part: Decimal, whole: Decimal) -> Decimal:
    """`part` in percent of `whole`; 0 if `whole` is 0."""
    return EXACT.divide(EXACT.multiply(part, HUNDRED), whole) if whole else _ZERO


class FactsEnvironment(dict[Any, object]):
    """The facts of one quote by name. Derived facts are computed once, when first read."""

    __slots__ = ("attributes", "currency", "lines", "pieces", "rates", "standard_terms")

    def __init__(
        self,
        facts: QuoteInputs,
        rates: Mapping[str, Decimal],
        standard_terms: Sequence[str],
        attributes: Mapping[str, Declared] = MappingProxyType({}),
        currency: str = "USD",
    ) -> None:
        super().__init__(vars(facts))
        self.lines: tuple[LineFacts, ...] = getattr(facts, "lines", ())
        self.pieces = _pieces(self.lines)
        """The lines, each followed by its parts: a part has the price facts of its line and its own product facts."""
        self.rates = rates
        self.standard_terms = standard_terms
        self.attributes = attributes
        self.currency = currency
        """The policy's currency."""

    @property
    def line_ids(self) -> list[str]:
        """The line id of each piece: the id of a line with parts is there several times."""
        column: KnownColumn = self["column", "line.line_id"]  # type: ignore[assignment] # Columns are kept so.
        return column.values

    def __missing__(self, name: object) -> object:
        value = _OF_LINES[name[0]](self, name[1]) if isinstance(name, tuple) else _DERIVED[str(name)](self)
        self[name] = value
        return value


def _pieces(lines: tuple[LineFacts, ...]) -> tuple[LineFacts, ...]:
    if not any(line.parts for line in lines):
        return lines
    return tuple(
        piece for line in lines for piece in (line, *(replace(line, **vars(part), parts=()) for part in line.parts))
    )


class KnownColumn(NamedTuple):
    """A line fact of all pieces, in their order."""

    values: list[Any]
    has_unknown: bool


class ColumnRange(NamedTuple):
    """The smallest and largest known value of a line fact; both None when no line has one."""

    low: Decimal | None
    high: Decimal | None
    has_unknown: bool


def attribute_value(attributes: Mapping[str, object], name: str, kind: Kind, absent: Value | None) -> Value | None:
    """An attribute as its declared kind; `absent` if the product has none, unknown if it has another kind."""
    value = attributes.get(name)
    if value is None:
        return absent
    if kind is Kind.BOOLEAN or isinstance(value, bool):
        return value if kind is Kind.BOOLEAN and isinstance(value, bool) else None
    if kind is Kind.TEXT:
        return value if isinstance(value, str) else None
    if isinstance(value, int):
        return Decimal(value)
    return value if isinstance(value, Decimal) and value.is_finite() else None


def _column(environment: FactsEnvironment, name: str) -> KnownColumn:
    word = name.removeprefix("line.attributes.")
    if word != name:
        declared = environment.attributes[word]
        values = [
            attribute_value(piece.attributes, word, declared.kind, declared.absent) for piece in environment.pieces
        ]
    else:
        values = list(map(attrgetter(name.removeprefix("line.")), environment.pieces))
    return KnownColumn(values, any(value is None for value in values))


def _column_range(environment: FactsEnvironment, name: str) -> ColumnRange:
    values, has_unknown = _column(environment, name)
    known = [value for value in values if value is not None]
    return ColumnRange(min(known), max(known), has_unknown) if known else ColumnRange(None, None, has_unknown)


def _each_line(environment: FactsEnvironment, name: str) -> tuple[tuple[str, object], ...]:
    """The fact by line id, for the record of a decision; the key of a part also has its product."""
    values = _column(environment, name).values
    return tuple(sorted(zip(piece_ids(environment), values, strict=True), key=itemgetter(0)))


def piece_ids(environment: FactsEnvironment) -> list[str]:
    """A unique name for each piece, over all versions: `2 prod_x`, and `2 prod_x with prod_y` for a part. The number
    alone is not enough, because it may have been another product's."""
    return [
        f"{line.line_id} {line.product_id}{word}"
        for line in environment.lines
        for word in ("", *(f" with {part.product_id}" for part in line.parts))
    ]


_OF_LINES: dict[str, Callable[[FactsEnvironment, str], object]] = {
    "column": _column,
    "range": _column_range,
    "each": _each_line,
}


def _converted(name: str) -> Callable[[FactsEnvironment], object]:
    def convert(environment: FactsEnvironment) -> object:
        rate, amount = environment["currency_rate"], environment[name]
        return EXACT.multiply(amount, rate) if isinstance(rate, Decimal) and isinstance(amount, Decimal) else None

    return convert


def _sum(*names: str) -> Callable[[FactsEnvironment], object]:
    """The sum of facts in the policy's currency, those after `-` taken off; unknown when one is."""

    def add(environment: FactsEnvironment) -> object:
        total = _ZERO
        for name in names:
            value = environment[name.removeprefix("-")]
            if not isinstance(value, Decimal):
                return None
            total = WORKING.add(total, -value if name.startswith("-") else value)
        return total

    return add


def _discount_value(environment: FactsEnvironment) -> object:
    """Without a discount it is 0 in every currency, also in one without a rate."""
    gross, net = environment["gross"], environment["net"]
    is_less = isinstance(gross, Decimal) and isinstance(net, Decimal) and net < gross
    return _sum("gross_value", "-net_value")(environment) if is_less else _ZERO


def _discount_with(others: str) -> Callable[[FactsEnvironment], object]:
    """The discount of this quote and of others in percent of their gross: each weighs as much as its money."""

    def together(environment: FactsEnvironment) -> object:
        off = _sum("discount_value", f"{others}_gross", f"-{others}_net")(environment)
        gross = _sum("gross_value", f"{others}_gross")(environment)
        return share(off, gross) if isinstance(off, Decimal) and isinstance(gross, Decimal) else None

    return together


_DERIVED: dict[str, Callable[[FactsEnvironment], object]] = {
    "is_standard_terms": lambda environment: environment["payment_terms"] in environment.standard_terms,
    "has_term": lambda environment: environment["term_months"] is not None,
    "currency_rate": lambda environment: environment.rates.get(str(environment["currency"])),
    "gross_value": _converted("gross"),
    "net_value": _converted("net"),
    "total_value": _converted("total"),
    "discount_value": _discount_value,
    "delta_value": lambda environment: environment[
        "net_value" if environment["kind"] == "new" and environment["delta"] is None else "_delta_value"
    ],
    "_delta_value": _converted("delta"),
    "credit_value": lambda environment: _converted("credit")(environment) if environment["credit"] else _ZERO,
    "account_credit_value": _sum("credit_value", "account_90_days_credit"),
    "deal_net_value": _sum("net_value", "deal_others_net"),
    "deal_discount": _discount_with("deal_others"),
    "deal_discount_value": _sum("discount_value", "deal_others_gross", "-deal_others_net"),
    "account_net_value": _sum("net_value", "account_others_net"),
    "account_discount_value": _sum("discount_value", "account_others_gross", "-account_others_net"),
    "account_discount_90_days": _discount_with("account_90_days"),
    "line_count": lambda environment: Decimal(len(environment.lines)),
    "categories": lambda environment: frozenset(piece.category for piece in environment.pieces),
}


def _require_numbers(facts: LineInputs | QuoteInputs) -> None:
    for name, value in vars(facts).items():
        if type(value) is Decimal:
            text = str(value)
            # Nearly every number is short and plain, and its length alone bounds its size and its decimals.
            if len(text) > PLAIN_LENGTH or "E" in text or not value.is_finite():
                _require_bounded(name, value)


def _require_bounded(name: str, value: Decimal) -> None:
    if not value.is_finite() or value.copy_abs() > LARGEST or int(value.as_tuple().exponent) < -DECIMALS_MAX:
        raise ValueError(f"{name} is a finite number up to {LARGEST} with at most {DECIMALS_MAX} decimals")
