"""Arguments of a line of a quote: products, custom items, prices, ramps, commitments, and notes for the seller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

from cpq.base.errors import bad_field
from cpq.domain.billing_periods import NOUNS
from cpq.domain.pricing.request import Segment
from cpq.domain.pricing.selling_models import in_one_word
from cpq.domain.quotes import internal, special_terms
from cpq.domain.quotes.special_terms import period_word
from cpq.services.quotes import DraftLine
from mcp_facade.arguments import (
    Attributes,
    Day,
    FineQuantity,
    Identifier,
    Justification,
    Listed,
    Measure,
    Money,
    Months,
    NonBlank,
    Notes,
    Part,
    Percentage,
    Quantity,
    UsedQuantity,
    Version,
    Word,
    as_object,
)


class RampStep(Part):
    """A segment of a ramp: months with their own quantity, price or discount."""

    months: Months | None = None
    until: Annotated[Day | None, Field(description="Instead of months.")] = None
    quantity: Annotated[Quantity | None, Field(description="Default: the line's.")] = None
    uplift_pct: Annotated[Percentage, Field(description="Increase of the price.")] = 0
    unit_price: Annotated[Money | None, Field(description="Instead of the regular price, for one period.")] = None
    discount_pct: Annotated[Percentage, Field(description="100 is free.")] = 0

    @model_validator(mode="after")
    def _has_one_price(self) -> Self:
        if self.unit_price is not None and (self.uplift_pct or self.discount_pct):
            raise ValueError("has unit_price and a percentage; give one of them")
        if (self.months is None) == (self.until is None):
            raise ValueError("has months or until, its last day; give one of them")
        return self

    def as_segment(self) -> Segment:
        until = self.until.isoformat() if self.until else None
        return Segment(
            self.months or 0, self.quantity, None, self.uplift_pct, self.unit_price, self.discount_pct, until
        )


class TextSource(Part):
    """The past quote from which a text was taken, as a search returned it."""

    quote_id: Identifier
    line: Version | None = None
    score: Measure | None = None
    customer: Annotated[NonBlank, Field(max_length=200)] | None = None


InternalNotes = Annotated[Notes | None, WithJsonSchema({"type": "string"})]
Sources = Annotated[
    Annotated[list[TextSource], Field(max_length=100)] | None,
    Listed,
    WithJsonSchema(
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"quote_id": {"type": "string", "minLength": 1}},
                "required": ["quote_id"],
            },
        }
    ),
]
Review = Annotated[
    Annotated[list[Justification], Field(max_length=50)] | None,
    Listed,
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]
"""Of a quote or a line, for the seller: notes, past quotes of its text, and what a person must look at."""


def aside(notes: str | None, sources: list[TextSource] | None, review: list[str] | None) -> dict[str, Any]:
    """What was given of the fields that only the seller reads, as `internal.changed` takes it."""
    given: dict[str, Any] = {}
    if notes is not None:
        given["notes"] = notes
    if sources is not None:
        given["sources"] = [internal.Source(one.quote_id, one.line, one.score, one.customer) for one in sources]
    if review is not None:
        given["review"] = review
    return given


ARRANGED = frozenset(special_terms.SpecialTerms._fields)
"""The arguments of a line that are special terms."""


def arranged(line: BaseModel) -> dict[str, Any]:
    """The special terms that a line gives."""
    given = {name: getattr(line, name) for name in ARRANGED & line.model_fields_set}
    custom = given.get("custom")
    if isinstance(custom, CustomLine):
        given |= {"custom": custom.as_item(), "unit_price": custom.unit_price}
    commitment = given.get("commitment")
    if isinstance(commitment, CommitmentTerms):
        given["commitment"] = commitment.as_commitment()
    if isinstance(custom, CustomChange):
        item = {name: value for name in custom.model_fields_set if (value := getattr(custom, name)) is not None}
        price = {"unit_price": item.pop("unit_price")} if "unit_price" in item else {}
        given |= {"custom": item or None, **price}
    return {name: value for name, value in given.items() if value is not None}


class CommitmentTerms(Part):
    """What the buyer of a usage line commits to in each period."""

    quantity: UsedQuantity | None = None
    amount: Money | None = None
    per: Annotated[Word, AfterValidator(period_word)] | None = None

    def as_commitment(self) -> special_terms.Commitment:
        return special_terms.Commitment(self.quantity, self.amount, self.per or "")


_PERIODS = [*NOUNS.values(), special_terms.WHOLE_TERM]
_COMMITTED = {"quantity": {"type": "number"}, "amount": {"type": "number"}, "per": {"enum": _PERIODS}}
CommitmentOfLine = Annotated[
    CommitmentTerms | None,
    Field(description="Of a usage price: all that is in the total."),
    BeforeValidator(as_object),
    WithJsonSchema({"type": "object", "properties": _COMMITTED}),
]


class CustomLine(Part):
    """An item of no catalogue: freight, a crane, a special part."""

    name: Annotated[NonBlank, Field(max_length=200)]
    description: Annotated[NonBlank, Field(max_length=2000)] | None = None
    unit_price: Money
    unit: Word | None = None
    category: Word | None = None
    tax_category: Word | None = None
    cost: Money | None = None

    def as_item(self) -> special_terms.CustomItem:
        return special_terms.CustomItem(
            self.name, self.description, self.unit, self.category, self.tax_category, self.cost
        )


class CustomChange(Part):
    """Another name, price, cost or category of an item of no catalogue."""

    name: Annotated[NonBlank, Field(max_length=200)] | None = None
    description: Annotated[NonBlank, Field(max_length=2000)] | None = None
    unit_price: Money | None = None
    unit: Word | None = None
    category: Word | None = None
    tax_category: Word | None = None
    cost: Money | None = None


_CUSTOM_FIELDS = {"name": "string", "unit_price": "number", "description": "string", "unit": "string"}
_CUSTOM_FIELDS |= {"category": "string", "tax_category": "string", "cost": "number"}


AnyText = WithJsonSchema({"type": "string"})
"""In the schema a text without bounds, where a wrong one gets an answer that lists the right ones."""


class LineItem(Part):
    """One line of a quote: a product, or a `custom` item."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"required": ["product_id", "quantity"]})

    product_id: Annotated[Identifier, Field(description="From catalog_search; or `custom`.")] = Field(
        default_factory=special_terms.CUSTOM.__str__  # It is called for every line; a default would be in the schema.
    )
    custom: Annotated[
        CustomLine | None,
        Field(description="An item of no catalogue, instead of a product."),
        WithJsonSchema(
            {
                "type": "object",
                "properties": {name: {"type": kind} for name, kind in _CUSTOM_FIELDS.items()},
                "required": ["name", "unit_price"],
            }
        ),
    ] = None
    quantity: Annotated[
        FineQuantity,
        Field(
            description="How many; on a ramp, in its largest segment. Whole, or as `quantity_decimals` of catalog_get."
        ),
    ]
    discount_pct: Annotated[Percentage, Field(description="A discount on this line.")] = 0
    discount_amount: Annotated[Money | None, Field(description="Off the whole line, instead of discount_pct.")] = None
    unit_price: Annotated[
        Money | None,
        Field(description="Instead of the regular price, for one period."),
    ] = None
    price_reason: Annotated[Justification | None, Field(description="Needed with unit_price; approvers read it.")] = (
        None
    )
    attributes: Annotated[
        Attributes, Field(description="Options of a configurable product; for others, free notes, never prices.")
    ] = Field(default_factory=dict)
    notes: Annotated[Notes | None, Field(description="Shown to the customer below the line; or `clause:ID`.")] = None
    option_set: Annotated[
        Word | None, Field(description="Name of an alternative; lines without one belong to all of them.")
    ] = None
    ramp: Annotated[
        list[RampStep],
        Field(max_length=60, description="Segments that tile the term."),
        Listed,
    ] = Field(default_factory=list)
    start_date: Annotated[Day | None, Field(description="Default: the quote's.")] = None
    term_months: Annotated[Months | None, Field(description="Default: the quote's.")] = None
    end_date: Annotated[Day | None, Field(description="Instead of term_months.")] = None
    selling_model: Annotated[
        Word | None,
        Field(description="`pick_with` of catalog_get, or `term`, `evergreen`. Default: the product's own."),
        AnyText,
    ] = None
    billing_period: Annotated[Word | None, Field(description="`month`, `2 weeks`."), AnyText] = None
    commitment: CommitmentOfLine = None
    expected_quantity: Annotated[UsedQuantity | None, Field(description="Estimated use.")] = None
    internal_notes: Annotated[InternalNotes, Field(description="For the seller; the customer never sees it.")] = None
    sources: Annotated[
        Sources, Field(description="For the seller, past quotes of its text: {quote_id, line, score, customer}.")
    ] = None
    review: Annotated[Review, Field(description="What a person must look at before it goes out.")] = None

    def as_draft(self, number: int) -> DraftLine:
        ramp = tuple(step.as_segment() for step in self.ramp) if self.ramp else ()
        return DraftLine(
            number,
            self.product_id,
            self.quantity,
            self.discount_pct,
            self.attributes,
            self.notes,
            self.option_set,
            ramp,
            in_one_word(self.selling_model, self.billing_period) if self.billing_period else self.selling_model,
            internal.changed(None, aside(self.internal_notes, self.sources, self.review)) if self._has_aside else None,
            special_terms.changed(None, arranged(self)) if self.model_fields_set & ARRANGED else None,
        )

    @property
    def _has_aside(self) -> bool:
        return not (self.internal_notes is None and self.sources is None and self.review is None)


class KeptLine(LineItem):
    """One line of a quote: a product, or a `custom` item."""

    # A field for how it was sent would cost every line of every other tool.
    _sent: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def sent(self) -> Mapping[str, Any]:
        """As the caller wrote it: what was read has amounts in millionths."""
        return self._sent


def _with_sent(value: Any, read: ValidatorFunctionWrapHandler) -> KeptLine:
    line: KeptLine = read(value)
    line._sent = value
    return line


SentLine = Annotated[KeptLine, WrapValidator(_with_sent)]
"""A line that an answer repeats in a call."""


def require_sold(lines: Sequence[LineItem], field: str) -> None:
    """Refuse lines that sell nothing, or a product and a custom item at once."""
    for index, line in enumerate(lines):
        if (line.custom is None) == (line.product_id == special_terms.CUSTOM):
            raise bad_field(f"{field}/{index}", "A line needs a product_id or custom, and not both.")
        if line.custom and line.unit_price is not None:
            raise bad_field(f"{field}/{index}", "The line has unit_price beside custom, which has its own.")
