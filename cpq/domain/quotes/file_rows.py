"""PURE. Quotes in a file: whole with their lines inside, or as rows of one line each, as in a CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from cpq.base.money import to_micro
from cpq.base.row_problems import Problem, SourceRow, faults
from cpq.base.text import clean, clean_identifier, clean_line
from cpq.domain.field_types import (
    QUANTITY_MAX,
    Currency,
    Day,
    FineQuantity,
    Identifier,
    Number,
    Row,
    Scalar,
    UsedQuantity,
    Whole,
    Word,
    empty_as_absent,
)
from cpq.domain.pricing.request import Segment
from cpq.domain.pricing.selling_models import in_one_word
from cpq.domain.quotes import special_terms
from cpq.domain.quotes.draft import OWN_CURRENCY, Draft, DraftLine
from cpq.domain.quotes.special_terms import Commitment, CustomItem, SpecialTerms

LINES_MAX = 10_000
MONTHS_MAX = 1200
RAMP_MAX = 60
YEARS = (1900, 2200)

AnyQuote = TypeVar("AnyQuote", bound=Row)


def _usual(day: date) -> date:
    if not YEARS[0] <= day.year <= YEARS[1]:
        raise ValueError(f"is a day from {YEARS[0]} to {YEARS[1]}")
    return day


Percent = Annotated[Number, Field(ge=0, le=100)]
Money = Annotated[Number, Field(ge=0, le=10**12)]
Months = Annotated[Whole, Field(ge=1, le=MONTHS_MAX)]
Quantity = Annotated[Whole, Field(ge=1, le=QUANTITY_MAX)]
Notes = Annotated[str, Field(max_length=10_000), AfterValidator(clean)]
Reference = Annotated[str, Field(max_length=128), AfterValidator(clean_identifier)]
UsualDay = Annotated[Day, AfterValidator(_usual)]


class RampRow(Row):
    months: Months | None = None
    until: UsualDay | None = None
    quantity: Quantity | None = None
    uplift_pct: Percent = Decimal(0)
    unit_price: Money | None = None
    discount_pct: Percent = Decimal(0)

    @model_validator(mode="after")
    def _has_one_price(self) -> Self:
        if self.unit_price is not None and (self.uplift_pct or self.discount_pct):
            raise ValueError("a segment has unit_price or a percentage, not both")
        if (self.months is None) == (self.until is None):
            raise ValueError("a segment has months or until, its last day")
        return self

    def as_segment(self) -> Segment:
        price = None if self.unit_price is None else to_micro(self.unit_price)
        uplift, discount = to_micro(self.uplift_pct), to_micro(self.discount_pct)
        until = self.until.isoformat() if self.until else None
        return Segment(self.months or 0, self.quantity, None, uplift, price, discount, until)


class CustomRow(Row):
    """An item of no catalogue: freight, a crane, a special part."""

    name: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(clean_line)]
    unit_price: Money
    description: Annotated[str, Field(max_length=2000), AfterValidator(clean)] | None = None
    unit: Word | None = None
    category: Word | None = None
    tax_category: Word | None = None
    cost: Money | None = None

    def as_item(self) -> CustomItem:
        cost = None if self.cost is None else to_micro(self.cost)
        return CustomItem(self.name, self.description, self.unit, self.category, self.tax_category, cost)


class CommitmentRow(Row):
    quantity: UsedQuantity | None = None
    amount: Money | None = None
    per: Annotated[Word, AfterValidator(special_terms.period_word)] | None = None

    def as_commitment(self) -> Commitment:
        return Commitment(self.quantity, None if self.amount is None else to_micro(self.amount), self.per or "")


class LineRow(Row):
    custom: Annotated[CustomRow | None, BeforeValidator(empty_as_absent)] = None
    """Instead of a product."""
    product_id: Annotated[Reference | None, BeforeValidator(empty_as_absent), Field(validate_default=True)] = None
    quantity: FineQuantity
    discount_pct: Percent = Decimal(0)
    attributes: Annotated[dict[Word, Scalar], Field(max_length=100)] = Field(default_factory=dict)
    notes: Notes | None = None
    option_set: Word | None = None
    ramp: Annotated[tuple[RampRow, ...], Field(max_length=RAMP_MAX)] = ()
    selling_model: Annotated[Word | None, BeforeValidator(empty_as_absent)] = None
    billing_period: Annotated[Word | None, BeforeValidator(empty_as_absent)] = None
    discount_amount: Annotated[Money | None, BeforeValidator(empty_as_absent)] = None
    unit_price: Annotated[Money | None, BeforeValidator(empty_as_absent)] = None
    price_reason: Annotated[Notes | None, BeforeValidator(empty_as_absent)] = None
    line_start_date: Annotated[UsualDay | None, BeforeValidator(empty_as_absent)] = None
    line_term_months: Annotated[Months | None, BeforeValidator(empty_as_absent)] = None
    line_end_date: Annotated[UsualDay | None, BeforeValidator(empty_as_absent)] = None
    commitment: Annotated[CommitmentRow | None, BeforeValidator(empty_as_absent)] = None
    expected_quantity: Annotated[UsedQuantity | None, BeforeValidator(empty_as_absent)] = None

    @field_validator("product_id")
    @classmethod
    def _sells_something(cls, product_id: str | None, info: ValidationInfo) -> str | None:
        if "custom" in info.data and (product_id is None) == (info.data["custom"] is None):
            raise ValueError("is required" if product_id is None else "stands beside custom; give one of them")
        return product_id

    @model_validator(mode="after")
    def _has_one_price(self) -> Self:
        if self.custom and self.unit_price is not None:
            raise ValueError("the line has unit_price beside custom, which has its own")
        return self

    def as_draft(self, number: int) -> DraftLine:
        ramp = tuple(step.as_segment() for step in self.ramp)
        discount = to_micro(self.discount_pct)
        return DraftLine(
            number,
            self.product_id or special_terms.CUSTOM,
            self.quantity,
            discount,
            self.attributes,
            self.notes,
            self.option_set,
            ramp,
            in_one_word(self.selling_model, self.billing_period),
            special=self._special,
        )

    @property
    def _special(self) -> SpecialTerms | None:
        given: dict[str, Any] = {
            "unit_price": None if self.unit_price is None else to_micro(self.unit_price),
            "price_reason": self.price_reason,
            "discount_amount": to_micro(self.discount_amount or Decimal(0)),
            "start_date": self.line_start_date,
            "term_months": self.line_term_months,
            "end_date": self.line_end_date,
            "commitment": self.commitment and self.commitment.as_commitment(),
            "expected_quantity": self.expected_quantity,
        }
        if self.custom:
            given |= {"custom": self.custom.as_item(), "unit_price": to_micro(self.custom.unit_price)}
        return special_terms.changed(None, given)


class QuoteRow(Row):
    id: Identifier
    account_id: Reference
    deal_id: Reference | None = None
    currency: Currency | None = None
    """Default: the account's own; for a quote that exists, the one it has."""
    term_months: Months | None = None
    start_date: UsualDay | None = None
    end_date: UsualDay | None = None
    valid_until: UsualDay | None = None
    """Default: by the policies; for a quote that exists, as it has it."""
    payment_terms: Word | None = None
    notes: Notes | None = None
    line_items: tuple[LineRow, ...]

    @model_validator(mode="after")
    def _has_lines(self) -> Self:
        if not self.line_items:
            raise ValueError("a quote has at least one line in line_items")
        return self

    def as_draft(self) -> Draft:
        return Draft(
            account_id=self.account_id,
            currency=self.currency or OWN_CURRENCY,
            lines=tuple(line.as_draft(number) for number, line in enumerate(self.line_items, 1)),
            deal_id=self.deal_id,
            term_months=self.term_months,
            start_date=self.start_date,
            end_date=self.end_date,
            valid_until=self.valid_until,
            payment_terms=self.payment_terms,
            notes=self.notes,
        )


