"""Approvals: requests, decisions, delegations, expiry. A request is bound to a version and its price; people decide."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.domain.approvals.approval_request import Decision
    from cpq.services.approvals.chain import chain_of
    from cpq.services.approvals.decisions import decide, require_decidable, withdraw, withdrawable
    from cpq.services.approvals.delegations import delegate, end_delegation, given_delegations
    from cpq.services.approvals.expiry import sweep, sweep_if_due
    from cpq.services.approvals.held_decisions import (
        get_held,
        hold,
        last_held,
        my_held,
        take_due,
        take_if_due,
        undo,
    )
    from cpq.services.approvals.queue import openings, queue_page, queue_stamp
    from cpq.services.approvals.requests import preview, request
    from cpq.services.approvals.views import get, history, pending, status, votes_about

export_late(__name__, __file__)

__all__ = [
    "Decision",
    "chain_of",
    "decide",
    "delegate",
    "end_delegation",
    "get",
    "get_held",
    "given_delegations",
    "history",
    "hold",
    "last_held",
    "my_held",
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
    "take_due",
    "take_if_due",
    "undo",
    "votes_about",
    "withdraw",
    "withdrawable",
]
