"""Approvals: asked for, decided, lent, withdrawn, expired. Bound to a version and its price; only people decide."""

from __future__ import annotations

from cpq.services.approvals.decisions import Decision, decide, require_decidable, withdraw
from cpq.services.approvals.expiry import sweep, sweep_if_due
from cpq.services.approvals.people import delegate, end_delegation, lent_by
from cpq.services.approvals.queue import openings, queue_page, queue_stamp
from cpq.services.approvals.requests import preview, request
from cpq.services.approvals.views import get, history, pending, status

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
    "queue_page",
    "queue_stamp",
    "request",
    "require_decidable",
    "status",
    "sweep",
    "sweep_if_due",
    "withdraw",
]