QUOTE_NOTES = "quote_notes"
"""The name of the quote's notes in a row of one line, where `notes` are the line's."""

OF_QUOTE = frozenset((*QuoteRow.model_fields, QUOTE_NOTES)) - {"notes", "line_items"}
KNOWN = (*QuoteRow.model_fields, *LineRow.model_fields, QUOTE_NOTES)


@dataclass
class SourceQuote:
    """One quote as it is in the file, with the file's line number for each of its lines."""

    line: int
    values: dict[str, Any]
    lines: list[int] | None = None
    """None when the lines are inside the quote's own row."""
    problems: list[Problem] = field(default_factory=list)
    given_on: dict[str, int] = field(default_factory=dict)
    of_quote: frozenset[str] = OF_QUOTE

    def place(self, index: int, inside: str) -> tuple[int, str]:
        """The place of a line's problem: the line of the file, and the field by the file's name."""
        if self.lines is None or index >= len(self.lines):
            return self.line, ".".join(filter(None, ("line_items", str(index), inside)))
        return self.lines[index], inside or "row"

    def add(self, source: SourceRow) -> None:
        """Add a row of one line; its fields of the quote must equal those of earlier rows."""
        items = self.values["line_items"]
        asked = {}
        for name, value in source.values.items():
            if name not in self.of_quote:
                asked[name] = value
                continue
            known = "notes" if name == QUOTE_NOTES else name
            if known not in self.values:
                self.values[known] = value
                self.given_on[known] = source.line
            elif self.values[known] != value:
                reason = (
                    f"is {value!r} here and {self.values[known]!r} on line {self.given_on[known]} of the same quote"
                )
                self.problems.append(Problem(source.line, name, reason))
        assert self.lines is not None
        self.lines.append(source.line)
        if len(items) <= LINES_MAX:
            items.append(asked)


