"""Proof of stored quotes: each version's request is priced again, and every stored hash and amount must match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.money import from_micro
from cpq.base.text import digest, read_json
from cpq.domain.pricing import result as pricing_result
from cpq.domain.pricing.replay import Difference, first_difference, reprice
from cpq.domain.pricing.result import PricedLine, PricedQuote
from cpq.domain.quotes.quote import QuoteLine, QuoteVersion
from cpq.services.quotes import repository
from cpq.services.quotes.composition import fingerprint_of
from cpq.storage.schema import tables

PAGE = 200
TOTALS = ("subtotal", "discount_total", "tax_total", "total")
AMOUNTS = ("list_amount", "regular", "net", "cost")
WORDS = ("product_id", "quantity", "billing_period", "tax_category")

Progress = Callable[[int, int], None]
"""Called with the number of versions proven so far, and of all versions."""


@dataclass(frozen=True)
class Proof:
    """A version that is as it was stored. Facts that changed since are no fault: a new price would use them."""

    quote_id: str
    version: int
    status: str
    currency: str
    total: int
    option_sets: int
    lines: int
    hashes: Mapping[str, str]
    has_same_catalog: bool
    has_same_policies: bool


def replay_stored(tx: Tx, quote_id: str | None, progress: Progress = lambda _done, _total: None) -> Iterator[Proof]:
    """Prove every version of a quote, or of all quotes; CONFLICT names the first difference and ends it."""
    if quote_id is not None:
        quote_id = repository.load(tx, quote_id).id
    mine = [tx.own(tables.quote_version)]
    mine += [tables.quote_version.c.quote_id == quote_id] if quote_id is not None else []
    total = tx.connection.scalar(sa.select(sa.func.count()).select_from(tables.quote_version).where(*mine)) or 0
    now = _Now(tx)
    for done, row in enumerate(_versions(tx, mine), 1):
        yield _prove(tx, row, now)
        progress(done, total)


@dataclass(frozen=True)
class _Record:
    option_set: str
    request: str
    result: str


@dataclass(frozen=True)
class _Subject:
    """A version with the fields of its quote that it depends on."""

    quote_id: str
    account_id: str
    version: QuoteVersion


class _Now:
    """The hashes of accounts, products and policies as they are now, each looked up once."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._accounts: dict[str, str] = {}
        self._products: dict[str, str] = {}

    def catalog(self, account_id: str, product_ids: Sequence[str]) -> str:
        self._learn(tables.account, self._accounts, [account_id])
        self._learn(tables.product, self._products, product_ids)
        return digest([self._accounts[account_id], *(self._products[id_] for id_ in sorted(product_ids))])

    def _learn(self, table: sa.Table, known: dict[str, str], ids: Sequence[str]) -> None:
        unknown = [id_ for id_ in ids if id_ not in known]
        if unknown:
            mine = self._tx.own_among(table.c.id, unknown)
            rows = self._tx.connection.execute(sa.select(table.c.id, table.c.content_hash).where(mine))
            known.update(dict.fromkeys(unknown, "") | {row.id: row.content_hash for row in rows})


def _versions(tx: Tx, mine: Sequence[sa.ColumnElement[bool]]) -> Iterator[_Subject]:
    """In the order of quotes and versions, a page at a time, so that memory does not grow with their number."""
    columns = tables.quote_version.c
    key = sa.tuple_(columns.quote_id, columns.version)
    query = sa.select(tables.quote_version, tables.quote.c.account_id).join(
        tables.quote, (tables.quote.c.tenant_id == columns.tenant_id) & (tables.quote.c.id == columns.quote_id)
    )
    query = query.where(*mine).order_by(columns.quote_id, columns.version).limit(PAGE)
    rows = tx.connection.execute(query).all()
    while rows:
        for row in rows:
            yield _Subject(row.quote_id, row.account_id, repository.version_of(row._mapping))
        after = sa.tuple_(sa.literal(rows[-1].quote_id), sa.literal(rows[-1].version))
        rows = tx.connection.execute(query.where(key > after)).all()


def _prove(tx: Tx, subject: _Subject, now: _Now) -> Proof:
    lines = repository.lines(tx, subject.quote_id, subject.version.number)
    records = _in_hashed_order(subject, lines, _records(tx, subject))
    results = _reprice(subject, records)
    _check_columns(subject, lines, records, results)
    version, asked = subject.version, read_json(records[0].request)
    return Proof(
        quote_id=subject.quote_id,
        version=version.number,
        status=version.status,
        currency=version.currency,
        total=version.total,
        option_sets=len(records),
        lines=len(lines),
        hashes=version.hashes,
        has_same_catalog=version.hashes.get("catalog") == now.catalog(subject.account_id, list(asked["products"])),
        has_same_policies=version.hashes.get("policies") == tx.policies.content_hash,
    )


