"""What is told to the outside when something happens to an approval: one function for each event, one way out."""

from __future__ import annotations

from cpq.app.transaction import Tx
from cpq.services import events
from cpq.services.events import EventName
from cpq.storage.statements import AnyRow


def requested(tx: Tx, approval_id: str, quote_id: str, role: str) -> None:
    _tell(tx, EventName.APPROVAL_REQUESTED, quote_id, approval_id=approval_id, role=role)


def decided(tx: Tx, row: AnyRow, status: str) -> None:
    _tell(tx, EventName.APPROVAL_DECIDED, row.quote_id, approval_id=row.id, role=row.role, status=status)


def kept(tx: Tx, approval_id: str, quote_id: str, role: str) -> None:
    """What was approved for an earlier version still stands for this one."""
    _tell(tx, EventName.APPROVAL_DECIDED, quote_id, approval_id=approval_id, role=role, status="kept")


def expired(tx: Tx, row: AnyRow) -> None:
    _tell(tx, EventName.APPROVAL_EXPIRED, row.quote_id, approval_id=row.id, role=row.role)


def escalated(tx: Tx, row: AnyRow) -> None:
    _tell(tx, EventName.APPROVAL_ESCALATED, row.quote_id, approval_id=row.id, role=row.escalates_to)


def _tell(tx: Tx, name: EventName, quote_id: str, **body: str) -> None:
    events.publish(tx, name, quote_id, {"quote_id": quote_id, **body, "by": tx.caller})