def quotes_of(rows: Iterable[SourceRow], of_quote: frozenset[str] = OF_QUOTE) -> Iterator[SourceQuote]:
    """The quotes of a file, each whole. Consecutive rows with the same id form one quote.

    `of_quote` are the columns that belong to the whole quote.
    """
    current: SourceQuote | None = None
    for row in rows:
        is_whole, id_ = "line_items" in row.values, row.values.get("id")
        if current is not None and (is_whole or id_ is None or current.values.get("id") != id_):
            yield current
            current = None
        if is_whole:
            yield SourceQuote(row.line, dict(row.values))
            continue
        current = current or SourceQuote(row.line, {"line_items": []}, lines=[], of_quote=of_quote)
        current.add(row)
    if current is not None:
        yield current


def validate(source: SourceQuote) -> tuple[QuoteRow | None, list[Problem]]:
    """The valid quote, or every problem of it."""
    return validate_as(QuoteRow, source, KNOWN)


def sound_part(source: SourceQuote) -> tuple[QuoteRow, list[int], frozenset[str]] | None:
    """A refused quote without its wrong fields and lines, so that the rest can be checked too.

    With the index of each line that is left, and the fields that were taken out; None when no line is left.
    """
    items = source.values.get("line_items")
    if not isinstance(items, list) or len(items) > LINES_MAX:
        return None
    try:
        QuoteRow.model_validate(source.values)
        places: set[tuple[str | int, ...]] = set()
    except ValidationError as error:
        places = {tuple(fault["loc"][:2]) for fault in error.errors(include_url=False, include_input=False)}
    wrong = frozenset(str(place[0]) for place in places if place) - {"line_items"}
    kept = [index for index in range(len(items)) if ("line_items", index) not in places]
    values = {name: value for name, value in source.values.items() if name not in wrong}
    values |= {name: "unknown" for name in ("id", "account_id") if name in wrong}
    try:
        row = QuoteRow.model_validate({**values, "line_items": [items[index] for index in kept]})
    except ValidationError:
        return None
    return row, kept, wrong


def validate_as(
    shape: type[AnyQuote], source: SourceQuote, known: Iterable[str]
) -> tuple[AnyQuote | None, list[Problem]]:
    """The quote as a valid row of that shape, or every problem of it."""
    items = source.values.get("line_items")
    count = len(source.lines or ()) or (len(items) if isinstance(items, list) else 0)
    if count > LINES_MAX:
        reason = f"a quote has at most {LINES_MAX:,} lines, not {count:,}"
        return None, [*source.problems, Problem(source.line, "line_items", reason)]
    try:
        row = shape.model_validate(source.values)
    except ValidationError as error:
        return None, [*source.problems, *(_located(problem, source) for problem in faults(error, source.line, known))]
    return (None, source.problems) if source.problems else (row, [])


def _located(problem: Problem, source: SourceQuote) -> Problem:
    first, _, rest = problem.field.partition(".")
    index, _, inside = rest.partition(".")
    if first != "line_items" or not index.isdecimal():
        return problem
    line, place = source.place(int(index), inside)
    return problem._replace(line=line, field=place)
