"""Approvals: asked for, decided, lent, withdrawn, expired. Bound to a version and its price; only people decide."""

from __future__ import annotations

from cpq.approvals.asking import preview, request
from cpq.approvals.deciding import Decision, decide, require_decidable, withdraw
from cpq.approvals.people import delegate, end_delegation, lent_by
from cpq.approvals.queueing import openings, queue, queue_stamp
from cpq.approvals.sweeping import sweep, sweep_if_due
from cpq.approvals.viewing import get, history, pending, status

__all__ = [
    "Decision",
    "decide",
    "delegate",
    "end_delegation",
    "get",
    "history",
    "lent_by",
    "openings",
    "pending",
    "preview",
    "queue",
    "queue_stamp",
    "request",
    "require_decidable",
    "status",
    "sweep",
    "sweep_if_due",
    "withdraw",
]
