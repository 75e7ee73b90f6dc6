"""What the seller sees of a quote or a line beside its price: notes, and what was arranged for the line."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Annotated, NotRequired

from typing_extensions import TypedDict

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.described import Described
from cpq.base.money import Amount, amount
from cpq.domain.quotes.internal import Internal
from cpq.domain.quotes.special_terms import SpecialTerms


class SourceView(TypedDict):
    """The past quote from which a text was taken; the customer is null for callers who may not see names."""

    quote_id: str
    line: int | None
    score: Decimal | None
    customer: str | None


class MarkView(TypedDict):
    """Something a person must look at before the customer gets the quote."""

    text: str
    state: str
    """`open` or `closed`."""
    closed_by: str | None
    closed_at: str | None


class InternalView(TypedDict):
    """What only the seller reads; absent where there is nothing."""

    internal_notes: NotRequired[str]
    sources: NotRequired[list[SourceView]]
    review: NotRequired[list[MarkView]]


class CustomView(TypedDict):
    """An item of no catalogue; its cost only for those who may see costs."""

    name: str
    unit_price: Amount
    description: NotRequired[str]
    unit: NotRequired[str]
    category: NotRequired[str]
    tax_category: NotRequired[str]
    cost: NotRequired[Amount]


class AgreedView(TypedDict):
    """What a line changes in an agreement. Its other amounts are those of what is sold from its start date on."""

    action: Annotated[str, Described("`add`, `change`, `remove` or `renew`.")]
    agreement_line_id: str | None
    quantity_before: Amount | None
    credit: Annotated[Amount, Described("Given back for what held before; already taken off subtotal and line_total.")]


class SpecialView(TypedDict):
    """What was arranged for a line; absent where nothing was."""

    override_unit_price: NotRequired[
        Annotated[Amount, Described("Given instead of the regular price, for one period; sent back as `unit_price`.")]
    ]
    price_reason: NotRequired[str]
    line_discount_amount: NotRequired[
        Annotated[Amount, Described("The line's own discount as an amount; sent back as `discount_amount`.")]
    ]
    custom: NotRequired[Annotated[CustomView, Described("What it sells instead of a product.")]]
    start_date: NotRequired[Annotated[date, Described("Of this line, where it is not the quote's.")]]
    term_months: NotRequired[int]
    end_date: NotRequired[date]
    agreement_change: NotRequired[AgreedView]


NO_TERMS: SpecialView = {}
"""Of most lines."""


def special_view(special: SpecialTerms | None, *, with_cost: bool = False) -> SpecialView:
    """`with_cost` for those who may see costs."""
    view: SpecialView = {}
    if special is None:
        return view
    if special.custom:
        given = {name: value for name, value in special.custom.given.items() if name != "cost"}
        if with_cost and special.custom.cost is not None:
            given["cost"] = amount(special.custom.cost)
        view["custom"] = {**given, "unit_price": amount(special.unit_price or 0)}  # type: ignore[typeddict-item] # All of them.
    elif special.unit_price is not None:
        view["override_unit_price"] = amount(special.unit_price)
    if special.price_reason:
        view["price_reason"] = special.price_reason
    if special.discount_amount:
        view["line_discount_amount"] = amount(special.discount_amount)
    if special.start_date:
        view["start_date"] = special.start_date
    if special.term_months:
        view["term_months"] = special.term_months
    if special.end_date:
        view["end_date"] = special.end_date
    if special.agreed:
        view["agreement_change"] = {
            "action": special.agreed.action,
            "agreement_line_id": special.agreed.line_id,
            "quantity_before": Decimal(special.agreed.quantity_before) if special.agreed.quantity_before else None,
            "credit": amount(special.agreed.credit),
        }
    return view


def credit_of(special: SpecialTerms | None) -> int:
    """What a line gives back of an agreement, in millionths."""
    return special.agreed.credit if special and special.agreed else 0


def internal_view(tx: Tx, internal: Internal | None) -> InternalView:
    view: InternalView = {}
    if internal is None:
        return view
    if internal.notes:
        view["internal_notes"] = internal.notes
    if internal.sources:
        sees = tx.principal.may(Permission.SEE_CUSTOMERS)
        view["sources"] = [
            {"quote_id": one.quote_id, "line": one.line, "score": one.score, "customer": one.customer if sees else None}
            for one in internal.sources
        ]
    if internal.review:
        view["review"] = [
            {
                "text": mark.text,
                "state": "open" if mark.is_open else "closed",
                "closed_by": mark.closed_by,
                "closed_at": mark.closed_at,
            }
            for mark in internal.review
        ]
    return view
