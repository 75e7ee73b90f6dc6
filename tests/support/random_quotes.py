"""Whole quotes at random, with every feature of the pricer. Made of bytes, so they are cheap and shrink well."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TypeVar

from hypothesis import strategies as st

from cpq.domain.policy.policy_kinds import PartPeriods, TaxRounding
from cpq.domain.pricing.request import (
    EDITION,
    Adjustment,
    Component,
    Line,
    PriceRow,
    Product,
    Request,
    Segment,
    Tier,
    largest_quantity,
)

T = TypeVar("T")
MILLION = 10**6
BOOKS = ("account", "region", "default")
RATES = {"standard": 19 * MILLION, "reduced": 7 * MILLION, "zero": 0, "odd": 8_875_000, "food": 7 * MILLION, "gas": 0}
CODES = {"standard": "S", "reduced": "S", "zero": "Z", "odd": "S", "food": "S", "gas": "E"}
REASONS = {"gas": "Article 135"}
UNTAXED = {"exempt": "E", "reverse_charge": "AE"}
OPTIONS = {"color": ("red", "blue"), "size": ("1", "2")}
PART_PERIODS = tuple(mode.value for mode in PartPeriods)
TAX_ROUNDINGS = tuple(level.value for level in TaxRounding)
CURRENCIES = ("USD", "JPY", "KWD", "CLF")
SMALL_PRICES = (10 * MILLION, MILLION, 0, 1, 333_333, 1_005_000, 99_990_000, 12_345_678, 5_000)
DISCOUNTS = (0, 0, 10 * MILLION, 33_333_333, 2_500_000, 1, 99_999_999, 100 * MILLION, 5 * MILLION)
PERIODS = ("one_time", "yearly", "monthly", "quarterly", "weekly", "half_yearly", "2_weeks", "18_months")
DAY = date(2026, 1, 31)


class Bytes:
    """A source of choices. A byte of zero is always the plainest choice, and so is what comes after the last byte."""

    def __init__(self, source: bytes) -> None:
        self._left = iter(source)

    def below(self, bound: int) -> int:
        return next(self._left, 0) % bound

    def pick(self, choices: Sequence[T]) -> T:
        return choices[next(self._left, 0) % len(choices)]

    def happens(self, one_in: int) -> bool:
        return next(self._left, 0) % one_in == one_in - 1

    def amount(self) -> int:
        few = next(self._left, 0)
        return SMALL_PRICES[few] if few < len(SMALL_PRICES) else few * 1_370_000 + next(self._left, 0) * 4_100

    def quantity(self) -> int:
        return 1 + self.below(24) * (1 if self.below(4) else 7)


def request_of(source: bytes) -> Request:
    """The quote that these bytes are."""
    draw = Bytes(source)
    lines_wanted = 1 + draw.below(5)
    products = {f"p{n}": _product(draw, n) for n in range(1 + draw.below(4))}
    simple = list(products)
    if draw.happens(2):
        products["bundle"] = _bundle(draw, products)
    one_time = {id_ for id_ in simple if products[id_].rows[0].billing_period == "one_time"}
    lines = tuple(_line(draw, n, list(products), one_time, products) for n in range(lines_wanted))
    term = draw.below(4)
    is_odd_end = term == 3
    request = Request(
        draw.pick(CURRENCIES),
        DAY.isoformat(),
        lines,
        products,
        BOOKS,
        RATES,
        draw.pick(("taxable", "taxable", "taxable", "exempt", "reverse_charge")),
        "Article 196",
        (None, 12, 7, None)[term],
        (None, "2026-01-31", "2024-02-29", "2025-11-15")[draw.below(4)] if term else None,
        (date(2027, 1, 1) + timedelta(days=draw.below(200))).isoformat() if is_odd_end else None,
        draw.pick(DISCOUNTS),
        draw.pick(("half_up", "half_up", "half_even")),
        draw.pick(TAX_ROUNDINGS),
        draw.pick(PART_PERIODS[1:] if is_odd_end else PART_PERIODS),
    )
    return request if draw.happens(4) else _of_today(request)


def _of_today(request: Request) -> Request:
    """With codes and by the rules of new requests; the others are as old ones are stored."""
    code = UNTAXED.get(request.tax_status)
    codes = dict.fromkeys(RATES, code) if code else CODES
    reasons = dict.fromkeys(RATES, "Article 196") if code else REASONS
    return request._replace(tax_codes=codes, tax_reasons=reasons, edition=EDITION)


def _product(draw: Bytes, number: int) -> Product:
    """Rows of one product bill alike, as a price list does; two of five products have rivals of every kind."""
    period = draw.pick(PERIODS)
    category = draw.pick(tuple(RATES))
    is_included = draw.happens(6)
    rows = [_row(draw, f"p{number}-0", "default", None, period, category, is_included)]
    if draw.below(5) > 2:
        for n in range(1, 2 + draw.below(4)):
            book = draw.pick((*BOOKS, "nobody's", None))
            account = "acme" if book is None else None
            row = _row(draw, f"p{number}-{n}", book, account, period, category, is_included)
            rows.append(row._replace(**draw.pick(VALIDITIES), priority=draw.below(3)))
    return Product(tuple(rows))


VALIDITIES: tuple[dict, ...] = (
    {},
    {"valid_from": "2026-01-31"},
    {"valid_to": "2026-01-31"},
    {"valid_from": "2025-01-01", "valid_to": "2026-12-31"},
    {"valid_to": "2026-01-30"},
    {"valid_from": "2026-02-01"},
)


def _row(
    draw: Bytes, id_: str, book: str | None, account: str | None, period: str, category: str, is_included: bool
) -> PriceRow:
    mode = draw.pick(("none", "none", "volume", "graduated", "package"))
    return PriceRow(
        id_,
        draw.amount(),
        book,
        account,
        period,
        mode,
        _tiers(draw) if mode in ("volume", "graduated") else (),
        draw.pick(("line", "quote")) if mode != "none" else "line",
        1 + draw.below(12) if mode == "package" else None,
        draw.below(9) if mode == "package" else 0,
        cost=draw.pick((6 * MILLION, 0, 333_333, None)),
        tax_category=category,
        tax_included=is_included,
        surcharges=_surcharges(draw) if draw.happens(3) else {},
    )


def _tiers(draw: Bytes) -> tuple[Tier, ...]:
    bounds = sorted({1 + draw.below(40) for _ in range(draw.below(4))})
    fees = (0, 0, 5 * MILLION, 10)
    return tuple(Tier(bound, draw.amount(), draw.pick(fees)) for bound in (*bounds, None))


def _surcharges(draw: Bytes) -> dict[str, dict[str, int]]:
    values = (0, MILLION, -MILLION, 333_333)
    return {name: {choice: draw.pick(values) for choice in choices} for name, choices in OPTIONS.items()}


def _bundle(draw: Bytes, products: dict[str, Product]) -> Product:
    """By its components, which treat tax alike: none includes it, or there is only one."""
    named = [id_ for id_, product in products.items() if not product.rows[0].tax_included] or list(products)[:1]
    components = tuple(Component(id_, 1 + draw.below(3)) for id_ in named[: 1 + draw.below(3)])
    first = products[components[0].product_id].rows[0]
    own = _row(draw, "bundle-0", "default", None, first.billing_period, first.tax_category, first.tax_included)
    rows = (own,) if not draw.happens(4) else (own, own._replace(id="bundle-1", price_book_id=None, account_id="acme"))
    return Product(rows, components, draw.pick((0, 6 * MILLION, 33_333_333, 100 * MILLION)))


def _line(draw: Bytes, number: int, ids: list[str], one_time: set[str], products: dict[str, Product]) -> Line:
    id_ = draw.pick(ids)
    choices = {name: draw.pick((*values, "none")) for name, values in OPTIONS.items()} if draw.happens(2) else {}
    own = products[id_].rows[0].billing_period
    quantity, discount = draw.quantity(), draw.pick(DISCOUNTS)
    ramp = _ramp(draw) if draw.happens(5) and id_ not in one_time and own != "one_time" else ()
    return Line(
        f"line-{number}",
        id_,
        largest_quantity(quantity, ramp),
        discount,
        choices,
        ramp,
        _adjustments(draw) if draw.happens(3) else (),
    )


def _ramp(draw: Bytes) -> tuple[Segment, ...]:
    return tuple(
        Segment(
            draw.pick((12, 6, 5)),
            draw.pick((None, 1 + draw.below(30))),
            draw.pick((None, None, draw.amount())),
            draw.pick((0, 3 * MILLION, 333_333)),
        )
        for _ in range(1 + draw.below(3))
    )


def _adjustments(draw: Bytes) -> tuple[Adjustment, ...]:
    return tuple(
        Adjustment(
            f"rule-{n}",
            kind := draw.pick(("percentage", "markup", "amount")),
            draw.pick((5 * MILLION, MILLION, 33_333_333, 100 * MILLION, 7_000)),
            draw.pick(("unit", "line") if kind == "amount" else ("price", "list")),
            draw.pick(("sequential", "best_of")),
        )
        for n in range(1 + draw.below(4))
    )


sources = st.binary(min_size=260, max_size=260)
requests = sources.map(request_of)


def row_of(draw: Bytes) -> PriceRow:
    """One price of any kind."""
    return _row(draw, "row", "default", None, "one_time", "standard", False)
