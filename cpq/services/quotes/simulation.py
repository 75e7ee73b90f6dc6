"""Simulation of a policy change: decides every stored quote, at its stored price, under two policy sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.domain.policy.diff import DecisionChange, decision_change
from cpq.domain.policy.facts import QuoteFacts, QuoteInputs
from cpq.domain.policy.policy_set import PolicySet
from cpq.domain.pricing import result as pricing_result
from cpq.domain.pricing.result import PricedLine
from cpq.domain.quotes import special_terms
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.lifecycle import QuoteStatus, status_at
from cpq.services.catalog import repository
from cpq.services.catalog.repository import ProductFacts
from cpq.services.quotes.composition import custom_product
from cpq.services.quotes.policy_facts import facts_of, free_text_facts
from cpq.storage.schema import tables

PAGE = 500
BATCH_LINES = 2_000
"""Lines whose results are read at once, so that memory does not grow with the size of quotes."""

PRODUCTS_MAX = 20_000

_PRODUCT_ID = pricing_result.PricedLine._fields.index("product_id")


class Changed(NamedTuple):
    """A stored quote whose current version would be decided differently."""

    quote_id: str
    version: int
    status: str
    account_id: str
    currency: str
    total: int
    change: DecisionChange


class Page(NamedTuple):
    """A page of a simulation: how many quotes were decided, and those that change. `last` is None on the last page."""

    quotes: int
    changed: list[Changed]
    last: str | None


class _Row(NamedTuple):
    """A quote with the terms of its current version, the buyer's facts, and its number of lines."""

    id: str
    version: int
    status: str
    expires_at: datetime
    lapses_at: datetime | None
    account_id: str
    deal_id: str | None
    currency: str
    total: int
    term_months: int | None
    start_date: date | None
    end_date: date | None
    requested_valid_until: date | None
    payment_terms: str
    notes: str | None
    created_by: str
    edited_by: Sequence[str]
    segment: str
    region: str
    country: str
    lines: int


def count_quotes(tx: Tx) -> int:
    mine = tx.own(tables.quote)
    return tx.connection.scalar(sa.select(sa.func.count()).select_from(tables.quote).where(mine)) or 0


class Simulation:
    """Decides stored quotes under two sets, a page at a time, in a fixed number of queries each.

    Prices, terms and options are those stored with the version; account and products are as they are now, as in every
    evaluation of policies. Nothing is priced again, so rules that change prices change no decision here.
    """

    def __init__(self, before: PolicySet, after: PolicySet) -> None:
        self._before = before
        self._after = after
        self._products: dict[str, ProductFacts] = {}

    def page(self, tx: Tx, last: str | None) -> Page:
        """Decide the quotes after `last` in the order of ids; None starts at the first."""
        rows = _rows(tx, last)
        changed = [one for batch in _batches(rows) for one in self._changed(tx, batch)]
        return Page(len(rows), changed, rows[-1].id if len(rows) == PAGE else None)

    def _changed(self, tx: Tx, batch: Sequence[_Row]) -> Iterator[Changed]:
        ids = [row.id for row in batch]
        results, wordings = _results(tx, ids), _wordings(tx, ids)
        days = _days_asked_for(tx, batch)
        self._learn(tx, {line[_PRODUCT_ID] for sets in results.values() for one in sets for line in one["lines"]})
        for row in batch:
            alternatives = [self._facts(row, one, wordings[row.id], days.get(row.id)) for one in results[row.id]]
            if not alternatives:
                continue
            change = decision_change(self._before, self._after, *alternatives, has_own_validity=row.id in days)
            if change is not None:
                status = status_at(QuoteStatus(row.status), row.expires_at, tx.now, row.lapses_at)
                yield Changed(row.id, row.version, status, row.account_id, row.currency, row.total, change)

    def _learn(self, tx: Tx, product_ids: Iterable[str]) -> None:
        """Read the products that were not read before."""
        unknown = [id_ for id_ in product_ids if id_ not in self._products]
        if unknown:
            if len(self._products) > PRODUCTS_MAX:
                self._products.clear()
                unknown = list(product_ids)
            self._products |= repository.gather(tx, unknown).products

    def _facts(
        self, row: _Row, result: dict[str, Any], wordings: Mapping[int, _Wording], days: int | None
    ) -> QuoteFacts:
        priced = pricing_result.load(result, with_steps=False)
        asked = {line.id: _asked(line, wordings.get(int(line.id), _NOTHING)) for line in priced.lines}
        end_date = row.end_date if row.term_months is None else None
        months = Draft(
            row.account_id,
            row.currency,
            tuple(asked.values()),
            term_months=row.term_months,
            start_date=row.start_date,
            end_date=end_date,
        ).running_months
        inputs = QuoteInputs(
            currency=row.currency,
            term_months=None if months is None else Decimal(months),
            payment_terms=row.payment_terms,
            segment=row.segment,
            region=row.region,
            country=row.country,
        )
        products = _with_custom(self._products, asked)
        makers = (row.created_by, *row.edited_by)
        texts = free_text_facts(self._after.library, row.notes, row.deal_id, asked.values(), products, makers)
        days = self._before.terms.validity_days if days is None else days
        usage = {str(number) for number, wording in wordings.items() if wording.rate_card}
        return facts_of(inputs, asked, products, priced, validity_days=days, texts=texts, usage=usage)


