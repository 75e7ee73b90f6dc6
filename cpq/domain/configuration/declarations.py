"""Declarations of a product's configuration: options, and rules between them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from cpq.base.text import clean_line
from cpq.domain.field_types import Amount, Free, LocaleTag, Name, Number, Row, Scalar, Whole, Word


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


class RuleRow(Row):
    """A constraint between options: a sentence to quote, an optional condition, and exactly one construct."""

    id: Word
    say: Annotated[str, Field(max_length=500), AfterValidator(clean_line)]
    when: dict[Word, Free] | None = None
    then: dict[Word, Free] | None = None
    forbid: dict[Word, Free] | None = None
    table: dict[Word, Free] | None = None
    compare: dict[Word, Free] | None = None
    choose: dict[Word, Free] | None = None

    @model_validator(mode="after")
    def _one_construct(self) -> Self:
        constructs = [self.then, self.forbid, self.table, self.compare, self.choose]
        if sum(construct is not None for construct in constructs) != 1:
            raise ValueError("a rule has exactly one of then, forbid, table, compare, choose")
        self.options_named()
        return self

    def options_named(self) -> set[str]:
        compared = [name for side in ("left", "right") for name in _names(self.compare, side, dict)]
        columns = [*_names(self.table, "columns", list), *_names(self.choose, "from", list)]
        return {*(self.when or {}), *(self.then or {}), *(self.forbid or {}), *compared, *columns} - {"const"}


def _names(construct: dict[str, Any] | None, part: str, kind: type[dict[str, Any]] | type[list[str]]) -> list[str]:
    """The options that a part of a construct names, as the keys of a mapping or the items of a list."""
    named = (construct or {}).get(part, kind())
    if not isinstance(named, kind) or not all(isinstance(name, str) for name in named):
        raise ValueError(f"{part} is a {'mapping from' if kind is dict else 'list of'} names of options")
    return list(named)
