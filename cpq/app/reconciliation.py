"""Compares the stored rows with the states in the audit entries, and names every row that differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from cpq.app import recorded_sets, recorded_state
from cpq.app.audit import Entry
from cpq.app.idempotency import parse_answer
from cpq.app.recorded_state import CATALOG, RIGHTS, Parts, described, differences, read_all
from cpq.app.transaction import Tx
from cpq.base.state_digest import row_digest
from cpq.storage.columns import as_stored
from cpq.storage.schema import tables

Progress = Callable[[int, int], None]

CANDIDATES_MAX = 5
"""Rows of a group that are named, when one of them differs."""


@dataclass(frozen=True)
class Finding:
    """One difference: the subject, the part of it, and a sentence."""

    subject: str
    part: str
    message: str


@dataclass
class StateReport:
    """The result of `reconcile`: what was compared, what has no record to compare with, and what differs."""

    quotes: int = 0
    answers: int = 0
    unchecked_quotes: int = 0
    unchecked_answers: int = 0
    is_catalog_checked: bool = False
    are_rights_checked: bool = False
    has_key: bool = False
    signed: int = 0
    """Subjects whose last state is signed by the key; without a key those that are signed at all, unverified."""
    plain: int = 0
    """Subjects whose last state has no signature."""
    findings: list[Finding] = field(default_factory=list)


@dataclass
class _Entries:
    """What all entries say, gathered in one pass."""

    last: dict[str, int] = field(default_factory=dict)
    """The highest number of a state, by subject."""
    counts: dict[str, int] = field(default_factory=dict)
    answers: set[str] = field(default_factory=set)
    plain_answers: set[str] = field(default_factory=set)
    """Those that the key has not signed."""
    answers_since: Any = None


def reconcile(tx: Tx, progress: Progress) -> StateReport:
    """Compare every quote, right, price and stored answer with the entries."""
    report = StateReport(has_key=tx.audit_key is not None)
    entries = _gather(tx, report)
    ids = list(tx.connection.scalars(sa.select(tables.quote.c.id).where(tx.own(tables.quote)).order_by("id")))
    for done, quote_id in enumerate(ids):
        progress(done, len(ids))
        _compare_quote(tx, report, entries, quote_id)
    gone = entries.last.keys() - {*ids, CATALOG, RIGHTS}
    report.findings += [Finding(one, "quote", f"quote {one} is on record, and its row is gone") for one in sorted(gone)]
    report.are_rights_checked = _compare(tx, report, entries, RIGHTS, lambda: read_all(tx, RIGHTS))
    report.is_catalog_checked = _compare(tx, report, entries, CATALOG, lambda: recorded_sets.sums(tx))
    _compare_answers(tx, report, entries)
    return report


def matches(tx: Tx, subject: str) -> bool:
    """Whether the rows of a subject are as its last entry has them, signed or not."""
    known = recorded_state.on_record(tx, subject)
    return known is not None and known.parts == (
        recorded_sets.sums(tx) if subject == CATALOG else read_all(tx, subject)
    )


def quote_ids(tx: Tx, *, after: str, limit: int) -> list[str]:
    """The ids of quotes after this one, in their order."""
    quote = tables.quote
    query = sa.select(quote.c.id).where(tx.own(quote), quote.c.id > after).order_by(quote.c.id).limit(limit)
    return list(tx.connection.scalars(query))


def has_quote(tx: Tx, quote_id: str) -> bool:
    """Whether there is a row of this quote."""
    mine = tx.own(tables.quote) & (tables.quote.c.id == quote_id)
    return tx.connection.scalar(sa.select(tables.quote.c.id).where(mine)) is not None


def unrecorded_quotes(tx: Tx) -> list[str]:
    """The quotes without any entry that has their state."""
    quote, entry = tables.quote, tables.audit_entry
    known = sa.exists().where(tx.own(entry), entry.c.subject == quote.c.id, entry.c.state.is_not(None))
    return list(tx.connection.scalars(sa.select(quote.c.id).where(tx.own(quote), ~known).order_by(quote.c.id)))


def unsigned_states(tx: Tx) -> int:
    """How many subjects have a last state without a signature, or are quotes without any state."""
    entry, later = tables.audit_entry, tables.audit_entry.alias()
    is_newer = (later.c.at > entry.c.at) | ((later.c.at == entry.c.at) & (later.c.id > entry.c.id))
    newer = sa.exists().where(tx.own(later), later.c.subject == entry.c.subject, later.c.state.is_not(None), is_newer)
    plain = ~entry.c.state.contains('"signature":')
    query = sa.select(sa.func.count()).where(tx.own(entry), entry.c.state.is_not(None), plain, ~newer)
    return (tx.connection.scalar(query) or 0) + len(unrecorded_quotes(tx))


def _gather(tx: Tx, report: StateReport) -> _Entries:
    """What all entries say; those with a signature that is not by the key are findings."""
    columns, found = tables.audit_entry.c, _Entries()
    query = sa.select(tables.audit_entry).where(
        tx.own(tables.audit_entry), columns.state.is_not(None) | columns.answer.is_not(None)
    )
    with tx.connection.execute(query.execution_options(yield_per=1000)) as rows:
        for entry in (Entry(**row._mapping) for row in rows):
            if entry.state is not None:
                _count_state(tx, report, found, entry)
            if entry.answer is not None:
                digest, is_sound = parse_answer(tx.audit_key, entry.answer)
                (found.answers if is_sound else found.plain_answers).add(digest)
                since = found.answers_since
                found.answers_since = entry.at if since is None else min(entry.at, since)
    return found


def _count_state(tx: Tx, report: StateReport, found: _Entries, entry: Entry) -> None:
    known, subject = recorded_state.parse(entry), entry.subject or ""
    found.last[subject] = max(known.number, found.last.get(subject, 0))
    found.counts[subject] = found.counts.get(subject, 0) + 1
    if tx.audit_key and known.signature is not None and not recorded_state.is_signed(tx, known):
        message = f"{subject}: the signature of entry {entry.id} is not by the key"
        report.findings.append(Finding(subject, "audit_entry", message))


def _compare_quote(tx: Tx, report: StateReport, entries: _Entries, quote_id: str) -> None:
    if _compare(tx, report, entries, quote_id, lambda: read_all(tx, quote_id)):
        report.quotes += 1
    else:
        report.unchecked_quotes += 1


def _compare(tx: Tx, report: StateReport, entries: _Entries, subject: str, read: Callable[[], Parts]) -> bool:
    """Whether there is a record to compare with."""
    known = recorded_state.on_record(tx, subject)
    if known is None:
        return False
    report.signed += known.signature is not None
    report.plain += known.signature is None
    last = entries.last.get(subject, 0)
    if known.number != last or entries.counts.get(subject) != last:
        report.findings.append(Finding(subject, "audit_entry", f"{subject}: the entries about it are not complete"))
    for name in differences(known.parts, stored := read()):
        kind = "is not on record" if name not in known.parts else "is gone" if name not in stored else "was changed"
        report.findings.append(Finding(subject, name, f"{subject}: {_named(tx, subject, name)} {kind}"))
    return True


def _named(tx: Tx, subject: str, name: str) -> str:
    if subject != CATALOG:
        return described(name)
    ids = recorded_sets.ids_of(tx, name)
    shown = ", ".join(ids[:CANDIDATES_MAX]) + (f" … ({len(ids)} rows)" if len(ids) > CANDIDATES_MAX else "")
    return (
        f"{name.partition('/')[0]} {shown or 'a row'}" if len(ids) < 2 else f"one of {name.partition('/')[0]} {shown}"
    )


def _compare_answers(tx: Tx, report: StateReport, entries: _Entries) -> None:
    for row in _answers(tx):
        digest = row_digest(row[:-1])
        is_old = entries.answers_since is None or row.made_at < entries.answers_since
        if digest in entries.answers:
            report.answers += 1
        elif is_old or digest in entries.plain_answers:
            report.unchecked_answers += 1
        else:
            where = f"{row.caller}, {row.operation}, key {row.key}"
            report.findings.append(Finding(where, "idempotency", f"the stored answer of {where} is not on record"))


def _answers(tx: Tx) -> Iterator[Any]:
    table = tables.idempotency
    columns = [as_stored(tx.connection.dialect.name, column) for column in table.c]
    made = table.c.created_at.label("made_at")
    query = sa.select(*columns, made).where(tx.own(table), table.c.answer.is_not(None))
    with tx.connection.execute(query.execution_options(yield_per=1000)) as rows:
        yield from rows
