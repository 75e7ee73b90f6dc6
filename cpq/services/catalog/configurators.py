"""Compiled configurators of products, kept by the content of their models, and the surcharges that they weigh."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from threading import Lock
from typing import TYPE_CHECKING

from cpq.base.errors import Code, CpqError
from cpq.base.late_modules import LateModule
from cpq.base.text import digest, plain_json
from cpq.domain.pricing import price_selection
from cpq.domain.pricing.request import Request
from cpq.services.catalog.repository import AccountFacts, ProductFacts, model_of

if TYPE_CHECKING:
    from cpq.domain.configuration import solver
    from cpq.domain.configuration.solver import Configurator
else:
    solver = LateModule("cpq.domain.configuration.solver")

REFUSAL_SIZE = 10
"""The clauses that the sentence of a refused model counts as."""

KEPT_CLAUSES_MAX = 1_000_000
"""The clauses of all configurators that a process keeps, which is what their memory follows."""

Surcharges = Mapping[str, Mapping[str, int]]


def model_hash(product: ProductFacts) -> str:
    """The content of the options and rules. Their order is part of it: it decides between equally good answers."""
    return digest([plain_json([product.options, product.rules])])


def configurator_of(product: ProductFacts, surcharges: Surcharges) -> Configurator:
    """The compiled configurator; VALIDATION_ERROR for a model beyond the limits."""
    points = {name: _numbers(amounts) for name, amounts in surcharges.items()}
    key = digest([model_hash(product), plain_json({name: sorted(map(str, known)) for name, known in points.items()})])
    kept = _KEPT.get(key)
    if kept is None:
        try:
            kept = solver.Configurator(model_of(product), points=points)
        except solver.ModelTooLargeError as error:
            kept = str(error)
        _KEPT.put(key, kept)
    if isinstance(kept, str):
        raise CpqError(
            Code.VALIDATION_ERROR,
            f"{product.name} ({product.id}) has too large a model to search: {kept}",
            field="/product_id",
            hint="The options are checked all the same; only the search for others is off.",
        )
    return kept


def surcharges_of(product: ProductFacts, buyer: AccountFacts | None, day: str, selling_model: str = "") -> Surcharges:
    """The surcharges of the product's price for this buyer, as the pricer would take them; none without a price."""
    if buyer is None:
        return {}
    request = Request("", day, (), {product.id: product.for_pricing}, buyer.price_books, {})
    chosen = price_selection.choose(request, product.id, selling_model)
    own = chosen.charged.surcharges if chosen.charged else {}
    return own or (chosen.listed.surcharges if chosen.listed else {})


def _numbers(amounts: Mapping[str, int]) -> list[Decimal]:
    """The values with a surcharge that are numbers: those of a wide range must stay apart."""
    numbers = []
    for value in amounts:
        try:
            numbers.append(Decimal(value))
        except InvalidOperation:
            continue
    return [number for number in numbers if number.is_finite()]


class _Kept:
    """The configurators used last, or why a model has no configurator. They never change, so threads share them.

    The lock guards only their order.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[str, Configurator | str] = OrderedDict()
        self._clauses = 0

    def get(self, key: str) -> Configurator | str | None:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def put(self, key: str, made: Configurator | str) -> None:
        with self._lock:
            if key in self._known:
                return
            self._known[key] = made
            self._clauses += _size(made)
            while self._clauses > KEPT_CLAUSES_MAX and len(self._known) > 1:
                self._clauses -= _size(self._known.popitem(last=False)[1])


def _size(made: Configurator | str) -> int:
    return REFUSAL_SIZE if isinstance(made, str) else made.size


_KEPT = _Kept()
