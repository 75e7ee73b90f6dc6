"""Publishes webhook events for approvals: one function for each event."""

from __future__ import annotations

from cpq.app.transaction import Tx
from cpq.domain.approvals.approval_request import ApprovalRequest, RequestStatus
from cpq.services import events
from cpq.services.events import EventName
from cpq.services.quotes.policy_check import redacted

REASONS_MAX = 20


def requested(tx: Tx, request: ApprovalRequest) -> None:
    """With the reasons as everybody may read them: a webhook need not know costs and margins."""
    reasons = list(dict.fromkeys(redacted(request.role) if one.is_secret else one.text for one in request.reasons))
    _publish(tx, EventName.APPROVAL_REQUESTED, request, role=request.role, reasons=reasons[:REASONS_MAX])


def decided(tx: Tx, request: ApprovalRequest, status: RequestStatus) -> None:
    """A request ended with `status`, or was never open because an earlier approval is kept."""
    _publish(tx, EventName.APPROVAL_DECIDED, request, role=request.role, status=status.value)


def expired(tx: Tx, request: ApprovalRequest, note: str) -> None:
    """With a note to the caller who asked."""
    about = {"role": request.role, "version": request.version, "requested_by": request.requested_by}
    _publish(tx, EventName.APPROVAL_EXPIRED, request, **about, note=note)


def escalated(tx: Tx, request: ApprovalRequest) -> None:
    _publish(tx, EventName.APPROVAL_ESCALATED, request, role=str(request.escalates_to))


def _publish(tx: Tx, name: EventName, request: ApprovalRequest, **body: object) -> None:
    about = {"quote_id": request.quote_id, "approval_id": request.id}
    events.publish(tx, name, request.quote_id, {**about, **body, "by": tx.caller})
