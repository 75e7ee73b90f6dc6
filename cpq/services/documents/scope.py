"""What is sold decides what a document says about work at the site, delivery, and what is not included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cpq.domain.catalog.products import Supply
from cpq.services.documents.agreement_change import REMOVED
from cpq.services.documents.design import Brand, Installation
from cpq.services.documents.printed_quote import Content, PrintedQuote

WORKS = (Supply.INSTALLATION, Supply.RIGGING, Supply.ON_SITE)

EARLIER = Installation(category="services", spec="delivery", value="on_site")
"""The rule for contents that were stored before products had a scope of supply."""


@dataclass(frozen=True)
class Work:
    """The work at the customer's site, over all its lines."""

    quantity: str
    name: str
    description: str


@dataclass(frozen=True)
class Scope:
    works: tuple[Work, ...]
    works_title: str
    works_text: str
    exclusions: tuple[str, ...]
    terms: tuple[str, ...]


class Supplies:
    """The kinds of supply of products, by their own attribute, their components, and the seller's rules."""

    def __init__(self, brand: Brand, products: Mapping[str, Content]) -> None:
        self._brand = brand
        self._products = products

    def of(self, product_id: str) -> Supply:
        product = self._products.get(product_id, {})
        if stated := product.get("supply"):
            return Supply(stated)
        rule = self._brand.installation or (None if "supply" in product else EARLIER)
        if rule and product.get("category") == rule.category:
            spec = product.get("specs", {}).get(rule.spec, {})
            if spec.get("value") == rule.value:
                return Supply.INSTALLATION
        is_shipped = (
            product.get("product_type") != "service" and product.get("category") not in self._brand.categories_unshipped
        )
        return Supply.GOODS if is_shipped else Supply.NONE

    def within(self, product_id: str, quantity: int = 1, chosen: Sequence[Content] = ()) -> Iterator[tuple[str, int]]:
        """The product, or the components of a bundle that does not itself say what it is, each with its quantity."""
        product = self._products.get(product_id, {})
        parts = () if product.get("supply") else (*product.get("components", ()), *chosen)
        if not parts:
            yield product_id, quantity
        for part in parts:
            yield part["product_id"], quantity * part["quantity"]

    def delivery_in(self, language: str) -> str:
        return self._brand.texts_in(language).delivery

    def is_shipped(self, product_id: str) -> bool:
        return any(self.of(id_) is Supply.GOODS for id_, _ in self.within(product_id))


def scope_of(printed: PrintedQuote, brand: Brand, sets: Iterable[Content], values: Mapping[str, str]) -> Scope:
    """The scope of these option sets; `values` are those that terms name: {payment} and {valid_until}.

    A term that names a value which is not given is left out: an order has no last day of an offer.
    """
    unsaid = {"payment", "valid_until"} - values.keys()
    t, texts = printed.tongue, brand.texts_in(printed.tongue.language)
    supplies, quantities = Supplies(brand, printed.products), dict[str, int]()
    for one in sets:
        for line in one["lines"]:
            asked = printed.asked[line["number"]]
            if asked.get("change", {}).get("action") == REMOVED:
                continue
            times = 1 if "ramp" in asked else line["quantity"]
            for product_id, quantity in supplies.within(asked["product_id"], times, asked.get("components", ())):
                quantities[product_id] = quantities.get(product_id, 0) + quantity
    sold = {product_id: supplies.of(product_id) for product_id in quantities}
    kinds = set(sold.values())
    works = tuple(
        Work(
            t.number(quantities[id_]), t.text(printed.product(id_)["name"]), t.text(printed.product(id_)["description"])
        )
        for id_, kind in sold.items()
        if kind in WORKS
    )
    has_installation = Supply.INSTALLATION in kinds
    exclusions = [*texts.exclusions]
    terms = [*texts.terms]
    if Supply.GOODS in kinds:
        exclusions[:0] = [
            *(() if Supply.RIGGING in kinds else texts.exclusions_without_rigging),
            *(() if has_installation else texts.exclusions_without_installation),
            *texts.exclusions_of_goods,
        ]
        terms += texts.terms_with_freight if Supply.FREIGHT in kinds else texts.terms_of_goods
    return Scope(
        works=works,
        works_title=t.label("installation" if has_installation else "work_on_site"),
        works_text=texts.installation if has_installation else texts.work_on_site,
        exclusions=tuple(exclusions),
        terms=tuple(term.format(**values) for term in terms if all(f"{{{name}}}" not in term for name in unsaid)),
    )
