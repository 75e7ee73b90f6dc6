"""Imports a file of quotes as drafts: all or nothing, every bad row is named, unchanged quotes are left alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Any, cast

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, nearest
from cpq.base.row_problems import Problem, SourceRow, require_none
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.file_rows import SourceQuote, quotes_of, sound_part, validate
from cpq.domain.quotes.lifecycle import VersionStatus
from cpq.domain.quotes.quote import Quote
from cpq.services.catalog import ImportReport
from cpq.services.quotes import repository, transitions
from cpq.services.quotes.composition import Composition, compose
from cpq.storage.schema import tables

PROBLEMS_MAX = 10_000
WARNINGS_MAX = 1_000
SECTION = "quotes"

_LINE = re.compile(r"/line_items/([0-9]+)/?(.*)")


def import_quotes(tx: Tx, rows: Iterable[SourceRow]) -> ImportReport:
    """Create new quotes and change drafts that differ; the id in the file is the id of the quote.

    Raises VALIDATION_ERROR with every bad row in `details.problems`; the caller then rolls the transaction back.
    """
    work = _Import(tx)
    for source in quotes_of(work.of_quotes(rows)):
        work.take(source)
    work.finish()
    return work.report


class _Import:
    """The import of one file."""

    def __init__(self, tx: Tx) -> None:
        self.tx = tx
        self.report = ImportReport()
        self.report.unchanged[SECTION] = 0
        self._problems: list[Problem] = []
        self._problem_count = 0
        self._seen: set[str] = set()
        self._strange: set[str] = set()

    def of_quotes(self, rows: Iterable[SourceRow]) -> Iterable[SourceRow]:
        for row in rows:
            if row.section == SECTION:
                yield row
            elif row.section not in self._strange:
                self._strange.add(row.section)
                self._refuse(Problem(row.line, row.section, f"is not {SECTION}", nearest(row.section, [SECTION])))

    def take(self, source: SourceQuote) -> None:
        row, problems = validate(source)
        for problem in problems:
            self._refuse(problem)
        quote_id = row.id if row is not None else str(source.values.get("id", ""))
        if quote_id and quote_id in self._seen:
            reason = f"{quote_id!r} is in this file twice; the lines of a quote must be together"
            self._refuse(Problem(source.line, "id", reason))
            return
        self._seen.add(quote_id)
        if row is None:
            self._check_rest(source)
            return
        try:
            self._store(row.id, row.as_draft())
        except CpqError as error:
            for detail in _problems_of(error):
                self._refuse(_located(detail, source))

    def _check_rest(self, source: SourceQuote) -> None:
        """Name what else is wrong in a refused quote: its account, and the lines that can be read."""
        rest = sound_part(source)
        if rest is None:
            return
        row, kept, wrong = rest
        try:
            compose(self.tx, row.as_draft(), problems_max=PROBLEMS_MAX, is_written=True)
        except CpqError as error:
            for detail in _problems_of(error):
                field = str(detail.get("field", ""))
                if field.strip("/") not in wrong:
                    moved = _LINE.sub(lambda place: f"/line_items/{kept[int(place[1])]}/{place[2]}", field)
                    self._refuse(_located({**detail, "field": moved}, source))

    def finish(self) -> None:
        require_none(self._problems, self._problem_count)

    def _store(self, quote_id: str, draft: Draft) -> None:
        quote = repository.find(self.tx, quote_id)
        if quote is None:
            _require_unused(self.tx, quote_id)
            composed = self._compose(quote_id, draft, None)
            if not self._problems:
                repository.add_quote(self.tx, quote_id, composed)
            self.report.created[SECTION] += 1
            return
        asked = _asked_again(quote, draft)
        if asked.is_same(quote.as_draft(lines=_numbered(quote.as_draft()))):
            self.report.unchanged[SECTION] += 1
            return
        _require_open(quote, asked)
        composed = self._compose(quote_id, asked, None if draft.valid_until else quote.version.requested_valid_until)
        if not self._problems:
            transitions.rewrite_draft(self.tx, quote, composed, priced_at=None)
        self.report.updated[SECTION] += 1

    def _compose(self, quote_id: str, draft: Draft, stored_day: date | None) -> Composition:
        composed = compose(self.tx, draft, problems_max=PROBLEMS_MAX, is_written=True, stored_day=stored_day)
        room = WARNINGS_MAX - len(self.report.warnings)
        self.report.warnings += [f"{quote_id}: {message}" for message in composed.warnings[:room]]
        return composed

    def _refuse(self, problem: Problem) -> None:
        self._problem_count += 1
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append(problem)


def _asked_again(quote: Quote, draft: Draft) -> Draft:
    """The draft of the file, completed by what a file does not have: the requested discount and the standard terms."""
    before = quote.as_draft()
    is_there = before.option_set in draft.option_sets
    return replace(
        draft,
        currency=draft.currency or before.currency,
        lines=tuple(_sold_as_before(line, before) for line in draft.lines),
        payment_terms=draft.payment_terms or before.payment_terms,
        valid_until=draft.valid_until or before.valid_until,
        requested_discount=before.requested_discount,
        requested_amount=before.requested_amount,
        option_set=before.option_set if is_there else None,
        internal=before.internal,
    )


def _sold_as_before(line: DraftLine, before: Draft) -> DraftLine:
    """A line of the file keeps its internal notes, and its selling model where the file names none."""
    known = before.lines[line.number - 1] if line.number <= len(before.lines) else None
    if known is None or known.product_id != line.product_id:
        return line
    return line._replace(selling_model=line.selling_model or known.selling_model, internal=known.internal)


def _numbered(draft: Draft) -> tuple[Any, ...]:
    """The lines numbered as in a file: an edit may have left gaps."""
    return tuple(line._replace(number=number) for number, line in enumerate(draft.lines, 1))


def _require_unused(tx: Tx, quote_id: str) -> None:
    mine = tx.own(tables.past_quote) & (tables.past_quote.c.id == quote_id)
    if tx.connection.scalar(sa.select(tables.past_quote.c.id).where(mine)) is not None:
        reason = f"{quote_id!r} is the id of a quote in the imported history; use another id"
        raise CpqError(Code.CONFLICT, reason, field="/id")


def _require_open(quote: Quote, draft: Draft) -> None:
    for name in ("account_id", "currency"):
        kept, asked = getattr(quote, name), getattr(draft, name)
        if kept != asked:
            raise CpqError(Code.CONFLICT, f"is {kept} and cannot change: {quote.id} exists already", field=f"/{name}")
    status = quote.version.status if quote.status.is_draft else quote.status
    if status != VersionStatus.DRAFT or quote.is_fixed:
        raise CpqError(
            Code.CONFLICT,
            f"{quote.id} is {status} and differs from the file; revise it, or remove it from the file",
            field="/id",
        )


def _problems_of(error: CpqError) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", error.details.get("problems", [{"message": error.message, **error.details}]))


def _located(problem: dict[str, Any], source: SourceQuote) -> Problem:
    """A problem of the quote, placed at the line of the file that causes it."""
    field, message, near = str(problem.get("field", "")), str(problem["message"]), problem.get("nearest")
    if place := _LINE.fullmatch(field):
        line, name = source.place(int(place[1]), place[2].replace("/", "."))
        return Problem(line, name, message, near)
    return Problem(source.line, field.strip("/").replace("/", ".") or "row", message, near)
