"""The approvals toolset: preview, decide, delegate and withdraw approvals. Agents read the docstrings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.services import approvals
from cpq.services.approvals.decisions import ApprovalDecided, ApprovalWithdrawn
from cpq.services.approvals.delegations import DelegationView
from cpq.services.approvals.requests import ApprovalPreview
from cpq.services.approvals.views import ApprovalHistory
from mcp_facade.arguments import Identifier, Justification, Moment, Word
from mcp_facade.registry import tool

QuoteId = Annotated[Identifier, Field(description="The quote.")]
ApprovalId = Annotated[Identifier, Field(description="The request, `APR-…`, from approval_pending.")]


@tool(title="Preview the approvals", toolset="approvals", needs=Permission.READ, subject="quote_id")
def approval_preview(tx: Tx, *, quote_id: QuoteId) -> ApprovalPreview:
    """Show who would have to approve the current version of a quote, in which order and why. Sends no request.

    `would_be` is `asked`, `kept` (an earlier approval still counts), `pending`, `approved` or `missing`, with the
    reasons. `approvers` are the people who could decide now; a role without approvers cannot answer.
    """
    return approvals.preview(tx, quote_id)


@tool(
    title="Decide on an approval",
    toolset="approvals",
    needs=Permission.DECIDE,
    writes=True,
    is_destructive=True,
    subject="approval_id",
)
def approval_decide(
    tx: Tx,
    *,
    approval_id: ApprovalId,
    decision: Annotated[approvals.Decision, Field(description="A rejection ends the round for all roles.")],
    fingerprint: Annotated[
        Identifier,
        Field(description="The `fingerprint` you were shown; if the quote has changed since, nothing is decided."),
    ],
    comment: Annotated[Justification | None, Field(description="Required for a rejection.")] = None,
) -> ApprovalDecided:
    """Approve or reject a request, as a person who holds the requested role. The first decision holds.

    People cannot decide on a request or a quote of their own, and programs cannot decide at all. The last approval
    that the policies require makes the quote approved, so that it can be sent.
    """
    return approvals.decide(tx, approval_id, decision, fingerprint=fingerprint, comment=comment)


@tool(title="Delegate a role", toolset="approvals", needs=Permission.DECIDE, writes=True, makes_new=True)
def approval_delegate(
    tx: Tx,
    *,
    role: Annotated[Word, Field(description="A role that you hold.")],
    to: Annotated[Word, Field(description="The name of another person who may decide.")],
    until: Annotated[
        Moment | None,
        Field(description="When it ends, `2026-03-01T18:00:00Z`; at most a year. If omitted, it ends now."),
    ] = None,
    starts_at: Annotated[Moment | None, Field(description="When it begins; default: now.")] = None,
    account_id: Annotated[Identifier | None, Field(description="Only for quotes of this account.")] = None,
    quote_id: Annotated[Identifier | None, Field(description="Only for this quote.")] = None,
) -> DelegationView:
    """Delegate your role to another person for a while. Neither of you can then decide on the other's requests.

    Without `until`, it ends your delegation of that role to that person.
    """
    if until is None:
        return approvals.end_delegation(tx, role, to=to, account_id=account_id, quote_id=quote_id)
    return approvals.delegate(
        tx,
        role,
        to=to,
        starts_at=starts_at or tx.now,
        ends_at=until,
        account_id=account_id,
        quote_id=quote_id,
    )


@tool(
    title="Withdraw a request",
    toolset="approvals",
    needs=Permission.WITHDRAW,
    writes=True,
    is_destructive=True,
    subject="approval_id",
)
def approval_withdraw(
    tx: Tx,
    *,
    approval_id: ApprovalId,
    reason: Annotated[Justification | None, Field(description="The reason, in one sentence.")] = None,
) -> ApprovalWithdrawn:
    """Withdraw a request that you made and that nobody has decided yet. Administrators can withdraw any request.

    A request to a role that no policy requires holds the quote while nobody answers, also after it expired; withdraw it
    to go on without that role.
    """
    return approvals.withdraw(tx, approval_id, reason=reason)


@tool(title="Get the history of approvals", toolset="approvals", needs=Permission.READ, subject="quote_id")
def approval_history(tx: Tx, *, quote_id: QuoteId) -> ApprovalHistory:
    """Read every approval request and decision of a quote, version by version, with each vote and its reason."""
    return approvals.history(tx, quote_id)


TOOLS = (approval_preview, approval_decide, approval_delegate, approval_withdraw, approval_history)
