"""Compares the stored rows with the states in the audit entries, and names every row that differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from cpq.app import recorded_sets, recorded_state
from cpq.app.recorded_sets import CATALOG
from cpq.app.recorded_state import BY_ROW, OF_VERSION, RIGHTS, RIGHTS_TABLES, Part, Parts, described, differences
from cpq.app.transaction import Tx
from cpq.base.state_digest import row_digest
from cpq.base.text import read_json
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
    findings: list[Finding] = field(default_factory=list)


@dataclass
class _Entries:
    """What all entries say, gathered in one pass."""

    last: dict[str, int] = field(default_factory=dict)
    """The highest number of a state, by subject."""
    counts: dict[str, int] = field(default_factory=dict)
    answers: set[str] = field(default_factory=set)
    answers_since: Any = None


def reconcile(tx: Tx, progress: Progress) -> StateReport:
    """Compare every quote, right, price and stored answer with the entries."""
    report, entries = StateReport(), _gather(tx)
    ids = list(tx.connection.scalars(sa.select(tables.quote.c.id).where(tx.own(tables.quote)).order_by("id")))
    for done, quote_id in enumerate(ids):
        progress(done, len(ids))
        _compare_quote(tx, report, entries, quote_id)
    gone = entries.last.keys() - {*ids, CATALOG, RIGHTS}
    report.findings += [Finding(one, "quote", f"quote {one} is on record, and its row is gone") for one in sorted(gone)]
    report.are_rights_checked = _compare(tx, report, entries, RIGHTS, lambda: read_rights(tx))
    report.is_catalog_checked = _compare(tx, report, entries, CATALOG, lambda: recorded_sets.sums(tx))
    _compare_answers(tx, report, entries)
    return report


def unrecorded_quotes(tx: Tx) -> list[str]:
    """The quotes without any entry that has their state."""
    quote, entry = tables.quote, tables.audit_entry
    known = sa.exists().where(tx.own(entry), entry.c.subject == quote.c.id, entry.c.state.is_not(None))
    return list(tx.connection.scalars(sa.select(quote.c.id).where(tx.own(quote), ~known).order_by(quote.c.id)))


def read_quote(tx: Tx, quote_id: str) -> Parts:
    """The digests of all parts of a quote, as they are stored now."""
    version = tables.quote_version
    numbers = list(
        tx.connection.scalars(sa.select(version.c.version).where(tx.own(version), version.c.quote_id == quote_id))
    )
    parts = [Part("quote"), *map(Part, BY_ROW)]
    parts += [Part(table, str(number)) for table in OF_VERSION for number in numbers]
    return {name: digest for part in parts for name, digest in recorded_state.read(tx, quote_id, part).items()}


def read_rights(tx: Tx) -> Parts:
    return {
        name: digest for table in RIGHTS_TABLES for name, digest in recorded_state.read(tx, RIGHTS, Part(table)).items()
    }


def _gather(tx: Tx) -> _Entries:
    entry, found = tables.audit_entry.c, _Entries()
    query = sa.select(entry.subject, entry.state, entry.answer, entry.at).where(
        tx.own(tables.audit_entry), entry.state.is_not(None) | entry.answer.is_not(None)
    )
    with tx.connection.execute(query.execution_options(yield_per=1000)) as rows:
        for subject, state, answer, at in rows:
            if state is not None:
                number = read_json(state)["number"]
                found.last[subject] = max(number, found.last.get(subject, 0))
                found.counts[subject] = found.counts.get(subject, 0) + 1
            if answer is not None:
                found.answers.add(answer)
                found.answers_since = at if found.answers_since is None else min(at, found.answers_since)
    return found


def _compare_quote(tx: Tx, report: StateReport, entries: _Entries, quote_id: str) -> None:
    if _compare(tx, report, entries, quote_id, lambda: read_quote(tx, quote_id)):
        report.quotes += 1
    else:
        report.unchecked_quotes += 1


def _compare(tx: Tx, report: StateReport, entries: _Entries, subject: str, read: Callable[[], Parts]) -> bool:
    """Whether there is a record to compare with."""
    known = recorded_state.latest(tx, subject)
    if known is None:
        return False
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
        if row_digest(row[:-1]) in entries.answers:
            report.answers += 1
        elif entries.answers_since is None or row.made_at < entries.answers_since:
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
