"""Imports a file of past quotes as history: all rows or none, with a list of all bad rows."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from cpq.app import corpus_changes
from cpq.app.transaction import Tx
from cpq.base.errors import nearest
from cpq.base.row_problems import Problem, SourceRow, require_none
from cpq.base.text import fingerprint
from cpq.domain.quotes.file_rows import quotes_of, validate_as
from cpq.retrieval.past_quotes.history_file import KNOWN, OF_QUOTE, PastQuoteRow
from cpq.services.catalog import ImportReport
from cpq.storage.schema import tables
from cpq.storage.statements import insert_many

SECTION, KIND = "quotes", "past_quotes"
"""The name of the rows in the file, and in the report."""

BATCH = 1_000
PROBLEMS_MAX = 10_000


def import_history(tx: Tx, rows: Iterable[SourceRow]) -> ImportReport:
    """Create new quotes and replace changed ones; the id in the file is the quote's number.

    Raises VALIDATION_ERROR with every bad row in `details.problems`; the caller then rolls back the transaction.
    """
    report = ImportReport()
    report.unchanged[KIND] = 0
    problems: list[Problem] = []
    batch: dict[str, tuple[int, PastQuoteRow]] = {}
    seen: set[str] = set()
    touched: list[str] = []
    for source in quotes_of(_of_quotes(rows, problems), OF_QUOTE):
        row, found = validate_as(PastQuoteRow, source, KNOWN)
        problems += found
        if row is not None and row.id in seen:
            reason = f"{row.id!r} stands in this file twice; the lines of a quote stand together"
            problems.append(Problem(source.line, "id", reason))
        elif row is not None:
            seen.add(row.id)
            batch[row.id] = (source.line, row)
        if len(batch) == BATCH:
            touched += _store(tx, batch, report, problems)
            batch = {}
    touched += _store(tx, batch, report, problems)
    require_none(problems[:PROBLEMS_MAX], len(problems))
    corpus_changes.touch(tx, corpus_changes.PAST_QUOTES, touched)
    return report


def _of_quotes(rows: Iterable[SourceRow], problems: list[Problem]) -> Iterable[SourceRow]:
    strange: set[str] = set()
    for row in rows:
        if row.section == SECTION:
            yield row
        elif row.section not in strange:
            strange.add(row.section)
            problems.append(Problem(row.line, row.section, f"is not {SECTION}", nearest(row.section, [SECTION])))


def _store(
    tx: Tx, batch: dict[str, tuple[int, PastQuoteRow]], report: ImportReport, problems: list[Problem]
) -> list[str]:
    """Write new and changed quotes unless there are problems; returns the ids that were written."""
    own = tx.connection.scalars(sa.select(tables.quote.c.id).where(tx.own_among(tables.quote.c.id, batch)))
    problems += [Problem(batch[id_][0], "id", f"{id_!r} is a quote of this system, not of its history") for id_ in own]
    if problems or not batch:
        return []
    hashes = {id_: fingerprint(row.model_dump(mode="json")) for id_, (_, row) in batch.items()}
    mine = sa.select(tables.past_quote.c.id, tables.past_quote.c.content_hash).where(
        tx.own_among(tables.past_quote.c.id, batch)
    )
    known = {row.id: row.content_hash for row in tx.connection.execute(mine)}
    changed = [id_ for id_, stored in known.items() if stored != hashes[id_]]
    fresh = [id_ for id_ in batch if id_ not in known]
    report.created[KIND] += len(fresh)
    report.updated[KIND] += len(changed)
    report.unchanged[KIND] += len(known) - len(changed)
    if changed:
        for table, column in (
            (tables.past_line, tables.past_line.c.quote_id),
            (tables.past_quote, tables.past_quote.c.id),
        ):
            tx.connection.execute(sa.delete(table).where(tx.own_among(column, changed)))
    wanted = [batch[id_][1] for id_ in (*fresh, *changed)]
    insert_many(tx.connection, tables.past_quote, [_quote_columns(tx, row, hashes[row.id]) for row in wanted])
    insert_many(tx.connection, tables.past_line, [columns for row in wanted for columns in _line_columns(tx, row)])
    return [*fresh, *changed]


def _quote_columns(tx: Tx, row: PastQuoteRow, content_hash: str) -> dict[str, object]:
    values = {name: value for name, value in row if name != "line_items"}
    return {"tenant_id": tx.tenant_id, **values, "content_hash": content_hash, "imported_at": tx.now}


def _line_columns(tx: Tx, row: PastQuoteRow) -> Iterable[dict[str, object]]:
    for number, line in enumerate(row.line_items, 1):
        yield {"tenant_id": tx.tenant_id, "quote_id": row.id, "number": number, **dict(line)}
