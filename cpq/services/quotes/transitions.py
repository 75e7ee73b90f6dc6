"""The only writer of statuses: changes the status of a quote and of its versions by the table of moves."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from cpq.app.transaction import Tx
from cpq.domain.quotes.draft_changes import looked_at_again
from cpq.domain.quotes.lifecycle import Move, QuoteStatus, VersionStatus, after
from cpq.domain.quotes.quote import Quote, QuoteVersion
from cpq.services.quotes import repository
from cpq.services.quotes.composition import Composition


def apply(tx: Tx, quote: Quote, *moves: Move, reason: str | None = None, lapses_at: datetime | None = None) -> Quote:
    """Make moves in turn, as one edit, on the loaded version of a locked quote; returns the quote without lines.

    CONFLICT when the table does not have a move. A customer may answer an older version than the current one.
    A version that is submitted waits for approval until `lapses_at`.
    """
    status = quote.status if quote.is_current else QuoteStatus(quote.version.status)
    for move in moves:
        status = after(status, move, quote.id, quote.current_version)
    last = moves[-1]
    if last is Move.SEND:
        _supersede(tx, quote)
    lapses_at = lapses_at or _past_lapse(quote)
    _move_version(
        tx, quote, VersionStatus.REJECTED if last is Move.REJECT else VersionStatus(status), reason, lapses_at
    )
    if last is Move.ACCEPT and not quote.is_current:
        dropped = f"version {quote.version.number} was accepted"
        repository.update_version(tx, quote.id, quote.current_version, status=VersionStatus.CANCELLED, reason=dropped)
    repository.update_root(tx, quote, **{"lapses_at": lapses_at, **_root_after(tx, quote, last, status)})
    return repository.load(tx, quote.id, version=quote.version.number, with_lines=False)


def require(quote: Quote, move: Move) -> None:
    """CONFLICT with the next call when the move is not allowed now. A draft that was submitted can be revised."""
    if move is not Move.REVISE or not quote.is_fixed:
        after(quote.status, move, quote.id, quote.current_version)


def rewrite_draft(tx: Tx, quote: Quote, composed: Composition, *, priced_at: datetime | None) -> Quote:
    """Rewrite the loaded draft, as one edit; returns the quote without lines."""
    composed = _to_review(tx, quote, composed)
    repository.replace_version(tx, quote, composed, priced_at=priced_at)
    return _point_to(tx, quote, quote.version.number, composed)


def open_version(tx: Tx, quote: Quote, composed: Composition, *, priced_at: datetime | None) -> Quote:
    """Open the next version as a draft, as one edit; returns the quote without lines.

    Its number is one above the highest ever used: a cancelled revision keeps its number.
    """
    composed = _to_review(tx, quote, composed)
    number = max(repository.statuses(tx, quote.id)) + 1
    repository.update_version(tx, quote.id, quote.version.number, lapses_at=_past_lapse(quote))
    repository.add_version(tx, quote.id, number, composed, priced_at=priced_at, editors=quote.version.makers)
    return _point_to(tx, quote, number, composed)


def _to_review(tx: Tx, quote: Quote, composed: Composition) -> Composition:
    """With marks open again on all that a person has not looked at."""
    draft = looked_at_again(quote.as_draft(), composed.draft, keeps_marks=not tx.principal.is_person)
    return composed if draft is composed.draft else replace(composed, draft=draft)


def wait_until(tx: Tx, quote: Quote, lapses_at: datetime | None) -> None:
    """Set until when the version waits for approval, and count the edit, so that earlier readers can see it."""
    repository.update_version(tx, quote.id, quote.version.number, lapses_at=lapses_at)
    repository.update_root(tx, quote, lapses_at=lapses_at)


def lapse(tx: Tx, quote: Quote) -> None:
    """Store that nobody approved the version in time. The edit is not counted: everybody has seen the draft since."""
    assert quote.has_lapsed, "a version lapses by time alone"
    repository.update_version(tx, quote.id, quote.version.number, status=VersionStatus.DRAFT)
    repository.update_root(tx, quote, edit=quote.edit, status=QuoteStatus.DRAFT)


def expire(tx: Tx, quote: Quote) -> None:
    """Store that a quote has expired.

    Only the root changes: the version keeps its status, because cancelling a revision leads back to it. The edit is
    not counted: everybody who read the quote after its last day saw it expired.
    """
    repository.update_root(tx, quote, edit=quote.edit, status=QuoteStatus.EXPIRED)


def expire_draft(tx: Tx, quote: Quote, reason: str) -> Quote:
    """End a draft that nobody touches, as one edit; returns the quote without lines. A rejected version stays so."""
    if not quote.is_rejected:
        repository.update_version(
            tx, quote.id, quote.version.number, status=VersionStatus.EXPIRED, reason=quote.version.reason or reason
        )
    repository.update_root(tx, quote, status=QuoteStatus.EXPIRED)
    return repository.load(tx, quote.id, with_lines=False)


def _supersede(tx: Tx, quote: Quote) -> None:
    """Mark the version that was sent before as superseded by the one that is sent now."""
    earlier = repository.sent_version(tx, quote.id)
    if earlier is not None:
        reason = f"version {quote.current_version} was sent"
        repository.update_version(tx, quote.id, earlier.number, status=VersionStatus.SUPERSEDED, reason=reason)


def _move_version(tx: Tx, quote: Quote, status: VersionStatus, reason: str | None, lapses_at: datetime | None) -> None:
    # The owner of the agent that submits a version does not approve it; who decides has no hand in it.
    is_decided = tx.principal.is_person and status in (VersionStatus.APPROVED, VersionStatus.REJECTED)
    edited_by = quote.version.edited_by if is_decided else repository.makers(tx, quote.version.edited_by)
    changes = {"status": status, "reason": reason or quote.version.reason, "lapses_at": lapses_at}
    repository.update_version(tx, quote.id, quote.version.number, **changes, edited_by=edited_by)


def _past_lapse(quote: Quote) -> datetime | None:
    """When the version lapsed: that stays on record, while a version that is left in time never lapses."""
    return quote.version.lapses_at if quote.has_lapsed else None


def _root_after(tx: Tx, quote: Quote, move: Move, status: QuoteStatus) -> dict[str, object]:
    """The changes of the root by a move: an accepted version becomes the current one, and cancelling a revision leads
    back to the version that was sent."""
    if move is Move.ACCEPT:
        return {**_of_version(quote.version), "status": status}
    if move is Move.DECLINE and not quote.is_current:
        return {}
    sent = repository.sent_version(tx, quote.id) if move is Move.CANCEL else None
    return {"status": status} if sent is None else {**_of_version(sent), "status": QuoteStatus.SENT}


def _of_version(version: QuoteVersion) -> dict[str, object]:
    return {
        "version": version.number,
        "deal_id": version.deal_id,
        "currency": version.currency,
        "total": version.total,
        "valid_until": version.valid_until,
        "expires_at": version.expires_at,
        "lapses_at": version.lapses_at,
    }


def _point_to(tx: Tx, quote: Quote, number: int, composed: Composition) -> Quote:
    """Update the root from the draft that was just written, and read the quote again."""
    repository.update_root(
        tx,
        quote,
        version=number,
        status=QuoteStatus.DRAFT,
        deal_id=composed.draft.deal_id,
        currency=composed.draft.currency,
        total=composed.priced.total,
        valid_until=composed.valid_until,
        expires_at=composed.expires_at,
        lapses_at=None,
    )
    return repository.load(tx, quote.id, with_lines=False)
