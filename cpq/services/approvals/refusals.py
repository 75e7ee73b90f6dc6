"""The errors for callers who may not decide a request, one for each reason."""

from __future__ import annotations

from cpq.base.errors import Code, CpqError, next_call
from cpq.domain.approvals.eligibility import Refused


def denied() -> CpqError:
    """The same error for a missing request and for one of other people, so that it does not reveal which."""
    return CpqError(
        Code.FORBIDDEN,
        "There is no such request that you may decide or withdraw.",
        hint="approval_pending lists what is open; only a person of the role that is asked can decide.",
    )


def refusal(refused: Refused, *, caller: str, quote_id: str) -> CpqError:
    if refused.otherwise is None:
        return denied()
    if refused.vote is None:
        return CpqError(
            Code.FORBIDDEN,
            "Nobody decides what they asked for, made or changed themselves, nor for somebody they share a role with.",
            hint="You may reject it; another person of the role has to approve."
            if refused.reason.may_reject
            else "Another person of the role has to decide.",
        )
    vote, holder = refused.vote, refused.otherwise.holder
    who = "You have" if vote.caller == caller else f"{vote.caller} has"
    for_holder = "" if vote.caller in (caller, holder) else f" for {holder}"
    return CpqError(
        Code.CONFLICT,
        f"{who} approved it{for_holder} already; others of the role have to approve, too.",
        field="/approval_id",
        decided_by=vote.caller,
        decided_at=vote.at,
        next_call=next_call("approval_status", quote_id=quote_id),
    )
