"""PURE. The lifecycle of a quote: its statuses, the table of moves, and expiry."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import TypeVar
from zoneinfo import ZoneInfo

from cpq.base.errors import Code, CpqError, next_call


class Move(StrEnum):
    """An action on a whole quote."""

    EDIT = "edit"
    SUBMIT = "submit"
    APPROVE = "approve"
    REJECT = "reject"
    SEND = "send"
    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"
    REVISE = "revise"


class QuoteStatus(StrEnum):
    """The status of a whole quote, which is that of its current version."""

    DRAFT = "draft"
    PENDING_APPROVAL = "pending_approval"
    APPROVED = "approved"
    SENT = "sent"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    EXPIRED = "expired"
    CANCELLED = "cancelled"

    @property
    def can_expire(self) -> bool:
        """Whether it expires after its last valid day; a draft does not, as each pricing sets a new date."""
        return self in (QuoteStatus.APPROVED, QuoteStatus.SENT)

    @property
    def is_draft(self) -> bool:
        """Whether it can be changed and priced."""
        return self is QuoteStatus.DRAFT

    @property
    def awaits_approval(self) -> bool:
        return self is QuoteStatus.PENDING_APPROVAL


class VersionStatus(StrEnum):
    """The status of one version of a quote. If it is rejected, the quote is a draft."""

    DRAFT = "draft"
    PENDING_APPROVAL = "pending_approval"
    APPROVED = "approved"
    SENT = "sent"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"

    @property
    def can_expire(self) -> bool:
        return self in (VersionStatus.APPROVED, VersionStatus.SENT)

    @property
    def awaits_approval(self) -> bool:
        return self is VersionStatus.PENDING_APPROVAL


Status = TypeVar("Status", QuoteStatus, VersionStatus)

TRANSITIONS: dict[tuple[QuoteStatus, Move], QuoteStatus] = {
    (QuoteStatus.DRAFT, Move.EDIT): QuoteStatus.DRAFT,
    (QuoteStatus.DRAFT, Move.SUBMIT): QuoteStatus.PENDING_APPROVAL,
    (QuoteStatus.DRAFT, Move.SEND): QuoteStatus.SENT,
    (QuoteStatus.DRAFT, Move.CANCEL): QuoteStatus.CANCELLED,
    (QuoteStatus.PENDING_APPROVAL, Move.SUBMIT): QuoteStatus.PENDING_APPROVAL,
    (QuoteStatus.PENDING_APPROVAL, Move.APPROVE): QuoteStatus.APPROVED,
    (QuoteStatus.PENDING_APPROVAL, Move.REJECT): QuoteStatus.DRAFT,
    (QuoteStatus.PENDING_APPROVAL, Move.REVISE): QuoteStatus.DRAFT,
    (QuoteStatus.PENDING_APPROVAL, Move.CANCEL): QuoteStatus.CANCELLED,
    (QuoteStatus.APPROVED, Move.SEND): QuoteStatus.SENT,
    (QuoteStatus.APPROVED, Move.REVISE): QuoteStatus.DRAFT,
    (QuoteStatus.APPROVED, Move.CANCEL): QuoteStatus.CANCELLED,
    (QuoteStatus.SENT, Move.ACCEPT): QuoteStatus.ACCEPTED,
    (QuoteStatus.SENT, Move.DECLINE): QuoteStatus.DECLINED,
    (QuoteStatus.SENT, Move.REVISE): QuoteStatus.DRAFT,
    (QuoteStatus.SENT, Move.CANCEL): QuoteStatus.CANCELLED,
    (QuoteStatus.DECLINED, Move.REVISE): QuoteStatus.DRAFT,
    (QuoteStatus.EXPIRED, Move.REVISE): QuoteStatus.DRAFT,
}
"""Every allowed move. A draft may be sent only if no policy requires an approval; `readiness` checks that."""

EXPIRING = tuple(status for status in QuoteStatus if status.can_expire)


def status_at(status: Status, expires_at: datetime, now: datetime, lapses_at: datetime | None = None) -> Status:
    """The status at `now`, even if no sweep has stored it yet: expired after the last valid day, and a draft again
    after the moment until which it waited for approval."""
    if status.awaits_approval and lapses_at is not None and lapses_at <= now:
        return type(status).DRAFT
    return type(status).EXPIRED if status.can_expire and expires_at <= now else status


def end_of_day(day: date, time_zone: str) -> datetime:
    """The first moment after `day` in the account's time zone, in UTC."""
    return datetime.combine(day + timedelta(days=1), time(), ZoneInfo(time_zone)).astimezone(UTC)


def local_day(moment: datetime, time_zone: str) -> date:
    return moment.astimezone(ZoneInfo(time_zone)).date()


def can(status: QuoteStatus, move: Move) -> bool:
    """Whether the table has the move."""
    return (status, move) in TRANSITIONS


def after(status: QuoteStatus, move: Move, quote_id: str, version: int) -> QuoteStatus:
    """The status after a move; CONFLICT with the reason and the next call when the table does not have it."""
    target = TRANSITIONS.get((status, move))
    if target is not None:
        return target
    allowed = [str(known) for (state, known) in TRANSITIONS if state == status]
    raise CpqError(
        Code.CONFLICT,
        f"A quote that is {status} cannot be {_DONE[move]}.",
        field="/quote_id",
        status=status,
        version=version,
        allowed=allowed,
        next_call=_suggestion(status, move, quote_id, version),
    )


def _suggestion(status: QuoteStatus, move: Move, quote_id: str, version: int) -> dict[str, object]:
    is_changeable = move is Move.EDIT and can(status, Move.REVISE)
    tool = "quote_revise" if is_changeable else _NEXT_TOOL[status]
    expected = {"expected_version": version} if tool == "quote_revise" else {}
    return next_call(tool, quote_id=quote_id, **expected)


_NEXT_TOOL = {
    QuoteStatus.DRAFT: "quote_get",
    QuoteStatus.PENDING_APPROVAL: "approval_status",
    QuoteStatus.APPROVED: "quote_pdf",
    QuoteStatus.SENT: "quote_revise",
    QuoteStatus.DECLINED: "quote_revise",
    QuoteStatus.EXPIRED: "quote_revise",
    QuoteStatus.ACCEPTED: "quote_clone",
    QuoteStatus.CANCELLED: "quote_clone",
}
"""Tool to suggest when a move is refused, by current status.

Never one that records what somebody else does, such as `quote_send`: a client may send the suggestion as it is.
"""


_DONE = {
    Move.EDIT: "changed",
    Move.SUBMIT: "submitted for approval",
    Move.APPROVE: "approved",
    Move.REJECT: "rejected",
    Move.SEND: "sent",
    Move.ACCEPT: "accepted",
    Move.DECLINE: "declined",
    Move.CANCEL: "cancelled",
    Move.REVISE: "revised",
}
