"""Quotes: created, changed, priced, revised, sent and accepted; stored, shown, imported and proven."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.domain.quotes.draft import OWN_CURRENCY, Draft, DraftLine
    from cpq.domain.quotes.draft_changes import Changes, require_few_lines
    from cpq.services.quotes.commands import (
        accept,
        cancel,
        clone,
        close_review,
        create,
        decline,
        price,
        revise,
        send,
        update,
    )
    from cpq.services.quotes.expiry import sweep, sweep_drafts
    from cpq.services.quotes.importer import import_quotes
    from cpq.services.quotes.listed_quotes import list_for_people
    from cpq.services.quotes.policy_check import judge
    from cpq.services.quotes.quote_ids import id_of, numbers_of
    from cpq.services.quotes.quote_pages import list_quotes
    from cpq.services.quotes.readiness import may_be_sent, require_current_price, require_unblocked
    from cpq.services.quotes.record import record_of
    from cpq.services.quotes.replay import Proof, replay_stored
    from cpq.services.quotes.review import compare, review_version
    from cpq.services.quotes.simulation import Simulation, count_quotes
    from cpq.services.quotes.views import get

export_late(__name__, __file__)

__all__ = [
    "OWN_CURRENCY",
    "Changes",
    "Draft",
    "DraftLine",
    "Proof",
    "Simulation",
    "accept",
    "cancel",
    "clone",
    "close_review",
    "compare",
    "count_quotes",
    "create",
    "decline",
    "get",
    "id_of",
    "import_quotes",
    "judge",
    "list_for_people",
    "list_quotes",
    "may_be_sent",
    "numbers_of",
    "price",
    "record_of",
    "replay_stored",
    "require_current_price",
    "require_few_lines",
    "require_unblocked",
    "review_version",
    "revise",
    "send",
    "sweep",
    "sweep_drafts",
    "update",
]