def _records(tx: Tx, subject: _Subject) -> list[_Record]:
    """The stored texts byte for byte, because the hashes are over their bytes."""
    columns = tables.quote_pricing.c
    mine = tx.own(tables.quote_pricing) & (columns.quote_id == subject.quote_id)
    query = sa.select(
        columns.option_set, sa.type_coerce(columns.request, sa.Text), sa.type_coerce(columns.result, sa.Text)
    ).where(mine, columns.version == subject.version.number)
    return [_Record(*values) for values in tx.connection.execute(query)]


def _in_hashed_order(subject: _Subject, lines: Sequence[QuoteLine], records: Sequence[_Record]) -> list[_Record]:
    """The option sets in the order of the hash: the one selected then first; acceptance may have selected another."""
    names = list(dict.fromkeys(line.option_set for line in lines if line.option_set)) or [""]
    by_name = {record.option_set: record for record in records}
    if sorted(by_name) != sorted(names):
        raise _broken(subject, Difference(None, "option sets", sorted(by_name), sorted(names)))
    orders = [[first, *(name for name in names if name != first)] for first in names]
    hashes = {digest(by_name[name].request for name in order): order for order in orders}
    kept = subject.version.hashes.get("request")
    if kept not in hashes:
        why = "The request is not the one that was hashed."
        raise _broken(subject, Difference(None, "hashes.request", kept, next(iter(hashes))), why)
    return [by_name[name] for name in hashes[kept]]


def _reprice(subject: _Subject, records: Sequence[_Record]) -> list[PricedQuote]:
    """Every result, after checking that it follows from its request and matches the hash."""
    repriced = []
    for record in records:
        try:
            repriced.append(reprice(record.request))
        except (CpqError, ValueError) as error:
            raise _broken(
                subject, Difference(None, "request", "stored", str(error)), option_set=record.option_set
            ) from None
    kept, stored = subject.version.hashes.get("result"), digest(record.result for record in records)
    for record, result in zip(records, repriced, strict=True):
        if difference := first_difference(record.result, result):
            why = (
                "The stored result matches the hash, so the pricing code has changed."
                if stored == kept
                else "The new result matches the hash, so the stored result was changed."
                if digest(repriced) == kept
                else ""
            )
            raise _broken(subject, difference, why, option_set=record.option_set)
    results = [pricing_result.load(read_json(result)) for result in repriced]
    seen = fingerprint_of(results)
    for name, found, expected in (("hashes.result", kept, stored), ("fingerprint", subject.version.fingerprint, seen)):
        if found != expected:
            raise _broken(subject, Difference(None, name, found, expected))
    return results


def _check_columns(
    subject: _Subject, lines: Sequence[QuoteLine], records: Sequence[_Record], results: Sequence[PricedQuote]
) -> None:
    """The amounts in columns, which lists and views show, must equal those of the result."""
    selected = next(
        (
            result
            for record, result in zip(records, results, strict=True)
            if record.option_set == subject.version.option_set
        ),
        results[0],
    )
    for name in TOTALS:
        stored, priced_again = getattr(subject.version, name), getattr(selected, name)
        if stored != priced_again:
            raise _broken(subject, Difference(None, name, from_micro(stored), from_micro(priced_again)))
    priced: dict[int, PricedLine] = {}
    for result in (selected, *results):
        for one in result.lines:
            priced.setdefault(int(one.id), one)
    if [line.number for line in lines] != sorted(priced):
        raise _broken(subject, Difference(None, "lines", [line.number for line in lines], sorted(priced)))
    for line in lines:
        for name in (*WORDS, *AMOUNTS):
            stored, priced_again = getattr(line, name), getattr(priced[line.number], name)
            if stored != priced_again:
                shown = [
                    from_micro(value) if name in AMOUNTS and value is not None else value
                    for value in (stored, priced_again)
                ]
                raise _broken(subject, Difference(str(line.number), name, *shown))


def _broken(subject: _Subject, found: Difference, why: str = "", *, option_set: str = "") -> CpqError:
    where = f"Quote {subject.quote_id}, version {subject.version.number}"
    where += f", option set {option_set}" if option_set else ""
    where += f", line {found.line}" if found.line is not None else ""
    return CpqError(
        Code.CONFLICT,
        f"{where}: {found.field} is stored as {found.stored}, computed as {found.computed}.",
        hint=why or None,
        quote_id=subject.quote_id,
        version=subject.version.number,
        option_set=option_set or None,
        line=found.line,
        differing=found.field,
        stored=found.stored,
        computed=found.computed,
    )
