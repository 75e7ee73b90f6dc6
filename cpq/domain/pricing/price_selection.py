"""PURE. Stages 1 and 2, list and contracted: which price row of a product wins, and what it charges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cpq.base.money import amount
from cpq.domain.pricing.parts import Part
from cpq.domain.pricing.request import Derived, PriceRow, Request
from cpq.domain.pricing.result import Stage
from cpq.domain.pricing.tiers import times_charged

LIST, CURRENCY, CONTRACTED = Stage.LIST, Stage.CURRENCY, Stage.CONTRACTED


class ChosenPrices(NamedTuple):
    """The winning rows of one product. A product without either has no price in the quote's currency."""

    listed: PriceRow | None
    contracted: PriceRow | None

    @property
    def charged(self) -> PriceRow | None:
        """The account's agreed price replaces the list price."""
        return self.contracted or self.listed


class SoldAs(NamedTuple):
    """The selling models of one product whose prices are valid for the request, of list and of contracted prices."""

    listed: frozenset[str]
    contracted: frozenset[str]

    @property
    def is_in_one_way(self) -> bool:
        """Whether there is nothing to choose. A contracted price may be billed in another way than the list."""
        return len(self.listed) <= 1 and len(self.contracted) <= 1

    @property
    def models(self) -> list[str]:
        return sorted(self.listed | self.contracted)


class PriceSelection:
    """The winning prices of a request, decided once for each product and selling model, on first use.

    They depend only on the products, the price books and the day: requests that share these share the selection.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._chosen: dict[tuple[str, str], ChosenPrices] = {}
        self._sold_as: dict[str, SoldAs] = {}

    @property
    def currency(self) -> str:
        return self._request.currency

    def of(self, product_id: str, selling_model: str = "") -> ChosenPrices:
        key = product_id, selling_model
        chosen = self._chosen.get(key)
        if chosen is None:
            chosen = self._chosen[key] = choose(self._request, product_id, selling_model)
        return chosen

    def is_in_one_way(self, product_id: str) -> bool:
        """Whether a line of the product has no selling model to choose."""
        rows = self._request.products[product_id].rows
        return len(rows) == 1 or self.sold_as(product_id).is_in_one_way

    def sold_as(self, product_id: str) -> SoldAs:
        found = self._sold_as.get(product_id)
        if found is None:
            rows = list(_candidates(self._request, product_id))
            contracted = frozenset([row.selling_model for row in rows if row.account_id is not None])
            listed = frozenset([row.selling_model for row in rows if row.account_id is None])
            found = self._sold_as[product_id] = SoldAs(listed, contracted)
        return found


def choose(request: Request, product_id: str, selling_model: str = "") -> ChosenPrices:
    """The first of the rows valid on the day, by price book, then priority, specificity and id.

    With a selling model only rows of this model compete. Without one all do, so the product should have only one.
    """
    books = request.price_books
    listed = contracted = None
    listed_rank = contracted_rank = None
    for row in _candidates(request, product_id):
        if selling_model and row.selling_model != selling_model:
            continue
        specificity = (row.valid_from is not None) + (row.valid_to is not None)
        if row.account_id is not None:
            rank: Rank = (0, -row.priority, -specificity, row.id)
            if contracted_rank is None or rank < contracted_rank:
                contracted, contracted_rank = row, rank
        elif row.price_book_id is not None:
            rank = (books.index(row.price_book_id), -row.priority, -specificity, row.id)
            if listed_rank is None or rank < listed_rank:
                listed, listed_rank = row, rank
    return ChosenPrices(listed, contracted)


def _candidates(request: Request, product_id: str) -> Iterator[PriceRow]:
    """The rows that are valid on the day, of the account or of one of its price books."""
    day, books = request.as_of, request.price_books
    for row in request.products[product_id].rows:
        if (row.account_id is not None or row.price_book_id in books) and is_valid(row, day):
            yield row


def is_valid(row: PriceRow, day: str) -> bool:
    first, last = row.valid_from, row.valid_to
    return not (first and first > day) and not (last and last < day)


Rank = tuple[int, int, int, str]
"""Price book, priority, specificity, id: the smallest wins."""


def take_list_price(part: Part) -> None:
    """Stage 1: the list price for each unit or package, or the contracted price without one."""
    row = part.plan.listed
    unit_price = row.unit_price
    part.amount = part.listed = charged = unit_price * times_charged(row, part.quantity, part.among)
    if part.plan.is_listed:
        part.note(LIST, charged, row.id, unit_price)
        if row.derived is not None:
            part.note(CURRENCY, charged, conversion_in_words(row.derived), row.derived.shown_rate)


def conversion_in_words(derived: Derived) -> str:
    """How a price was converted: `100 USD at the rate of 2026-11-01, rounded to five`."""
    rule = derived.rounding.replace("_", " ")
    return f"{amount(derived.unit_price)} {derived.currency} at the rate of {derived.rates_as_of}, rounded to {rule}"


def take_contracted_price(part: Part) -> None:
    """Stage 2: the account's agreed price replaces the list price; that of a ramp's segment replaces both."""
    row = part.plan.row
    part.amount = row.unit_price * times_charged(row, part.quantity, part.among)
    source = row.id if part.segment.unit_price is None else part.name
    part.note(CONTRACTED, part.amount, source, row.unit_price)
