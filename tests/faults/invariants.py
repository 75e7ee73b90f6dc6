"""The one checker of every fault test: what must hold of a store, whatever was killed, cut or filled meanwhile.

I1 what a caller was told exists; I2 a key has one quote; I3 all answers under a key agree; I4 versions add up, and
reprice to the same bytes; I5 decisions, requests and quotes agree; I6 versions have no gap; I7 every change of a status
is a move of the table; I8 nobody decided what they made or asked for; I9 calls are on record, in an unbroken chain, and
the rows are as it has them; I10 documents have their files; I11 quotes and keys belong together; I12 agreements follow
from their orders, and each accepted quote has one.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from cpq.app import App, audit
from cpq.app.reconciliation import reconcile
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.domain.quotes.lifecycle import TRANSITIONS, Move, QuoteStatus
from cpq.services.agreements import fold_proof
from cpq.services.documents.file_store import Store
from cpq.storage.schema import tables
from tests.support import quotes

TENANT = "main"
MAKERS = ("quote_create", "quote_clone", "agreement_amend", "agreement_renew", "agreement_cancel")
MOVES = {
    "quote_price": {Move.EDIT, Move.REVISE},
    "quote_update": {Move.EDIT},
    "quote_review": {Move.EDIT},
    "quote_revise": {Move.REVISE, Move.EDIT},
    "approval_request": {Move.SUBMIT},
    "approval_decide": {Move.APPROVE, Move.REJECT},
    "approval_withdraw": {Move.REJECT},
    "quote_send": {Move.SEND},
    "quote_accept": {Move.ACCEPT},
    "quote_decline": {Move.DECLINE},
    "quote_cancel": {Move.CANCEL},
}
VARYING = ("replayed", "outcome")


@dataclass(frozen=True)
class Told:
    """What a caller was told: the tool, the key that it sent, and an answer that was no error."""

    caller: str
    tool: str
    key: str
    answer: Mapping[str, Any]


def violations(app: App, told: Sequence[Told] = (), *, head: tuple[int, str] | None = None) -> list[str]:
    """All that does not hold, each with the number of its invariant. `head` is a seal that was kept elsewhere."""
    app.flush_audit()
    found = [*_answers_of_keys(told), *_moves(told)]

    def look(tx: Tx) -> list[str]:
        parts = (_existence, _decisions, _versions, _documents, _keys, _agreements)
        return [*(one for part in parts for one in part(tx, told)), *_record(tx, told, head)]

    found += app.read_unaudited(app.new_call(), look)
    try:
        quotes.assert_sound(app)
    except (AssertionError, CpqError, KeyError, TypeError, StopIteration) as problem:
        found.append(f"I4: {type(problem).__name__} {problem}")
    return found


def assert_all_hold(app: App, told: Sequence[Told] = (), *, head: tuple[int, str] | None = None) -> None:
    found = violations(app, told, head=head)
    assert not found, "\n".join(found[:20])


def kept_head(app: App) -> tuple[int, str]:
    """The last seal, as an operator keeps it elsewhere."""
    with app.database.reading() as connection:
        row = connection.execute(sa.select(tables.audit_head).where(tables.audit_head.c.tenant_id == TENANT)).one()
    return row.seq, row.hash


def _rows(tx: Tx, table: sa.Table, *columns: str) -> list[Any]:
    wanted = [table.c[name] for name in columns] if columns else [table]
    return list(tx.connection.execute(sa.select(*wanted).where(tx.own(table))))


def _existence(tx: Tx, told: Sequence[Told]) -> Iterator[str]:
    quotes_now = {row.id: row for row in _rows(tx, tables.quote, "id", "edit", "version")}
    known = {
        "approval_id": {row.id for row in _rows(tx, tables.approval, "id")},
        "order_id": {row.id for row in _rows(tx, tables.sales_order, "id")},
        "agreement_id": {row.id for row in _rows(tx, tables.agreement, "id")},
    }
    for one in told:
        quote_id = one.answer.get("quote_id")
        row = quotes_now.get(quote_id) if quote_id else None
        if quote_id and row is None:
            yield f"I1: {one.tool} told of {quote_id}, which is not there"
        elif row is not None and row.edit < one.answer.get("edit", 0):
            yield f"I1: {one.tool} told of edit {one.answer['edit']} of {quote_id}, which is at {row.edit}"
        for name, ids in known.items():
            if one.answer.get(name) and one.answer[name] not in ids:
                yield f"I1: {one.tool} told of {name} {one.answer[name]}, which is not there"


def _answers_of_keys(told: Sequence[Told]) -> Iterator[str]:
    """I2 and I3: under one key every caller was told the same."""
    first: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for one in told:
        answer = {name: value for name, value in one.answer.items() if name not in VARYING}
        before = first.setdefault((one.caller, one.tool, one.key), answer)
        if before.get("quote_id") != answer.get("quote_id"):
            yield f"I2: the key {one.key} of {one.tool} has {before.get('quote_id')} and {answer.get('quote_id')}"
        elif before != answer:
            differing = sorted(name for name in answer if before.get(name) != answer[name])
            yield f"I3: the answers under the key {one.key} of {one.tool} differ in {differing}"


def _moves(told: Sequence[Told]) -> Iterator[str]:
    """I7, and no two changes under one edit: the answers in the order of the edits that they name."""
    history: dict[str, dict[int, Told]] = defaultdict(dict)
    for one in told:
        edit = one.answer.get("edit")
        if edit is None or one.answer.get("stored") is False:
            continue
        other = history[one.answer["quote_id"]].setdefault(edit, one)
        if (other.caller, other.tool, other.key) != (one.caller, one.tool, one.key) and "status" in one.answer:
            yield f"I6: {other.tool} and {one.tool} were both told edit {edit} of {one.answer['quote_id']}"
    for quote_id, edits in history.items():
        for edit, one in edits.items():
            before = edits.get(edit - 1)
            if before is None or one.tool not in MOVES or _is_of_an_older_version(one, before):
                continue
            status, after = QuoteStatus(before.answer["status"]), QuoteStatus(one.answer["status"])
            if not any(TRANSITIONS.get((status, move)) is after for move in MOVES[one.tool]):
                yield f"I7: {one.tool} moved {quote_id} from {status} to {after} at edit {edit}"


def _is_of_an_older_version(one: Told, before: Told) -> bool:
    """A customer may answer what was sent while the next version is a draft, and a cancelled draft leaves what was."""
    return (
        one.tool in ("quote_accept", "quote_decline", "quote_cancel")
        and one.answer["version"] != before.answer["version"]
    )


def _versions(tx: Tx, _told: Sequence[Told]) -> Iterator[str]:
    """I4 and I6 of the stored rows: no half of a quote, and no gap."""
    numbers: dict[str, list[int]] = defaultdict(list)
    statuses: dict[tuple[str, int], str] = {}
    for row in _rows(tx, tables.quote_version, "quote_id", "version", "status"):
        numbers[row.quote_id].append(row.version)
        statuses[row.quote_id, row.version] = row.status
    for row in _rows(tx, tables.quote, "id", "version", "status"):
        if sorted(numbers[row.id]) != list(range(1, len(numbers[row.id]) + 1)):
            yield f"I6: {row.id} has the versions {sorted(numbers[row.id])}"
        current = statuses.get((row.id, row.version))
        if current is None:
            yield f"I6: {row.id} points to version {row.version}, which is not there"
        elif row.status != ("draft" if current == "rejected" else current):
            yield f"I5: {row.id} is {row.status}, its version {current}"


def _decisions(tx: Tx, _told: Sequence[Told]) -> Iterator[str]:
    """I5 and I8: each decided request has the votes for it, and nobody voted on their own."""
    votes: dict[str, list[Any]] = defaultdict(list)
    for row in _rows(tx, tables.approval_vote):
        votes[row.approval_id].append(row)
    made = {row.id: row.created_by for row in _rows(tx, tables.quote, "id", "created_by")}
    versions = {(row.quote_id, row.version): row for row in _rows(tx, tables.quote_version)}
    open_now: Counter[tuple[str, int]] = Counter()
    for row in _rows(tx, tables.approval):
        words = Counter(vote.decision for vote in votes[row.id])
        expected = {"approved": "approve", "rejected": "reject"}.get(row.status)
        if expected and not words[expected]:
            yield f"I5: {row.id} is {row.status} without a vote for it"
        if row.status == "pending" and words["reject"]:
            yield f"I5: {row.id} is pending, and was rejected"
        version = versions[row.quote_id, row.version]
        open_now[row.quote_id, row.version] += row.status == "pending"
        makers = {made[row.quote_id], version.created_by, row.requested_by, *version.edited_by}
        for vote in votes[row.id]:
            if vote.caller in makers:
                yield f"I8: {vote.caller} decided on {row.id}, which they made or asked for"
    for (quote_id, number), version in versions.items():
        waiting = open_now[quote_id, number]
        is_settled = version.status in ("approved", "sent", "accepted", "declined")
        if waiting if is_settled else version.status == "pending_approval" and not waiting:
            yield f"I5: version {number} of {quote_id} is {version.status} with {waiting} open requests"


def _record(tx: Tx, told: Sequence[Told], head: tuple[int, str] | None) -> Iterator[str]:
    """I9: the chain, one entry for each answer, and rows that are as the entries have them."""
    chain = audit.verify(tx.connection, TENANT, expect=head)
    if chain.broken_at is not None:
        yield f"I9: the chain is broken at {chain.broken_at}: {chain.reason}"
    entries = Counter(
        row.operation
        for row in _rows(tx, tables.audit_entry, "operation", "outcome", "answer")
        if row.outcome == "OK" and row.answer is not None
    )
    for tool, count in Counter(one.tool for one in {(o.caller, o.tool, o.key): o for o in told}.values()).items():
        if entries[tool] < count:
            yield f"I9: {count} calls of {tool} were answered, and {entries[tool]} are on record"
    for finding in reconcile(tx, lambda _done, _total: None).findings:
        yield f"I9: {finding.message}"


def _documents(tx: Tx, told: Sequence[Told]) -> Iterator[str]:
    """I10: what was handed out can be read and is what its row says; a row may wait for its file to be rendered."""
    store = Store(tx.settings.home)
    for row in _rows(tx, tables.document, "id", "checksum"):
        if store.path(row.checksum).exists() and store.read(row.checksum) is None:
            yield f"I10: the file of {row.id} is not whole"
    for one in told:
        if one.tool == "quote_pdf" and store.read(one.answer["checksum"].removeprefix("sha256:")) is None:
            yield f"I10: the document of {one.answer['quote_id']} was handed out, and its file is not there"


def _keys(tx: Tx, _told: Sequence[Told]) -> Iterator[str]:
    """I2 and I11: each quote was made under exactly one key that is still kept, and each such key has its quote."""
    keys: Counter[str] = Counter()
    for row in _rows(tx, tables.idempotency, "operation", "answer"):
        if row.operation in MAKERS:
            answer = row.answer if isinstance(row.answer, dict) else json.loads(row.answer)
            keys[answer["quote_id"]] += 1
    ids = {row.id for row in _rows(tx, tables.quote, "id")}
    for quote_id in sorted(ids | keys.keys()):
        if (quote_id in ids, keys[quote_id]) != (True, 1):
            yield f"I11: {quote_id} {'is' if quote_id in ids else 'is not'} there and has {keys[quote_id]} keys"


def _agreements(tx: Tx, _told: Sequence[Told]) -> Iterator[str]:
    for difference in fold_proof.verify(tx)["differences"]:
        yield f"I12: {difference}"
    ordered = Counter(row.quote_id for row in _rows(tx, tables.sales_order, "quote_id"))
    for row in _rows(tx, tables.quote, "id", "status"):
        if ordered[row.id] != (row.status == "accepted"):
            yield f"I12: {row.id} is {row.status} and has {ordered[row.id]} orders"
