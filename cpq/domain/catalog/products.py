"""Rows of products and their categories in an imported file: fields and validation."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from cpq.domain.configuration.components import Expanded, expand, products_within
from cpq.domain.configuration.declarations import GroupRow, OptionRow, RuleRow
from cpq.domain.configuration.relations import Relation
from cpq.domain.field_types import (
    QUANTITY_DECIMALS_MAX,
    QUANTITY_MAX,
    CategoryId,
    Identifier,
    LocaleTag,
    Name,
    Number,
    Prose,
    Row,
    Scalar,
    Whole,
    Word,
    empty_as_absent,
)


class ProductType(StrEnum):
    SIMPLE = "simple"
    CONFIGURABLE = "configurable"
    BUNDLE = "bundle"
    SERVICE = "service"


class BundlePricing(StrEnum):
    OWN = "own"
    COMPONENTS = "components"
    COMPONENTS_LESS_PERCENT = "components_less_percent"


class Supply(StrEnum):
    """What a product is for the scope of supply, as its attribute `scope_of_supply` says."""

    GOODS = "goods"
    INSTALLATION = "installation"
    RIGGING = "rigging"
    FREIGHT = "freight"
    ON_SITE = "on_site"
    NONE = "none"


SUPPLY = "scope_of_supply"


class SpecDefinition(Row):
    """A filterable property of every product of a category: a number in one unit, or one of the listed words."""

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
    """A typed fact about every product of a category; it is checked and shown, but not filterable."""

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
    names: dict[LocaleTag, Name] = Field(default_factory=dict)
    """In other languages; a file writes `name.de`."""
    specs: dict[Word, SpecDefinition] = Field(default_factory=dict)
    attributes: dict[Word, AttributeDefinition] = Field(default_factory=dict)


class Relationship(Row):
    kind: Relation
    product_id: Identifier
    quantity: Annotated[Whole, Field(ge=1, le=QUANTITY_MAX)] = 1


class Bundle(Row):
    """The price mode of a bundle, and the components that a buyer chooses, in groups.

    What every piece contains are its relationships of kind `component`.
    """

    pricing: BundlePricing = BundlePricing.OWN
    discount_percent: Annotated[Number, Field(ge=0, le=100)] | None = None
    groups: tuple[GroupRow, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.pricing is BundlePricing.COMPONENTS_LESS_PERCENT) != (self.discount_percent is not None):
            raise ValueError("discount_percent goes with components_less_percent, and only with it")
        expand(self.groups)
        return self

    @property
    def expanded(self) -> Expanded:
        """The options and rules that the groups stand for."""
        return expand(self.groups)

    @property
    def stored(self) -> dict[str, Any]:
        """As JSON values; groups without defaults, and no word about them where there are none."""
        groups = [group.model_dump(mode="json", exclude_defaults=True) for group in self.groups]
        own = self.model_dump(exclude_none=True, exclude={"groups"})
        return {**own, "groups": groups} if groups else own


class ProductRow(Row):
    id: Identifier
    sku: Word
    name: Name
    names: dict[LocaleTag, Name] = Field(default_factory=dict)
    description: Prose = ""
    descriptions: dict[LocaleTag, Prose] = Field(default_factory=dict)
    """Both in other languages; a file writes `name.de` and `description.de`."""
    product_type: ProductType = ProductType.SIMPLE
    category: CategoryId
    active: bool = True
    attributes: dict[Word, Scalar] = Field(default_factory=dict)
    specs: dict[Word, Number | Word] = Field(default_factory=dict)
    options: dict[Word, OptionRow] = Field(default_factory=dict)
    rules: tuple[RuleRow, ...] = ()
    recommend: tuple[RuleRow, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    bundle: Bundle | None = None
    unit: Annotated[Word | None, BeforeValidator(empty_as_absent)] = None
    """What one of it is: `hour`, `metre`."""
    quantity_decimals: Annotated[Whole, Field(ge=0, le=QUANTITY_DECIMALS_MAX)] = 0
    """How many decimals a line's quantity may have."""
    default_selling_model: Annotated[Word | None, BeforeValidator(empty_as_absent)] = None
    """How it is sold where a line names no selling model and several fit."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.attributes and self.attributes.get(SUPPLY, Supply.NONE) not in tuple(Supply):
            raise ValueError(f"the attribute {SUPPLY} is one of {', '.join(Supply)}")
        is_plain = not (self.options or self.rules or self.recommend or self.relationships or self.bundle)
        if is_plain and self.product_type is not ProductType.BUNDLE:
            return self
        if self.options and self.product_type not in (ProductType.CONFIGURABLE, ProductType.BUNDLE):
            raise ValueError("options belong to a configurable product or a bundle")
        if self.bundle and self.product_type is not ProductType.BUNDLE:
            raise ValueError("bundle pricing belongs to a bundle")
        if self.product_type is ProductType.BUNDLE and self.quantity_decimals:
            raise ValueError("a bundle is sold in whole numbers, so it has no quantity_decimals")
        groups = self.bundle.groups if self.bundle else ()
        if self.product_type is ProductType.BUNDLE and not (self._components() or groups):
            raise ValueError("a bundle has relationships of kind component, or groups of components")
        if self.id in (*(relation.product_id for relation in self.relationships), *products_within(groups)):
            raise ValueError("a product has no relationship with itself")
        if twins := sorted(self.options.keys() & self.of_groups.options.keys()):
            raise ValueError(f"option {twins[0]} has the name of a group or component of the bundle")
        named = [(relation.kind, relation.product_id) for relation in self.relationships]
        if len(named) != len(set(named)):
            raise ValueError("a relationship is named twice")
        return self

    @property
    def of_groups(self) -> Expanded:
        """The options and rules that its groups of components stand for."""
        return self.bundle.expanded if self.bundle else Expanded({}, [])

    def _components(self) -> list[Relationship]:
        return [relation for relation in self.relationships if relation.kind is Relation.COMPONENT]
