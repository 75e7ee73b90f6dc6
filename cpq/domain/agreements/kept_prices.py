"""PURE. The pricing request of a quote that changes an agreement: its lines keep the prices at which they were sold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from fractions import Fraction

from cpq.base.rounding import nearest
from cpq.domain.agreements.billing_calendar import Calendar
from cpq.domain.agreements.order import yearly
from cpq.domain.pricing.period_prices import period_prices
from cpq.domain.pricing.price_selection import PriceSelection
from cpq.domain.pricing.request import (
    Adjustment,
    Component,
    Line,
    LineTerm,
    PriceRow,
    Product,
    Request,
    Usage,
)
from cpq.domain.pricing.result import PricedQuote
from cpq.domain.pricing.terms import terms_of_line
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.special_terms import AgreedLine

UPLIFT = "uplift"

StoredRequest = Callable[[str, int], Request]
"""The request by which a version of a quote was priced."""

Kept = tuple[str, int, int]
"""Quote, version and line."""


def with_kept_prices(draft: Draft, request: Request, price_book: str, stored: StoredRequest) -> Request:
    """The request in which lines of the agreement have the prices, rules and options of the quote that sold them.

    Each such line has prices of its own, so that what one line costs never depends on which others change with it.
    """
    sold = _Sold(stored, price_book, request)
    lines, products = [], dict(request.products)
    for line, asked in zip(request.lines, draft.lines, strict=True):
        if asked.agreed is None:
            lines.append(line)
            continue
        kept, own = _line(line, asked, asked.agreed, sold)
        lines.append(kept)
        products |= own
    used = {line.price_key for line in lines}
    used |= {part.product_id for key in used if key in products for part in products[key].components}
    used |= {part.product_id for line in lines for part in line.charged}
    return request._replace(lines=tuple(lines), products={key: one for key, one in products.items() if key in used})


def _line(line: Line, asked: DraftLine, agreed: AgreedLine, sold: _Sold) -> tuple[Line, dict[str, Product]]:
    special = asked.special
    assert special is not None
    start, end = special.start_date, special.end_date
    term = LineTerm(
        starts_on=start.isoformat() if start else None,
        ends_on=end.isoformat() if end else None,
        left=agreed.left,
        anchored_on=None if agreed.left else agreed.anchored_on,
        part_periods=agreed.part_periods,
    )
    line = line._replace(credit=agreed.credit, settled=agreed.settled, term=term)
    if agreed.basis is None:
        return line, {}
    key = f"{line.product_id}@{asked.number}"
    if agreed.action == "remove":
        return line._replace(priced_as=key, discount=0, override=None), {key: sold.nothing(agreed.basis)}
    frozen, own = sold.prices(agreed.basis, key)
    adjustments = _adjustments(frozen, sold.request(agreed.basis), agreed.uplift, term)
    kept = frozen._replace(
        id=line.id,
        product_id=line.product_id,
        quantity=line.quantity,
        discount=line.discount,
        ramp=(),
        adjustments=adjustments,
        override=line.override,
        amount_off=0,
        term=term,
        credit=line.credit,
        priced_as=key,
        settled=line.settled,
        usage=_usage(line.usage, frozen.usage),
    )
    return kept, own


def _usage(asked: Usage | None, before: Usage | None) -> Usage | None:
    """What the change commits to, with what was expected when it was sold."""
    if before is None or before.expected is None:
        return asked
    return (asked or Usage())._replace(expected=before.expected)


def _adjustments(frozen: Line, request: Request, uplift: int, term: LineTerm) -> tuple[Adjustment, ...]:
    """The pricing rules of then. An amount off the whole line is for its whole term, so that the rest has its share."""
    found = []
    for rule in frozen.adjustments:
        if rule.kind == "amount" and term.ends_on:
            share = _share(frozen, request, term)
            rule = rule._replace(value=nearest(rule.value * share.numerator, share.denominator))
        found.append(rule)
    kept = [rule for rule in found if rule.rule_id != UPLIFT]
    return (*kept, *([Adjustment(UPLIFT, "markup", uplift, "price")] if uplift else []))


def _share(frozen: Line, request: Request, term: LineTerm) -> Fraction:
    """The rest of the term, as a share of all its months."""
    whole = terms_of_line(request, frozen.term).of("monthly")
    rest = terms_of_line(request, term).of("monthly")
    return Fraction(rest.periods, rest.of) / Fraction(whole.periods, whole.of)


class _Sold:
    """The requests of the quotes that sold the lines, each read once."""

    def __init__(self, stored: StoredRequest, price_book: str, today: Request) -> None:
        self._today, self._prices_today = today, PriceSelection(today)
        self._stored = stored
        self._price_book = price_book
        self._requests: dict[tuple[str, int], Request] = {}
        self._lines: dict[tuple[str, int], dict[str, Line]] = {}
        self._selections: dict[tuple[str, int], PriceSelection] = {}

    def request(self, basis: Kept) -> Request:
        quote = basis[:2]
        found = self._requests.get(quote)
        if found is None:
            found = self._requests[quote] = self._stored(*quote)
            self._lines[quote] = {line.id: line for line in found.lines}
            self._selections[quote] = PriceSelection(found)
        return found

    def nothing(self, basis: Kept) -> Product:
        """The price of a line that ends: nothing, taxed as before."""
        line = self._line(basis)
        charged = self._selections[basis[:2]].of(line.price_key, line.selling_model).charged
        assert charged is not None, "it was priced"
        row = PriceRow("removed", 0, self._price_book, cost=0, tax_category=charged.tax_category)
        return Product((row._replace(billing_period=charged.billing_period, is_evergreen=charged.is_evergreen),))

    def prices(self, basis: Kept, key: str) -> tuple[Line, dict[str, Product]]:
        """The line as it was sold, and its prices under `key`: those that won then, valid for good."""
        line = self._line(basis)
        product = self.request(basis).products[line.price_key]
        selection = self._selections[basis[:2]]
        parts = {
            f"{part.product_id}@{key}": Product(
                self._won(selection, part.product_id, part.product_id, line.part_models.get(part.product_id, ""))
            )
            for part in (*product.components, *line.charged)
        }
        own = Product(
            self._won(selection, line.price_key, line.product_id, line.selling_model),
            tuple(Component(f"{part.product_id}@{key}", part.quantity) for part in product.components),
            product.bundle_discount,
        )
        chosen = tuple(
            part if part.is_included else part._replace(product_id=f"{part.product_id}@{key}") for part in line.chosen
        )
        return line._replace(part_models={}, chosen=chosen), {key: own, **parts}

    def _line(self, basis: Kept) -> Line:
        self.request(basis)
        return self._lines[basis[:2]][str(basis[2])]

    def _won(self, selection: PriceSelection, key: str, product_id: str, selling_model: str) -> tuple[PriceRow, ...]:
        chosen = selection.of(key, selling_model)
        rows = [row for row in (chosen.listed, chosen.contracted) if row is not None]
        return tuple(
            row._replace(
                valid_from=None,
                valid_to=None,
                price_book_id=self._price_book if row.price_book_id else None,
                cost=self._cost_today(product_id.partition("@")[0], row),
            )
            for row in rows
        )

    def _cost_today(self, product_id: str, row: PriceRow) -> int | None:
        """The price is kept, our cost is not; of what is not sold like that any more it is that of then."""
        if product_id not in self._today.products:
            return row.cost
        found = self._prices_today.of(product_id, row.selling_model).charged
        return row.cost if found is None or found.billing_period != row.billing_period else found.cost


def yearly_of_lines(request: Request, priced: PricedQuote) -> dict[str, Fraction]:
    """The recurring revenue of a year that each recurring line of a quote brings, by its id."""
    lines = {line.id: line for line in priced.lines}
    return {
        id_: yearly(
            lines[id_].net,
            price.periods,
            price.net_unit_price,
            lines[id_].quantity,
            Calendar(date.min, price.billing_period, "").periods_of_year,
        )
        for id_, price in period_prices(request, priced.lines).items()
    }
