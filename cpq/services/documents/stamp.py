"""The stamp of a document: the one rule for whether a version may go to a customer now."""

from __future__ import annotations

from cpq.app.transaction import Tx
from cpq.domain.quotes.lifecycle import VersionStatus, local_day
from cpq.domain.quotes.quote import Quote
from cpq.services import quotes
from cpq.services.catalog import repository as catalog_repository
from cpq.services.documents.content import with_lines
from cpq.services.quotes.deal_facts import other_quotes

WENT_OUT = (VersionStatus.SENT, VersionStatus.ACCEPTED, VersionStatus.DECLINED)

SUPERSEDED = VersionStatus.SUPERSEDED.value

KEPT_MAX = 1_000
"""Number of versions for which a process caches whether they may be sent."""


def stamp_of(tx: Tx, found: Quote) -> str | None:
    """Why a version may not go to the customer now; None when it may, or when it is what was sent last."""
    status = found.version.status
    if status in WENT_OUT:
        return None
    if status is VersionStatus.SUPERSEDED:
        return SUPERSEDED
    if status is VersionStatus.APPROVED and found.version.expires_at <= tx.now:
        return "expired"
    if status in (VersionStatus.DRAFT, VersionStatus.APPROVED) and _may_be_sent(tx, found):
        return None
    return "cancelled" if status is VersionStatus.CANCELLED else "not_approved"


def _may_be_sent(tx: Tx, found: Quote) -> bool:
    """Whether the version may be sent, cached until anything that the decision depends on changes."""
    version, revision = found.version, catalog_repository.revision_of(tx)
    quote = (found.current_version, found.edit, version.status, found.expires_at <= tx.now)
    others = other_quotes(tx, found, version.deal_id)
    # A price may begin or end with a day.
    basis = (*quote, tx.policies.content_hash, revision, local_day(tx.now, found.time_zone), others)
    key = tx.tenant_id, found.id, version.number
    known: dict[tuple[str, str, int], tuple[object, bool]] = tx.kept.setdefault("documents.may_be_sent", {})
    kept = known.get(key)
    if kept is not None and kept[0] == basis:
        return kept[1]
    decided = quotes.may_be_sent(tx, with_lines(tx, found))
    # Cache only under an unchanged catalogue revision: otherwise the decision may mix old and new products.
    if revision and catalog_repository.revision_of(tx) == revision:
        if len(known) >= KEPT_MAX:
            known.clear()
        known[key] = (basis, decided)
    return decided
