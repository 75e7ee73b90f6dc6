"""PURE. Rows of a file of past quotes: a quote with its lines inside, or one row for each line, as in CSV."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from cpq.base.text import clean, clean_line
from cpq.domain.field_types import Currency, Identifier, Number, Row
from cpq.domain.quotes.file_rows import QUOTE_NOTES, Notes, Quantity, Reference, UsualDay

DESCRIPTION_LENGTH_MAX = 100_000
"""Some installation texts are long; they are stored and returned whole, with their typing errors."""

Line = Annotated[str, Field(max_length=200), AfterValidator(clean_line)]


def _said(text: str) -> str:
    if not clean(text).strip():
        raise ValueError("is blank")
    return text


Verbatim = Annotated[str, Field(max_length=DESCRIPTION_LENGTH_MAX), AfterValidator(_said)]


class PastLineRow(Row):
    category: Line
    description: Verbatim
    quantity: Quantity = 1
    unit_price: Annotated[Number, Field(ge=0)] | None = None
    model: Line | None = None
    product_id: Reference | None = None


class PastQuoteRow(Row):
    id: Identifier
    customer: Line
    project: Line
    quoted_on: UsualDay
    currency: Currency = "USD"
    outcome: Literal["won", "lost", "open", "unknown"] = "unknown"
    salesperson: Line | None = None
    notes: Notes | None = None
    line_items: tuple[PastLineRow, ...]

    @model_validator(mode="after")
    def _has_lines(self) -> Self:
        if not self.line_items:
            raise ValueError("a quote has at least one line in line_items")
        return self


OF_QUOTE = frozenset((*PastQuoteRow.model_fields, QUOTE_NOTES)) - {"notes", "line_items"}
KNOWN = (*PastQuoteRow.model_fields, *PastLineRow.model_fields, QUOTE_NOTES)
