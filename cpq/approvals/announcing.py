"""What is told to the outside when something happens to an approval: one function for each event, one way out."""

from __future__ import annotations

import logging

from cpq.db import AnyRow, Tx

log = logging.getLogger("cpq.approvals")


def requested(tx: Tx, approval_id: str, quote_id: str, role: str) -> None:
    _tell(tx, "approval_requested", quote_id, approval_id=approval_id, role=role)


def decided(tx: Tx, row: AnyRow, status: str) -> None:
    _tell(tx, "approval_decided", row.quote_id, approval_id=row.id, role=row.role, status=status)


def expired(tx: Tx, row: AnyRow) -> None:
    _tell(tx, "approval_expired", row.quote_id, approval_id=row.id, role=row.role)


def escalated(tx: Tx, row: AnyRow) -> None:
    _tell(tx, "approval_escalated", row.quote_id, approval_id=row.id, role=row.escalates_to)


def _tell(tx: Tx, event: str, quote_id: str, **body: str) -> None:
    log.info(event.replace("_", " "), extra={"quote_id": quote_id, "caller": tx.caller, **body})
