"""When a document is stamped, and why: the one rule of whether a version may go to a customer now."""

from __future__ import annotations

from cpq.app.transaction import Tx
from cpq.domain.quotes.quote import Quote
from cpq.services import quotes
from cpq.services.catalog import repository as catalog_repository
from cpq.services.documents.content import with_lines

WENT_OUT = ("sent", "accepted", "declined", "superseded")
STAMPS = {"cancelled": "cancelled", "pending_approval": "not_approved", "rejected": "not_approved"}

KEPT_MAX = 1_000
"""Versions of which a process remembers whether they may be sent."""


def stamp_of(tx: Tx, found: Quote) -> str | None:
    """Why a version may not go to the customer now; None when it may, or has gone already."""
    status = found.version.status
    if status in WENT_OUT:
        return None
    if status == "approved" and found.version.expires_at <= tx.now:
        return "expired"
    if status in ("draft", "approved"):
        return None if _may_be_sent(tx, found) else "not_approved"
    return STAMPS.get(status, "not_approved")


def _may_be_sent(tx: Tx, found: Quote) -> bool:
    """Decided again only when anything changed that it follows from; asking twice for a long quote costs nothing."""
    version, revision = found.version, catalog_repository.revision_of(tx)
    quote = (found.current_version, found.edit, version.status, found.expires_at <= tx.now)
    basis = (*quote, tx.policies.content_hash, revision)
    key = tx.tenant_id, found.id, version.number
    known: dict[tuple[str, str, int], tuple[object, bool]] = tx.kept.setdefault("documents.may_be_sent", {})
    kept = known.get(key)
    if kept is not None and kept[0] == basis:
        return kept[1]
    decided = quotes.may_be_sent(tx, with_lines(tx, found))
    # Without a revision nobody says when products change, and one that changed meanwhile may have been read in part.
    if revision and catalog_repository.revision_of(tx) == revision:
        if len(known) >= KEPT_MAX:
            known.clear()
        known[key] = (basis, decided)
    return decided
