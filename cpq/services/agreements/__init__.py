"""Agreements: what customers own, and the quotes that amend, renew or cancel it."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.services.agreements.commands import amend, cancel, renew
    from cpq.services.agreements.fold_proof import verify
    from cpq.services.agreements.history import build
    from cpq.services.agreements.renewals import by_month, due, sweep
    from cpq.services.agreements.revenue_figures import revenue
    from cpq.services.agreements.views import change_of, get, list_agreements

export_late(__name__, __file__)

__all__ = [
    "amend",
    "build",
    "by_month",
    "cancel",
    "change_of",
    "due",
    "get",
    "list_agreements",
    "renew",
    "revenue",
    "sweep",
    "verify",
]
