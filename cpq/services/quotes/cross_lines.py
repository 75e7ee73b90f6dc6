"""Checks across the lines of a quote: what products require and exclude, and the rules of the catalogue over lines."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from cpq.domain import configuration
from cpq.domain.configuration.quote_rules import Finding, QuotedItem, QuoteRule, check_quote_rules
from cpq.domain.configuration.relations import DEPTH_MAX, CheckedRelations, Relation
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.services.catalog import repository
from cpq.services.catalog.repository import ProductFacts, model_of

Products = Mapping[str, ProductFacts]
_BINDING = {Relation.COMPONENT, Relation.REQUIRES, Relation.EXCLUDES}


class Place(NamedTuple):
    """A line with its index in the draft."""

    at: int
    line: DraftLine


def broken(draft: Draft, products: Products, rules: Sequence[QuoteRule]) -> tuple[str, ...]:
    """What a draft may still have and a sent quote may not: missing or excluded products, and broken required rules.

    Each option set is checked alone: products that exclude each other may be offered as alternatives.
    """
    if draft.agreement:
        return ()  # What a change requires may be owned already: `owned_products` knows.
    binding = [rule for rule in rules if rule.is_required]
    is_related = bool(draft.option_sets) or not _goes_together(products)
    found: dict[str, None] = {}
    for places in _concerned(draft, products, binding) if not is_related else option_sets(draft):
        if is_related:
            found |= dict.fromkeys(problem.message for problem in related(places, products, _BINDING).problems)
        found |= dict.fromkeys(_in_words(finding) for finding in findings(places, products, binding))
    return tuple(found)


def advised(draft: Draft, products: Products, rules: Sequence[QuoteRule]) -> tuple[str, ...]:
    """The recommendations of rules that a quote does not follow."""
    advice = [rule for rule in rules if not rule.is_required]
    if draft.agreement or not advice:
        return ()
    sets = _concerned(draft, products, advice)
    found = (finding for places in sets for finding in findings(places, products, advice))
    return tuple(dict.fromkeys(map(_in_words, found)))


def option_sets(draft: Draft, only: Container[str] | None = None) -> Iterator[list[Place]]:
    """The lines of each option set with those that all share; all of a quote without. `only` of these products."""
    places = [Place(at, line) for at, line in enumerate(draft.lines) if only is None or line.product_id in only]
    for name in draft.option_sets or [""]:
        yield [place for place in places if place.line.option_set in (None, name)]


def related(places: Sequence[Place], products: Products, kinds: set[Relation]) -> CheckedRelations:
    """What the products of these lines require, exclude and recommend of each other."""
    relations = [
        configuration.ProductRelation(product.id, Relation(r.kind), r.product_id, r.quantity)
        for product in products.values()
        for r in product.relations
        if r.kind in kinds
    ]
    return configuration.check_relations([_quoted(place.line, products) for place in places], relations)


def findings(places: Sequence[Place], products: Products, rules: Sequence[QuoteRule]) -> list[Finding]:
    """The rules that these lines break; the lines of a finding are their indexes in the draft."""
    if not rules:
        return []
    return check_quote_rules([item for place in places for item in _items(place, products)], rules)


def _concerned(draft: Draft, products: Products, rules: Sequence[QuoteRule]) -> Iterator[list[Place]]:
    """The lines of each option set that rules may be about. Most are of products that no rule names, without parts."""
    sets = [one for rule in rules for one in rule.sets.values()]
    ids = {id_ for one in sets for id_ in one.products}
    categories = {category for one in sets if not one.products for category in one.categories}
    is_any = [one for one in sets if not one.products and not one.categories]
    only = {
        id_
        for id_, product in products.items()
        if is_any or id_ in ids or product.category in categories or product.parts or product.choosable
    }
    return option_sets(draft, only) if rules else iter(())  # A rule may be broken by what is missing.


def _in_words(finding: Finding) -> str:
    return f"{finding.message.removesuffix('.')} ({finding.found})."


def _quoted(line: DraftLine, products: Products) -> configuration.QuotedProduct:
    product = products.get(line.product_id)
    chosen = repository.chosen_components(product, line.attributes) if product else ()
    return configuration.QuotedProduct(line.product_id, line.quantity, chosen)


def own_item(place: Place, products: Products) -> QuotedItem | None:
    """The product of a line, with its chosen options."""
    product = products.get(place.line.product_id)
    if product is None:
        return None
    options = model_of(product).check(place.line.attributes).choices if product.options else {}
    return _item(place.at, product, Decimal(place.line.quantity), options)


def _items(place: Place, products: Products) -> Iterator[QuotedItem]:
    """The product of a line, and all the components inside it."""
    own = own_item(place, products)
    if own is None:
        return
    yield own
    product, quantity = products[own.product_id], own.quantity
    for part in repository.chosen_components(product, place.line.attributes):
        if part.product_id in products:
            inside = products[part.product_id]
            yield _item(place.at, inside, quantity * part.quantity, {})
            yield from _inside(place.at, inside, quantity * part.quantity, products, 1)
    yield from _inside(place.at, product, quantity, products, 1)


def _inside(index: int, box: ProductFacts, quantity: Decimal, products: Products, depth: int) -> Iterator[QuotedItem]:
    for relation in box.relations if box.parts and depth < DEPTH_MAX else ():
        if relation.kind == Relation.COMPONENT and relation.product_id in products:
            part, count = products[relation.product_id], quantity * relation.quantity
            yield _item(index, part, count, {})
            yield from _inside(index, part, count, products, depth + 1)


def _item(index: int, product: ProductFacts, quantity: Decimal, options: Mapping[str, Any]) -> QuotedItem:
    return QuotedItem(index, product.id, product.category, quantity, {**product.specs, **product.attributes, **options})


def _goes_together(products: Products) -> bool:
    """Quick check without counting: no product is excluded, and each required product is quoted and needed once."""
    return all(
        (r.kind != "excludes" or r.product_id not in products)
        and (r.kind != "requires" or (r.quantity == 1 and r.product_id in products))
        for product in products.values()
        for r in product.relations
    )
