"""Review of the models of stored products: values that nobody can choose, and rules that contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, nearest, next_call
from cpq.domain.configuration.solver import ModelTooLargeError
from cpq.domain.configuration.solver.findings import Fault, findings
from cpq.services.catalog.repository import ProductFacts, gather, model_of
from cpq.storage.schema import tables

Progress = Callable[[int, int], None]


class FindingView(TypedDict):
    product_id: str
    fault: str
    about: str
    """The option or the rule; empty for the product itself."""
    message: str
    because: list[str]
    """The fewest sentences of the model that make it so."""


class ModelReview(TypedDict):
    products: int
    findings: list[FindingView]


def review_models(tx: Tx, product_ids: Collection[str], progress: Progress) -> ModelReview:
    """The findings of these products, or of all; NOT_FOUND for a product that does not exist."""
    known = list(tx.connection.scalars(sa.select(tables.product.c.id).where(tx.own(tables.product)).order_by("id")))
    for id_ in product_ids:
        if id_ not in known:
            raise CpqError(
                Code.NOT_FOUND,
                f"There is no product {id_!r}.",
                nearest=nearest(id_, known) or None,
                next_call=next_call("catalog_search", query=id_),
            )
    asked = sorted(set(product_ids)) or known
    products = gather(tx, asked).products
    found: list[FindingView] = []
    for place, id_ in enumerate(asked, 1):
        found += _of_product(products[id_], products)
        progress(place, len(asked))
    return {"products": len(asked), "findings": found}


def _of_product(product: ProductFacts, products: dict[str, ProductFacts]) -> Iterator[FindingView]:
    for message in _of_relations(product, products):
        yield _view(product, Fault.NEVER_SOLD, "", message, ())
    if not product.options:
        return
    try:
        for finding in findings(model_of(product)):
            yield _view(product, finding.fault, finding.about, finding.message, finding.because)
    except ModelTooLargeError as error:
        yield _view(product, Fault.NOT_FINISHED, "", f"The model is too large to search. {error}", ())


def _of_relations(product: ProductFacts, products: dict[str, ProductFacts]) -> Iterator[str]:
    excluded = {relation.product_id for relation in product.relations if relation.kind == "excludes"}
    for relation in product.relations:
        other = products.get(relation.product_id)
        if relation.kind == "requires" and relation.product_id in excluded:
            yield f"It requires {relation.product_id} and excludes it."
        elif (
            relation.kind == "requires"
            and other
            and any(back.kind == "excludes" and back.product_id == product.id for back in other.relations)
        ):
            yield f"It requires {relation.product_id}, which excludes it."
        elif relation.kind in ("requires", "component") and other and product.active and not other.active:
            yield f"It {_NEEDS[relation.kind]} {relation.product_id}, which is no longer sold."


_NEEDS = {"requires": "requires", "component": "contains"}


def _view(product: ProductFacts, fault: Fault, about: str, message: str, because: Collection[str]) -> FindingView:
    return {
        "product_id": product.id,
        "fault": fault.value,
        "about": about,
        "message": message,
        "because": list(because),
    }
