"""Approvals: asked for, decided, lent, withdrawn, expired. Bound to a version and its price; only people decide."""

from __future__ import annotations

from cpq.approvals.asking import preview, request
from cpq.approvals.deciding import Decision, decide, withdraw
from cpq.approvals.people import delegate, end_delegation
from cpq.approvals.sweeping import sweep, sweep_if_due
from cpq.approvals.viewing import get, history, pending, status

__all__ = [
    "Decision",
    "decide",
    "delegate",
    "end_delegation",
    "get",
    "history",
    "pending",
    "preview",
    "request",
    "status",
    "sweep",
    "sweep_if_due",
    "withdraw",
]
