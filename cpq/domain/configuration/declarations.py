"""Declarations of a product's configuration: options, and rules between them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from cpq.base.text import clean_line
from cpq.domain.configuration.options import NONE
from cpq.domain.configuration.quote_rules import compile_quote_rule
from cpq.domain.field_types import (
    QUANTITY_MAX,
    Amount,
    CategoryId,
    Free,
    Identifier,
    LocaleTag,
    Name,
    Number,
    Row,
    Scalar,
    Whole,
    Word,
)

PartName = Annotated[str, Field(max_length=48), AfterValidator(clean_line)]
"""Of a group or component; options and rules are called by it with a word more."""

PieceCount = Annotated[Whole, Field(ge=1, le=QUANTITY_MAX)]


class OptionRow(Row):
    """One option of a buyer. Configuration rules refer to it by its name and values."""

    type: Literal["enum", "integer", "number", "boolean", "text"]
    label: Name | None = None
    labels: dict[LocaleTag, Name] | None = None
    values: tuple[Scalar, ...] = ()
    value_names: dict[LocaleTag, dict[Word, Name]] | None = None
    """Label and values in other languages; a file writes `label.de` and `values.de`."""
    unit: Word | None = None
    min: Number | None = None
    max: Number | None = None
    step: Amount | None = None
    default: Scalar | None = None
    required: bool = False
    keep: Annotated[Whole, Field(ge=1, le=9)] = 1
    active_when: dict[Word, Free] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type == "enum" and not self.values:
            raise ValueError("an enum option lists its values")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min is above max")
        # With their types, because to Python true equals 1.
        values = [(type(value), value) for value in self.values]
        if self.default is not None and values and (type(self.default), self.default) not in values:
            raise ValueError("the default is not one of the values")
        named = {name for names in (self.value_names or {}).values() for name in names}
        if unknown := sorted(named - set(map(str, self.values))):
            raise ValueError(f"a translation names {unknown[0]!r}, which is not one of the values")
        return self


CONSTRUCTS = ("then", "forbid", "table", "compare", "choose", "requires", "excludes")
NamedOptions = Annotated[tuple[Word, ...], Field(min_length=2)]


class RuleRow(Row):
    """A constraint between options: a sentence to quote, an optional condition, and exactly one construct.

    `requires` says that with the first option taken, the others are taken, too; `excludes` that at most one is taken.
    """

    id: Word
    say: Annotated[str, Field(max_length=500), AfterValidator(clean_line)]
    when: dict[Word, Free] | None = None
    then: dict[Word, Free] | None = None
    forbid: dict[Word, Free] | None = None
    table: dict[Word, Free] | None = None
    compare: dict[Word, Free] | None = None
    choose: dict[Word, Free] | None = None
    requires: NamedOptions | None = None
    excludes: NamedOptions | None = None

    @model_validator(mode="after")
    def _one_construct(self) -> Self:
        if sum(getattr(self, name) is not None for name in CONSTRUCTS) != 1:
            raise ValueError(f"a rule has exactly one of {', '.join(CONSTRUCTS)}")
        self.options_named()
        return self

    def options_named(self) -> set[str]:
        compared = [name for side in ("left", "right") for name in _names(self.compare, side, dict)]
        columns = [*_names(self.table, "columns", list), *_names(self.choose, "from", list)]
        listed = [*(self.requires or ()), *(self.excludes or ())]
        return {*(self.when or {}), *(self.then or {}), *(self.forbid or {}), *compared, *columns, *listed} - {"const"}


class ComponentRow(Row):
    """A product that a buyer of a bundle may choose. With `max_quantity` the buyer also chooses how many."""

    name: PartName
    product_id: Identifier
    label: Name | None = None
    quantity: PieceCount = 1
    min_quantity: PieceCount | None = None
    max_quantity: PieceCount | None = None
    required: bool = False
    default: bool = False
    included: bool = False
    """Whether the price of the bundle includes it; otherwise it is charged at its own price."""
    groups: tuple[GroupRow, ...] = ()
    """Choices that exist only with this component; their quantities are for one piece of it."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.min_quantity is not None and self.max_quantity is None:
            raise ValueError("min_quantity goes with max_quantity")
        if self.max_quantity is not None and not (self.min_quantity or 1) <= self.quantity <= self.max_quantity:
            raise ValueError("quantity, which is the default, is between min_quantity and max_quantity")
        return self


class GroupRow(Row):
    """Components of a bundle: a buyer chooses at least `min` and at most `max` of them, without `max` any number."""

    name: PartName
    label: Name | None = None
    min: Annotated[Whole, Field(ge=0)] = 0
    max: Annotated[Whole, Field(ge=1)] | None = None
    components: Annotated[tuple[ComponentRow, ...], Field(min_length=1)]

    @property
    def is_single(self) -> bool:
        """Whether at most one is chosen, so that one option says which."""
        return self.max == 1

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        count, most = len(self.components), self.max or len(self.components)
        required = sum(component.required for component in self.components)
        taken = sum(component.required or component.default for component in self.components)
        if not self.min <= most or self.min > count:
            raise ValueError(f"min is at most max, and at most the {count} components of the group")
        if required > most or (self.is_single and required and count > 1):
            raise ValueError("more components are required than max lets the buyer choose from")
        if taken > most:
            raise ValueError("more components are chosen by default than max allows")
        if self.is_single and any(component.name == NONE for component in self.components):
            raise ValueError(f"{NONE!r} is no name of a component: it is how a buyer chooses no component")
        return self


def _names(construct: dict[str, Any] | None, part: str, kind: type[dict[str, Any]] | type[list[str]]) -> list[str]:
    """The options that a part of a construct names, as the keys of a mapping or the items of a list."""
    named = (construct or {}).get(part, kind())
    if not isinstance(named, kind) or not all(isinstance(name, str) for name in named):
        raise ValueError(f"{part} is a {'mapping from' if kind is dict else 'list of'} names of options")
    return list(named)


class SetRow(Row):
    """Products of a quote: those that are named or are of a category, and whose values meet every condition."""

    products: tuple[Identifier, ...] = ()
    categories: tuple[CategoryId, ...] = ()
    where: dict[Word, Free] = Field(default_factory=dict)
    """Conditions on specs, attributes and chosen options by their names, written as in rules between options."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not (self.products or self.categories or self.where):
            raise ValueError("a set names products, categories or conditions")
        return self


ACROSS_LINES = ("then", "forbid", "compare", "requires", "excludes")


class QuoteRuleRow(Row):
    """A rule over the lines of a quote: a sentence, sets of products, and what their totals must be.

    A total is the name of a set for its pieces, `SET.lines` for its lines, and `SET.NAME` for the sum of a number that
    every product of the set has, times its pieces.
    """

    id: Identifier
    say: Annotated[str, Field(max_length=500), AfterValidator(clean_line)]
    severity: Literal["required", "recommended"] = "required"
    active: bool = True
    sets: Annotated[dict[Word, SetRow], Field(min_length=1, max_length=10)]
    when: dict[Word, Free] | None = None
    then: dict[Word, Free] | None = None
    forbid: dict[Word, Free] | None = None
    compare: dict[Word, Free] | None = None
    requires: NamedOptions | None = None
    excludes: NamedOptions | None = None
    add: Identifier | None = None
    """The product that repairs it, where it is not the one of a set that fits best."""

    @model_validator(mode="after")
    def _works(self) -> Self:
        if sum(getattr(self, name) is not None for name in ACROSS_LINES) != 1:
            raise ValueError(f"a rule has exactly one of {', '.join(ACROSS_LINES)}")
        compile_quote_rule(self)
        return self
