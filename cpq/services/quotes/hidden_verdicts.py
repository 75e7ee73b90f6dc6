"""The budget of hidden verdicts: how often what policies about costs or margins ask may change for a caller in a day.

To find a cost, a caller has to change quotes until such a policy begins or stops to apply. Those changes are counted
in the database, for all processes and restarts: of each quote, and from answer to answer over all quotes. Beyond the
budget the next answer is refused, whatever it is. Who may see margins, or decides, is not limited.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from functools import partial

import sqlalchemy as sa

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.domain.policy.evaluation import PolicyDecision
from cpq.domain.policy.facts import SECRET
from cpq.domain.quotes.quote import Quote
from cpq.storage.schema import tables
from cpq.storage.statements import Statement
from cpq.storage.upsert import upsert

ALL = ""
"""In place of a quote's id: from answer to answer, whichever quote it is about."""


def draw(tx: Tx, quote: Quote, decision: PolicyDecision) -> None:
    """Count what hidden policies ask of a state that the caller has just made, or RATE_LIMITED.

    Of a stored price it was counted when that was made, so that reading and sending it is never refused.
    """
    if tx.sees_margin or tx.principal.may(Permission.DECIDE) or SECRET.isdisjoint(tx.policies.reads):
        return
    today = tx.now.astimezone(UTC).date()
    known = {
        id_: (outcome, changes)
        for id_, outcome, changes in _KNOWN.rows(
            tx.connection, tenant=tx.tenant_id, asker=tx.caller, one=quote.id, today=today
        )
    }
    budgets = {ALL: tx.settings.hidden_changes_per_day, quote.id: tx.settings.hidden_changes_per_quote}
    for id_, most in budgets.items():
        if most and known.get(id_, ("", 0))[1] >= most:
            raise _used_up(tx, most, id_)
    asked = {f"{one.severity}:{decision.asked_role(one) or ''}" for one in decision.violations if one.is_secret}
    outcome = ",".join(sorted(asked))
    changed = [id_ for id_ in budgets if known.get(id_, ("", 0))[0] != outcome]
    if changed:
        tx.afterwards.append(partial(_count, ids=changed, today=today, outcome=outcome, is_first=ALL not in known))


def _count(tx: Tx, ids: list[str], today: date, outcome: str, *, is_first: bool) -> None:
    table = tables.hidden_verdict
    if is_first:
        tx.connection.execute(sa.delete(table).where(tx.own(table), table.c.caller == tx.caller, table.c.day < today))
    for id_ in ids:
        mine = {"tenant_id": tx.tenant_id, "caller": tx.caller, "quote_id": id_}
        _ADD.run(tx.connection, **mine, day=today, outcome=outcome, changes=1)


def _used_up(tx: Tx, most: int, id_: str) -> CpqError:
    now = tx.now.astimezone(UTC)
    until = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
    whose = "of all quotes" if id_ == ALL else "of this quote"
    return CpqError(
        Code.RATE_LIMITED,
        f"Whether costs or margins {whose} need an approval has changed {most:,} times today for {tx.caller}, which is "
        "the most for a day. Nothing was changed.",
        field="/quote_id",
        maximum=most,
        retry_after_seconds=math.ceil((until - now).total_seconds()),
        hint="A person who may see margins can price it now: a sales manager, for example. Prices that are stored can "
        "still be submitted and sent. The budget is free again at 00:00 UTC; the operator sets it with "
        "CPQ_HIDDEN_CHANGES_PER_QUOTE and CPQ_HIDDEN_CHANGES_PER_DAY.",
    )


def _known(_: str) -> sa.Executable:
    column = tables.hidden_verdict.c
    return sa.select(column.quote_id, column.outcome, column.changes).where(
        column.tenant_id == sa.bindparam("tenant"),
        column.caller == sa.bindparam("asker"),
        column.quote_id.in_([sa.bindparam("one"), sa.literal(ALL)]),
        column.day == sa.bindparam("today", type_=column.day.type),
    )


def _added(dialect: str) -> sa.Executable:
    kept, new = tables.hidden_verdict.c, upsert(dialect, tables.hidden_verdict).excluded
    changes = sa.case((kept.day == new.day, kept.changes + new.changes), else_=new.changes)
    return upsert(dialect, tables.hidden_verdict, {"day": new.day, "outcome": new.outcome, "changes": changes})


_KNOWN = Statement(_known)
_ADD = Statement(_added)
