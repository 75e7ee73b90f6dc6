"""PURE. Stages 1 and 2, list and contracted: which price row of a product wins, and what it charges."""

from __future__ import annotations

from typing import NamedTuple

from cpq.domain.pricing.parts import Part
from cpq.domain.pricing.request import PriceRow, Request
from cpq.domain.pricing.result import Stage
from cpq.domain.pricing.tiers import times_charged

LIST, CONTRACTED = Stage.LIST, Stage.CONTRACTED


class ChosenPrices(NamedTuple):
    """The winning rows of one product. A product without either has no price in the quote's currency."""

    listed: PriceRow | None
    contracted: PriceRow | None

    @property
    def charged(self) -> PriceRow | None:
        """The account's agreed price replaces the list price."""
        return self.contracted or self.listed


class PriceSelection:
    """The winning prices of a request, decided once for each product, on first use.

    They depend only on the products, the price books and the day: requests that share these share the selection.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._chosen: dict[str, ChosenPrices] = {}

    def of(self, product_id: str) -> ChosenPrices:
        chosen = self._chosen.get(product_id)
        if chosen is None:
            chosen = self._chosen[product_id] = choose(self._request, product_id)
        return chosen


def choose(request: Request, product_id: str) -> ChosenPrices:
    """The first of the rows valid on the day, by price book, then priority, specificity and id."""
    day, books = request.as_of, request.price_books
    listed = contracted = None
    listed_rank = contracted_rank = None
    for row in request.products[product_id].rows:
        first, last = row.valid_from, row.valid_to
        if (first and first > day) or (last and last < day):
            continue
        specificity = (first is not None) + (last is not None)
        if row.account_id is not None:
            rank: Rank = (0, -row.priority, -specificity, row.id)
            if contracted_rank is None or rank < contracted_rank:
                contracted, contracted_rank = row, rank
        elif row.price_book_id in books:
            rank = (books.index(row.price_book_id), -row.priority, -specificity, row.id)
            if listed_rank is None or rank < listed_rank:
                listed, listed_rank = row, rank
    return ChosenPrices(listed, contracted)


Rank = tuple[int, int, int, str]
"""Price book, priority, specificity, id: the smallest wins."""


def take_list_price(part: Part) -> None:
    """Stage 1: the list price for each unit or package, or the contracted price without one."""
    row = part.plan.listed
    unit_price = row.unit_price
    part.amount = part.listed = amount = unit_price * times_charged(row, part.quantity)
    if part.plan.is_listed:
        part.note(LIST, amount, row.id, unit_price)


def take_contracted_price(part: Part) -> None:
    """Stage 2: the account's agreed price replaces the list price; that of a ramp's segment replaces both."""
    row = part.plan.row
    part.amount = row.unit_price * times_charged(row, part.quantity)
    source = row.id if part.segment.unit_price is None else part.name
    part.note(CONTRACTED, part.amount, source, row.unit_price)
