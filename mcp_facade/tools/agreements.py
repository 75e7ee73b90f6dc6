"""The agreements toolset: what customers own, and how it changes. Agents read the docstrings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WithJsonSchema

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.domain.agreements.agreement import AgreementStatus
from cpq.domain.agreements.changes import Action, Change, RenewalPrice
from cpq.services import agreements
from cpq.services.agreements.views import AgreementDetail, AgreementPage, ChangeView
from cpq.services.orders import views as order_views
from cpq.services.orders.views import OrderDetail, OrderPage
from mcp_facade.arguments import (
    LIMIT_DEFAULT,
    LINES_MAX,
    Attributes,
    Day,
    FineQuantity,
    Flag,
    Identifier,
    Justification,
    Key,
    Limit,
    Listed,
    Money,
    Months,
    Notes,
    Page,
    Part,
    Percentage,
    Word,
    capped,
)
from mcp_facade.choices import one_of
from mcp_facade.line_arguments import CommitmentOfLine
from mcp_facade.registry import tool

AgreementId = Annotated[Identifier, Field(description="The `id` of an agreement from agreement_list.")]
EffectiveDate = Annotated[Day, Field(description="The first day on which the change holds.")]


class LineChange(Part):
    """One change; which fields it takes depends on `action`."""

    action: Annotated[
        Word,
        Field(
            description="set_quantity (line_id, quantity; of a usage line commitment); "
            "add_line (product_id, quantity); remove_line (line_id); "
            "swap_product (line_id, product_id); change_term (line_id, end_date); "
            "change_price (line_id, unit_price with price_reason, or discount_pct)."
        ),
        WithJsonSchema({"type": "string", "enum": [one.value for one in Action]}),
    ]
    line_id: Annotated[Identifier | None, Field(description="A line of the agreement, from agreement_get.")] = None
    quantity: FineQuantity | None = None
    product_id: Identifier | None = None
    attributes: Attributes | None = None
    selling_model: Word | None = None
    end_date: Annotated[Day | None, Field(description="Last day; a new line else ends with the agreement.")] = None
    unit_price: Annotated[Money | None, Field(description="Net of discounts, for one unit and period.")] = None
    price_reason: Justification | None = None
    discount_pct: Percentage | None = None
    commitment: CommitmentOfLine = None

    def as_change(self, place: int) -> Change:
        return Change(
            one_of(Action, self.action, f"/changes/{place}/action"),
            self.line_id,
            self.quantity,
            self.product_id,
            self.attributes,
            self.selling_model,
            self.end_date,
            self.unit_price,
            self.discount_pct,
            self.price_reason,
            self.commitment.as_commitment() if self.commitment else None,
        )


@tool(title="List agreements", toolset="agreements", needs=Permission.READ)
def agreement_list(
    tx: Tx,
    *,
    account_id: Annotated[Identifier | None, Field(description="Only of this account.")] = None,
    ends_before: Annotated[Day | None, Field(description="Only those whose term ends before this day.")] = None,
    status: Annotated[
        Word | None, WithJsonSchema({"type": "string", "enum": [one.value for one in AgreementStatus]})
    ] = None,
    limit: Limit = LIMIT_DEFAULT,
    page: Page = 1,
) -> AgreementPage:
    """List what customers own: an agreement begins when a quote is accepted and follows every later order.

    `status` is of today; `arr` is that after its last order, also before that takes effect: agreement_get has it for
    any day. Use `ends_before` to find renewals.
    """
    known = None if status is None else one_of(AgreementStatus, status, "/status")
    return agreements.list_agreements(
        tx, account_id=account_id, ends_before=ends_before, status=known, limit=capped(limit), page=page
    )


@tool(title="Get an agreement", toolset="agreements", needs=Permission.READ, subject="agreement_id")
def agreement_get(
    tx: Tx,
    *,
    agreement_id: AgreementId,
    as_of: Annotated[Day | None, Field(description="Any day, past or future; default: today.")] = None,
) -> AgreementDetail:
    """Read what an account owns on a day: each line with quantity, price for one period, dates and source order.

    Also recurring revenue, the next amount due, and the day a renewal would start. Next: agreement_amend to change it,
    agreement_renew before it ends, agreement_cancel to end it.
    """
    return agreements.get(tx, agreement_id, as_of=as_of)


@tool(title="Amend an agreement", toolset="agreements", needs=Permission.QUOTE, writes=True, subject="agreement_id")
def agreement_amend(
    tx: Tx,
    *,
    agreement_id: AgreementId,
    effective_date: EffectiveDate,
    changes: Annotated[list[LineChange], Field(min_length=1, max_length=LINES_MAX), Listed],
    notes: Notes | None = None,
    idempotency_key: Key = None,
) -> ChangeView:
    """Make a draft quote that changes what a customer owns: more or fewer seats, other products, another end or price.

    The quote has only the lines that change. Its price is the price after less the price before, from the effective
    date to the end, at the prices that were agreed; a negative amount is given back. Nothing changes until the
    customer accepts the quote. Next: quote_price, then approval_request or quote_send as for any quote.
    """
    return agreements.amend(
        tx,
        agreement_id,
        effective_date,
        [change.as_change(place) for place, change in enumerate(changes)],
        notes=notes,
        idempotency_key=idempotency_key,
    )


@tool(title="Renew an agreement", toolset="agreements", needs=Permission.QUOTE, writes=True, subject="agreement_id")
def agreement_renew(
    tx: Tx,
    *,
    agreement_id: AgreementId,
    term_months: Annotated[Months | None, Field(description="Default: as long as the term that ends.")] = None,
    start_date: Annotated[
        Day | None,
        Field(description="Default: the day after the end. Earlier: the rest of the old term is given back."),
    ] = None,
    price: Annotated[
        Word,
        Field(description="`same`: the last prices and discounts; `list`: today's list; `contracted`: today's prices."),
        WithJsonSchema({"type": "string", "enum": [one.value for one in RenewalPrice]}),
    ] = "same",
    uplift_pct: Annotated[
        Percentage | None, Field(description="Raises the last prices; default: as the policies say.")
    ] = None,
    also: Annotated[
        list[Identifier], Field(max_length=20, description="Agreements that are renewed into this one."), Listed
    ] = [],  # noqa: B006
    notes: Notes | None = None,
    idempotency_key: Key = None,
) -> ChangeView:
    """Make a draft quote for the next term of an agreement: all its lines with a term, at the same or today's prices.

    Several agreements of one account can go on as one that ends on one day. Nothing changes until the customer accepts.
    Next: quote_price, then approval_request or quote_send as for any quote.
    """
    chosen = one_of(RenewalPrice, price, "/price")
    return agreements.renew(
        tx,
        agreement_id,
        start=start_date,
        term_months=term_months,
        uplift_percent=uplift_pct,
        price=chosen,
        also=also,
        notes=notes,
        idempotency_key=idempotency_key,
    )


@tool(title="Cancel an agreement", toolset="agreements", needs=Permission.QUOTE, writes=True, subject="agreement_id")
def agreement_cancel(
    tx: Tx,
    *,
    agreement_id: AgreementId,
    effective_date: Annotated[Day, Field(description="The first day that is not owned any more.")],
    reason: Annotated[Justification, Field(description="Why; the customer reads it.")],
    lines: Annotated[
        list[Identifier] | None, Field(max_length=LINES_MAX, description="Only these lines; default: all."), Listed
    ] = None,
    idempotency_key: Key = None,
) -> ChangeView:
    """Make a draft quote that ends an agreement or some of its lines, with what is given back for the rest.

    How much that is follows the price: nothing, the rest by days, or whole periods. Nothing ends until the customer
    accepts the quote. Next: quote_price, then approval_request or quote_send as for any quote.
    """
    return agreements.cancel(
        tx,
        agreement_id,
        effective_date,
        lines=lines,
        reason=reason,
        idempotency_key=idempotency_key,
    )


@tool(title="List orders", toolset="agreements", needs=Permission.READ)
def order_list(
    tx: Tx,
    *,
    account_id: Annotated[Identifier | None, Field(description="Only of this account.")] = None,
    agreement_id: Annotated[Identifier | None, Field(description="Only of this agreement.")] = None,
    limit: Limit = LIMIT_DEFAULT,
    page: Page = 1,
) -> OrderPage:
    """List orders, newest first. Every accepted quote is one order, which never changes."""
    return order_views.list_orders(tx, account_id=account_id, agreement_id=agreement_id, limit=capped(limit), page=page)


@tool(title="Get an order", toolset="agreements", needs=Permission.READ, subject="order_id")
def order_get(
    tx: Tx,
    *,
    order_id: Annotated[Identifier, Field(description="The id of an order, or its number such as `SO-2026-000001`.")],
    include_schedule: Annotated[Flag, Field(description="Also list the billing schedule line by line.")] = False,
) -> OrderDetail:
    """Read an order as it was accepted: its lines, days and amounts, who accepted, and what is due when, before tax."""
    return order_views.get(tx, order_id, include_schedule=include_schedule)


TOOLS = (
    agreement_list,
    agreement_get,
    agreement_amend,
    agreement_renew,
    agreement_cancel,
    order_list,
    order_get,
)