class _Wording(NamedTuple):
    """What a line says besides its product and quantity."""

    attributes: Mapping[str, Any]
    notes: str | None
    special: Mapping[str, Any] | None
    rate_card: Mapping[str, Any] | None


_NOTHING = _Wording({}, None, None, None)


def _asked(line: PricedLine, wording: _Wording) -> DraftLine:
    found = DraftLine(int(line.id), line.product_id, line.quantity, 0, wording.attributes, wording.notes)
    return found._replace(special=special_terms.load(wording.special)) if wording.special else found


def _with_custom(products: Mapping[str, ProductFacts], asked: Mapping[str, DraftLine]) -> Mapping[str, ProductFacts]:
    custom = {line.product_id: custom_product(line, "") for line in asked.values() if line.custom}
    return {**products, **custom} if custom else products


def _rows(tx: Tx, last: str | None) -> list[_Row]:
    """A page of quotes in the order of their ids."""
    quote, version, line, account = (
        table.c for table in (tables.quote, tables.quote_version, tables.quote_line, tables.account)
    )
    lines = (
        sa.select(sa.func.count())
        .where(line.tenant_id == quote.tenant_id, line.quote_id == quote.id, line.version == quote.version)
        .correlate(tables.quote)
        .scalar_subquery()
    )
    query = (
        sa.select(
            quote.id,
            quote.version,
            quote.status,
            quote.expires_at,
            quote.lapses_at,
            quote.account_id,
            version.deal_id,
            quote.currency,
            quote.total,
            version.term_months,
            version.start_date,
            version.end_date,
            version.requested_valid_until,
            version.payment_terms,
            version.notes,
            version.created_by,
            version.edited_by,
            account.segment,
            account.region,
            account.country,
            lines.label("lines"),
        )
        .join(
            tables.quote_version,
            (version.tenant_id == quote.tenant_id)
            & (version.quote_id == quote.id)
            & (version.version == quote.version),
        )
        .join(tables.account, (account.tenant_id == quote.tenant_id) & (account.id == quote.account_id))
        .where(tx.own(tables.quote))
        .order_by(quote.id)
        .limit(PAGE)
    )
    return list(map(_Row._make, tx.connection.execute(query if last is None else query.where(quote.id > last))))


def _batches(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    batch: list[_Row] = []
    lines = 0
    for row in rows:
        if batch and lines + row.lines > BATCH_LINES:
            yield batch
            batch, lines = [], 0
        batch.append(row)
        lines += row.lines
    if batch:
        yield batch


def _results(tx: Tx, ids: Sequence[str]) -> defaultdict[str, list[dict[str, Any]]]:
    """The pricer's results for each quote's current version, one for each option set."""
    columns = tables.quote_pricing.c
    query = sa.select(columns.quote_id, columns.result).where(tx.own_among(columns.quote_id, ids))
    results = defaultdict(list)
    for quote_id, result in tx.connection.execute(_current(query, tables.quote_pricing).order_by(columns.option_set)):
        results[quote_id].append(result)
    return results


def _days_asked_for(tx: Tx, rows: Sequence[_Row]) -> dict[str, int]:
    """The validity of the quotes for which one was asked, in days from their price on; most quotes have none."""
    asked = {row.id: row.requested_valid_until for row in rows if row.requested_valid_until}
    if not asked:
        return {}
    columns = tables.quote_pricing.c
    query = sa.select(columns.quote_id, columns.request).where(tx.own_among(columns.quote_id, list(asked)))
    found = tx.connection.execute(_current(query, tables.quote_pricing))
    return {id_: (asked[id_] - date.fromisoformat(request["as_of"])).days for id_, request in found}


def _wordings(tx: Tx, ids: Sequence[str]) -> defaultdict[str, dict[int, _Wording]]:
    """The choices, notes and special terms of lines that have any; most lines have none."""
    columns = tables.quote_line.c
    has_words = (sa.type_coerce(columns.attributes, sa.Text) != "{}") | columns.notes.is_not(None)
    terms = (columns.special, columns.usage)
    has_any = sa.or_(has_words, *(sa.type_coerce(one, sa.Text).is_not(None) for one in terms))
    query = sa.select(columns.quote_id, columns.number, columns.attributes, columns.notes, *terms).where(
        tx.own_among(columns.quote_id, ids), has_any
    )
    found: defaultdict[str, dict[int, _Wording]] = defaultdict(dict)
    for quote_id, number, *wording in tx.connection.execute(_current(query, tables.quote_line)):
        found[quote_id][number] = _Wording(*wording)
    return found


def _current(query: sa.Select[*tuple[Any, ...]], table: sa.Table) -> sa.Select[*tuple[Any, ...]]:
    """Only the rows of the version that is the quote's current one."""
    return query.join(
        tables.quote,
        (tables.quote.c.tenant_id == table.c.tenant_id)
        & (tables.quote.c.id == table.c.quote_id)
        & (tables.quote.c.version == table.c.version),
    )
