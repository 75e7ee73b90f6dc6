"""Approvals: asked for, decided, lent, withdrawn, expired. Bound to a version and its price; only people decide."""

from __future__ import annotations

from cpq.approvals.asking import preview, request
from cpq.approvals.deciding import Decision, decide, withdraw
from cpq.approvals.people import delegate
from cpq.approvals.sweeping import Sweeper, sweep
from cpq.approvals.viewing import get, history, pending, status

__all__ = [
    "Decision",
    "Sweeper",
    "decide",
    "delegate",
    "get",
    "history",
    "pending",
    "preview",
    "request",
    "status",
    "sweep",
    "withdraw",
]
