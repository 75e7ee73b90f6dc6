"""PURE. The life of a quote: one table of moves, and when a quote is over."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from cpq.base.errors import Code, CpqError, next_call


class Move(StrEnum):
    """What can be done to a quote as a whole."""

    EDIT = "edit"
    SUBMIT = "submit"
    APPROVE = "approve"
    REJECT = "reject"
    SEND = "send"
    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"
    REVISE = "revise"


TRANSITIONS: dict[tuple[str, Move], str] = {
    ("draft", Move.EDIT): "draft",
    ("draft", Move.SUBMIT): "pending_approval",
    ("draft", Move.SEND): "sent",
    ("draft", Move.CANCEL): "cancelled",
    ("pending_approval", Move.SUBMIT): "pending_approval",
    ("pending_approval", Move.APPROVE): "approved",
    ("pending_approval", Move.REJECT): "draft",
    ("pending_approval", Move.REVISE): "draft",
    ("pending_approval", Move.CANCEL): "cancelled",
    ("approved", Move.SEND): "sent",
    ("approved", Move.REVISE): "draft",
    ("approved", Move.CANCEL): "cancelled",
    ("sent", Move.ACCEPT): "accepted",
    ("sent", Move.DECLINE): "declined",
    ("sent", Move.REVISE): "draft",
    ("sent", Move.CANCEL): "cancelled",
    ("declined", Move.REVISE): "draft",
    ("expired", Move.REVISE): "draft",
}
"""Every move there is. A draft is sent only when no policy asks for an approval; that is checked where it is sent."""

MORTAL = ("approved", "sent")
"""What expires when its last valid day is over; a draft gets a new date whenever it is priced."""


def status_at(status: str, expires_at: datetime, now: datetime) -> str:
    """The status as it is now, whether or not anything ran since the last day ended."""
    return "expired" if status in MORTAL and expires_at <= now else status


def end_of_day(day: date, time_zone: str) -> datetime:
    """The first moment after `day` where the account lives, in UTC."""
    return datetime.combine(day + timedelta(days=1), time(), ZoneInfo(time_zone)).astimezone(UTC)


def local_day(moment: datetime, time_zone: str) -> date:
    return moment.astimezone(ZoneInfo(time_zone)).date()


def after(status: str, move: Move, quote_id: str, version: int) -> str:
    """The status a move leads to; CONFLICT with the reason and the way out when the table does not have it."""
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
        next_call=_way_out(status, move, quote_id, version),
    )


def _way_out(status: str, move: Move, quote_id: str, version: int) -> dict[str, object]:
    is_changeable = move is Move.EDIT and (status, Move.REVISE) in TRANSITIONS
    tool = "quote_revise" if is_changeable else _NEXT_TOOL[status]
    expected = {"expected_version": version} if tool in ("quote_revise", "quote_send") else {}
    return next_call(tool, quote_id=quote_id, **expected)


_NEXT_TOOL = {
    "draft": "quote_get",
    "pending_approval": "approval_status",
    "approved": "quote_send",
    "sent": "quote_revise",
    "declined": "quote_revise",
    "expired": "quote_revise",
    "accepted": "quote_clone",
    "cancelled": "quote_clone",
}
"""Where a quote goes on from each state, whatever was asked of it in vain."""


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
