"""Repository of quotes: reads an aggregate in a fixed number of queries, and writes whole versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import RowMapping

from cpq.app import recorded_state
from cpq.app.access import Caller
from cpq.app.recorded_state import Part
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, next_call
from cpq.base.late_modules import LateModule
from cpq.base.text import canonical_json, plain_json, read_json
from cpq.domain.approvals.approval_request import RequestStatus
from cpq.domain.pricing import rate_cards
from cpq.domain.pricing.request import Segment
from cpq.domain.pricing.result import TaxGroup
from cpq.domain.quotes import internal, special_terms
from cpq.domain.quotes.draft import Draft, load_change
from cpq.domain.quotes.lifecycle import QuoteStatus, VersionStatus, status_at
from cpq.domain.quotes.quote import Pricing, Quote, QuoteLine, QuoteVersion, stored_quantity
from cpq.domain.quotes.quote_number import written
from cpq.services.quotes.composition import Composition
from cpq.services.quotes.quote_ids import id_of
from cpq.storage.columns import JsonText, as_stored
from cpq.storage.schema import tables
from cpq.storage.statements import Reader, Statement
from cpq.storage.tenants import of_tenant
from cpq.storage.upsert import upsert

if TYPE_CHECKING:
    from cpq.domain.agreements import effects
else:
    effects = LateModule("cpq.domain.agreements.effects")

LINE_BYTES = 200
"""The row of a line, without its texts."""


def find(tx: Tx, quote_id: str) -> Quote | None:
    """Lock a quote for a change; None if there is no such quote."""
    is_known = tx.connection.scalar(sa.select(tables.quote.c.id).where(*_root(tx, quote_id))) is not None
    return load(tx, quote_id, for_update=True) if is_known else None


def load(
    tx: Tx, quote_id: str, *, version: int | None = None, for_update: bool = False, with_lines: bool = True
) -> Quote:
    """A quote by its id or number, with its current version, or another one; NOT_FOUND when it does not exist."""
    given, quote_id = quote_id, id_of(tx, quote_id)
    roots = (_LOCKED_ROOT if for_update else _ROOT).rows(tx.connection, tenant=tx.tenant_id, quote=quote_id)
    if not roots:
        raise CpqError(
            Code.NOT_FOUND,
            f"There is no quote {given!r}.",
            field="/quote_id",
            hint="A past quote, found by search_past_quotes, is read with get_quote.",
            next_call=next_call("quote_list"),
        )
    *stored_root, account_name, time_zone = roots[0]
    root = _OF_QUOTE.values(tx.connection, stored_root)
    number = version or root["version"]
    stored_version = _stored_version(tx, quote_id, number)
    stored_lines = _LINES.rows(tx.connection, **_mine(tx, quote_id, number)) if with_lines else []
    rows = {Part("quote"): [stored_root], Part("quote_version", str(number)): [stored_version]}
    recorded_state.note_read(tx, quote_id, rows)
    if for_update:
        also = ("quote_line",) if with_lines else ()
        read = {**rows, Part("quote_line", str(number)): stored_lines}
        recorded_state.require(tx, quote_id, number, also=also, for_update=True, rows=read)
    return Quote(
        **{name: root[name] for name in _ROOT_COLUMNS},
        id=quote_id,
        account_name=account_name,
        time_zone=time_zone,
        current_version=root["version"],
        status=status_at(QuoteStatus(root["status"]), root["expires_at"], tx.now, root["lapses_at"]),
        version=_version(tx, stored_version),
        lines=[_line(tx, row) for row in stored_lines],
    )


def statuses(tx: Tx, quote_id: str) -> dict[int, VersionStatus]:
    """The status of every version, as stored."""
    columns = tables.quote_version.c
    mine = tx.own(tables.quote_version) & (columns.quote_id == quote_id)
    rows = tx.connection.execute(sa.select(columns.version, columns.status).where(mine))
    return {row.version: VersionStatus(row.status) for row in rows}


def lapses(tx: Tx, quote_id: str) -> dict[int, datetime]:
    """The versions that waited for approval until their time was over, with that moment."""
    columns = tables.quote_version.c
    mine = tx.own(tables.quote_version) & (columns.quote_id == quote_id)
    rows = tx.connection.execute(sa.select(columns.version, columns.lapses_at).where(mine, columns.lapses_at <= tx.now))
    return {row.version: row.lapses_at for row in rows}


def currencies(tx: Tx, quote_id: str) -> dict[int, str]:
    """The currency of every version."""
    columns = tables.quote_version.c
    mine = tx.own(tables.quote_version) & (columns.quote_id == quote_id)
    rows = tx.connection.execute(sa.select(columns.version, columns.currency).where(mine))
    return {row.version: row.currency for row in rows}


def approving_roles(tx: Tx, quote: Quote) -> set[str]:
    """The roles that approved the loaded version, now or by an approval that is kept."""
    columns = tables.approval.c
    granted = columns.status.in_([status for status in RequestStatus if status.is_granted])
    mine = _of_version(tx, tables.approval, quote.id, quote.version.number)
    return set(tx.connection.scalars(sa.select(columns.role).where(*mine, granted)))


def sent_version(tx: Tx, quote_id: str) -> QuoteVersion | None:
    """The version that was sent to the customer, if any."""
    found = _SENT.rows(tx.connection, tenant=tx.tenant_id, quote=quote_id, status=VersionStatus.SENT)
    return version_of(_OF_VERSION.values(tx.connection, found[0])) if found else None


def lines(tx: Tx, quote_id: str, version: int) -> list[QuoteLine]:
    """The lines of a version in their order."""
    return [_line(tx, row) for row in _LINES.rows(tx.connection, **_mine(tx, quote_id, version))]


def _line(tx: Tx, stored: Sequence[object]) -> QuoteLine:
    row = _OF_LINE.values(tx.connection, stored)
    row |= {
        "internal": internal.load(row["internal"]),
        "special": special_terms.load(row["special"]),
        "ramp": tuple(Segment(*part) for part in row["ramp"] or ()),
        "usage": rate_cards.load(row["usage"]),
    }
    line = QuoteLine(*_LINE_VALUES(row))
    quantity_of = row["quantity_of"]
    return line if quantity_of == 1 else line._replace(quantity=stored_quantity(int(line.quantity), quantity_of))


def pricings(tx: Tx, quote: Quote) -> list[Pricing]:
    """The prices of the option sets of a quote's version, the selected one first, then by name."""
    found = _PRICINGS.rows(tx.connection, **_mine(tx, quote.id, quote.version.number))
    selected = quote.version.option_set or ""
    return sorted((Pricing(*row) for row in found), key=lambda pricing: pricing.option_set != selected)


def tax_groups(tx: Tx, quote: Quote) -> list[TaxGroup]:
    """The tax groups of the selected option set. Only they leave the database, because a whole price is large."""
    columns = tables.quote_pricing.c
    result = sa.type_coerce(columns.result, sa.Text)
    is_sqlite = tx.connection.dialect.name == "sqlite"
    of_postgres = sa.cast(sa.cast(result, sa.JSON)["tax_groups"], sa.Text)
    groups = sa.func.json_extract(result, "$.tax_groups") if is_sqlite else of_postgres
    first = columns.option_set != (quote.version.option_set or "")
    query = sa.select(groups).order_by(first, columns.option_set).limit(1)
    found = tx.connection.scalar(query.where(*_of_version(tx, tables.quote_pricing, quote.id, quote.version.number)))
    return [TaxGroup(*group) for group in read_json(found)] if found else []


def count_option_sets(tx: Tx, quote: Quote) -> int:
    """The number of option sets of a quote's version; 1 for a quote without."""
    mine = _of_version(tx, tables.quote_pricing, quote.id, quote.version.number)
    return tx.connection.scalar(sa.select(sa.func.count()).select_from(tables.quote_pricing).where(*mine)) or 0


def version_of(row: Mapping[str, Any] | RowMapping) -> QuoteVersion:
    """A version from a row with all columns of its table."""
    values = {name: row[name] for name in _VERSION_COLUMNS}
    return QuoteVersion(
        **values,
        number=row["version"],
        status=VersionStatus(row["status"]),
        internal=internal.load(row["internal"]),
        agreement=load_change(row["agreement"]),
    )


_READ_ROOT = {"id", "version", "status"}
_READ = {"number", "status", "internal", "agreement"}
_VERSION_COLUMNS = [field.name for field in fields(QuoteVersion) if field.name not in _READ]


def add_quote(tx: Tx, quote_id: str, composed: Composition, *, source: QuoteVersion | None = None) -> str:
    """Insert a new quote with its first version, and return its number.

    The agents among the makers of the `source` it copies count as its editors, because it has their texts.
    """
    draft, number = composed.draft, _next_number(tx)
    root = {
        "tenant_id": tx.tenant_id,
        "id": quote_id,
        "number": number,
        "account_id": draft.account_id,
        "deal_id": draft.deal_id,
        "currency": draft.currency,
        "version": 1,
        "edit": 1,
        "status": QuoteStatus.DRAFT,
        "total": composed.priced.total,
        "valid_until": composed.valid_until,
        "expires_at": composed.expires_at,
        "lapses_at": None,
        "created_at": tx.now,
        "created_by": tx.caller,
        "owner": tx.principal.owner,
    }
    _ADD_QUOTE.run(tx.connection, **root)
    recorded_state.begin(tx, quote_id)
    recorded_state.note_rows(tx, quote_id, Part("quote"), [_IN_ORDER_OF_QUOTE(root)])
    agents = [maker for maker in source.makers if not Caller.parse(maker).is_person] if source else ()
    add_version(tx, quote_id, 1, composed, priced_at=None, editors=agents)
    return number


def _next_number(tx: Tx) -> str:
    """The next number of the year. On PostgreSQL another writer waits here; a call that fails leaves a gap or none."""
    year = tx.now.year
    ((place,),) = _COUNT.rows(tx.connection, tenant_id=tx.tenant_id, year=year, last=1)
    return written(year, place)


def add_version(
    tx: Tx,
    quote_id: str,
    version: int,
    composed: Composition,
    *,
    priced_at: datetime | None,
    editors: Iterable[str],
) -> None:
    """Insert a version; `editors` made what it is taken from."""
    mine = {"tenant_id": tx.tenant_id, "quote_id": quote_id, "version": version}
    row = {
        **mine,
        "status": VersionStatus.DRAFT,
        "reason": None,
        **_terms(composed),
        "priced_at": priced_at,
        "created_at": tx.now,
        "created_by": tx.caller,
        "edited_by": JsonText(plain_json(makers(tx, editors))),
    }
    _ADD_VERSION.run(tx.connection, **row)
    recorded_state.note_rows(tx, quote_id, Part("quote_version", str(version)), [_IN_ORDER_OF_VERSION(row)])
    _add_parts(tx, mine, composed)


def replace_version(tx: Tx, quote: Quote, composed: Composition, *, priced_at: datetime | None) -> None:
    """Rewrite a draft version and note the editor. Only drafts are rewritten: submitted versions never change."""
    quote_id, version = quote.id, quote.version.number
    edited_by = makers(tx, (*quote.version.edited_by, tx.caller))
    for drop in (_DROP_LINES, _DROP_PRICINGS):
        drop.run(tx.connection, **_mine(tx, quote_id, version))
    update_version(tx, quote_id, version, **_terms(composed), priced_at=priced_at, edited_by=edited_by)
    _add_parts(tx, {"tenant_id": tx.tenant_id, "quote_id": quote_id, "version": version}, composed)


def makers(tx: Tx, callers: Iterable[str]) -> list[str]:
    """The callers and who stands behind the one that calls now: nobody approves what they made in another's name."""
    owner, acted_by = None if tx.principal.is_person else tx.principal.owner, tx.principal.acted_by
    behind = {str(Caller.person(owner))} if owner else set()
    return sorted({*callers, *behind, *({acted_by} if acted_by else ())})


def update_root(tx: Tx, quote: Quote, **changes: Any) -> None:
    """Change the root and count the edit, so that earlier readers can see the change."""
    changes = {"edit": quote.edit + 1, **changes}
    change = _change(tables.quote, ("id",), tuple(changes))
    change.run(tx.connection, of_tenant=tx.tenant_id, of_id=quote.id, **changes)
    recorded_state.note(tx, quote.id, "quote")


def update_version(tx: Tx, quote_id: str, number: int, **changes: Any) -> None:
    change = _change(tables.quote_version, ("quote_id", "version"), tuple(changes))
    change.run(tx.connection, of_tenant=tx.tenant_id, of_quote_id=quote_id, of_version=number, **changes)
    recorded_state.note(tx, quote_id, "quote_version", number)


def store_internal(tx: Tx, quote: Quote, draft: Draft) -> None:
    """Store what only the seller reads of the loaded version and its lines, and count the edit."""
    number = quote.version.number
    noted = {line.number: line.internal for line in quote.lines}
    update_version(tx, quote.id, number, internal=draft.internal.stored if draft.internal else None)
    for line in draft.lines:
        if line.internal != noted[line.number]:
            mine = (*_of_version(tx, tables.quote_line, quote.id, number), tables.quote_line.c.number == line.number)
            value = line.internal.stored if line.internal else None
            tx.connection.execute(sa.update(tables.quote_line).where(*mine).values(internal=value))
            recorded_state.note(tx, quote.id, "quote_line", number)
    tx.sizes.append(draft.text_length)
    update_root(tx, quote)


def choose_option_set(tx: Tx, quote: Quote, pricing: Pricing) -> Quote:
    """Select another option set of the loaded version: store its totals and line prices.

    A line that all sets share may have a different price in each.
    """
    priced, number = pricing.amounts, quote.version.number
    totals = {name: getattr(priced, name) for name in ("subtotal", "discount_total", "tax_total", "total")}
    update_version(tx, quote.id, number, option_set=pricing.option_set, **totals)
    names = ("list_amount", "regular", "net", "cost")
    change = sa.update(tables.quote_line).where(
        *_of_version(tx, tables.quote_line, quote.id, number), tables.quote_line.c.number == sa.bindparam("line_number")
    )
    change = change.values({name: sa.bindparam(f"new_{name}") for name in names})
    rows = [
        {f"new_{name}": getattr(line, name) for name in names} | {"line_number": int(line.id)} for line in priced.lines
    ]
    tx.connection.execute(change, rows)
    recorded_state.note(tx, quote.id, "quote_line", number)
    return load(tx, quote.id, version=number, with_lines=False)


def _terms(composed: Composition) -> dict[str, Any]:
    draft, priced = composed.draft, composed.priced
    return {
        "deal_id": draft.deal_id,
        "currency": draft.currency,
        "term_months": draft.term_months,
        "start_date": draft.start_date,
        "end_date": composed.end_date,
        "payment_terms": composed.payment_terms,
        "notes": draft.notes,
        "option_set": composed.sets[0].name or None,
        "requested_discount": draft.requested_discount,
        "subtotal": priced.subtotal,
        "discount_total": priced.discount_total,
        "tax_total": priced.tax_total,
        "total": priced.total,
        "tax_note": priced.tax_note,
        "warnings": JsonText(plain_json(composed.warnings)),
        "fingerprint": composed.fingerprint,
        "hashes": JsonText(plain_json(composed.hashes)),
        "valid_until": composed.valid_until,
        "expires_at": composed.expires_at,
        "lapses_at": None,
        "internal": draft.internal.stored if draft.internal else None,
        "requested_valid_until": draft.valid_until,
        "requested_amount": draft.requested_amount or None,
        "agreement": draft.agreement.stored if draft.agreement else None,
        "credit": effects.given_back(draft, priced) if draft.agreement else None,
    }


def _add_parts(tx: Tx, mine: Mapping[str, Any], composed: Composition) -> None:
    priced_lines, products, cards = composed.priced_lines, composed.products, composed.rate_cards
    components = composed.components
    rows = []
    for line in composed.draft.lines:
        priced = priced_lines[line.number]
        is_whole = isinstance(line.quantity, int)
        quantity, quantity_of = (line.quantity, 1) if is_whole else (int(line.quantity * 1000), 1000)
        # Every column of the table, in its order.
        rows.append(
            (
                *mine.values(),
                line.number,
                line.product_id,
                products[line.product_id].name,
                quantity,
                line.discount_pct,
                canonical_json(line.attributes) if line.attributes else "{}",
                line.notes,
                line.option_set,
                canonical_json(line.ramp) if line.ramp else "[]",
                priced.billing_period,
                priced.tax_category,
                priced.list_amount,
                priced.regular,
                priced.net,
                priced.cost,
                composed.selling_models[line.number],
                quantity_of,
                canonical_json(products[line.product_id].names) if products[line.product_id].names else "{}",
                canonical_json(line.internal.stored) if line.internal else None,
                canonical_json(line.special.stored) if line.special else None,
                canonical_json(cards[line.number].stored) if line.number in cards else None,
                canonical_json(components[line.number]) if line.number in components else None,
            )
        )
    _ADD_LINES.run_many(tx.connection, rows)
    quote_id, version = mine["quote_id"], str(mine["version"])
    recorded_state.note_rows(tx, quote_id, Part("quote_line", version), rows)
    tx.sizes.append(LINE_BYTES * len(rows) + composed.draft.text_length)
    for one in composed.sets:
        tx.sizes.append(len(one.request_json) + len(one.result_json))
        _ADD_PRICING.run(tx.connection, **mine, option_set=one.name, request=one.request_json, result=one.result_json)
    priced_sets = [(*mine.values(), one.name, one.request_json, one.result_json) for one in composed.sets]
    recorded_state.note_rows(tx, quote_id, Part("quote_pricing", version), priced_sets)


_COUNT = Statement(
    lambda dialect: upsert(
        dialect, tables.quote_counter, {"last": tables.quote_counter.c.last + sa.literal_column("1")}
    ).returning(tables.quote_counter.c.last)
)
_IN_ORDER_OF_QUOTE = itemgetter(*(column.name for column in tables.quote.c))
_IN_ORDER_OF_VERSION = itemgetter(*(column.name for column in tables.quote_version.c))
_ADD_QUOTE = Statement(lambda _dialect: sa.insert(tables.quote))
_ADD_VERSION = Statement(lambda _dialect: sa.insert(tables.quote_version))
_ADD_LINES = Statement(lambda _dialect: sa.insert(tables.quote_line))
_ADD_PRICING = Statement(lambda _dialect: sa.insert(tables.quote_pricing))


def _stored_version(tx: Tx, quote_id: str, number: int) -> Sequence[object]:
    """The row of a version as it is stored."""
    found = _VERSION.rows(tx.connection, **_mine(tx, quote_id, number))
    if not found:
        raise CpqError(
            Code.NOT_FOUND,
            f"Quote {quote_id} has no version {number}.",
            field="/version",
            maximum=max(statuses(tx, quote_id)),
        )
    row: Sequence[object] = found[0]
    return row


def _version(tx: Tx, stored: Sequence[object]) -> QuoteVersion:
    version = version_of(_OF_VERSION.values(tx.connection, stored))
    if version.status.awaits_approval:
        return replace(version, status=version.status_at(tx.now))
    return version


def _root(tx: Tx, quote_id: str) -> tuple[sa.ColumnElement[bool], ...]:
    return tx.own(tables.quote), tables.quote.c.id == quote_id


def _of_version(tx: Tx, table: sa.Table, quote_id: str, version: int) -> tuple[sa.ColumnElement[bool], ...]:
    return tx.own(table), table.c.quote_id == quote_id, table.c.version == version


def _mine(tx: Tx, quote_id: str, version: int) -> dict[str, Any]:
    return {"tenant": tx.tenant_id, "quote": quote_id, "number": version}


def _asked(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    mine = of_tenant(table, sa.bindparam("tenant"))
    return mine, table.c.quote_id == sa.bindparam("quote"), table.c.version == sa.bindparam("number")


def _stored(dialect: str, table: sa.Table) -> sa.Select[*tuple[Any, ...]]:
    return sa.select(*(as_stored(dialect, column) for column in table.c))


def _select_root(dialect: str) -> sa.Select[*tuple[Any, ...]]:
    quote, account = tables.quote, tables.account
    buyer = (account.c.tenant_id == quote.c.tenant_id) & (account.c.id == quote.c.account_id)
    query = _stored(dialect, quote).add_columns(account.c.name, account.c.time_zone).join(account, buyer)
    return query.where(of_tenant(quote, sa.bindparam("tenant")), quote.c.id == sa.bindparam("quote"))


def _select_sent(dialect: str) -> sa.Select[*tuple[Any, ...]]:
    table = tables.quote_version
    mine = of_tenant(table, sa.bindparam("tenant")), table.c.quote_id == sa.bindparam("quote")
    return _stored(dialect, table).where(*mine, table.c.status == sa.bindparam("status"))


def _select_pricings(_dialect: str) -> sa.Select[*tuple[Any, ...]]:
    columns = tables.quote_pricing.c
    query = sa.select(columns.option_set, columns.request, columns.result).order_by(columns.option_set)
    return query.where(*_asked(tables.quote_pricing))


@cache
def _change(table: sa.Table, key: tuple[str, ...], names: tuple[str, ...]) -> Statement:
    """A change of these columns of one row; the values of its key are called `of_` and their column."""
    mine = of_tenant(table, sa.bindparam("of_tenant")), *(table.c[name] == sa.bindparam(f"of_{name}") for name in key)
    values = {name: sa.bindparam(name, type_=table.c[name].type) for name in names}
    return Statement(lambda _dialect: sa.update(table).where(*mine).values(values))


_ROOT = Statement(_select_root)
_LOCKED_ROOT = Statement(lambda dialect: _select_root(dialect).with_for_update(of=tables.quote))
_VERSION = Statement(lambda dialect: _stored(dialect, tables.quote_version).where(*_asked(tables.quote_version)))
_SENT = Statement(_select_sent)
_LINES = Statement(
    lambda dialect: (
        _stored(dialect, tables.quote_line).where(*_asked(tables.quote_line)).order_by(tables.quote_line.c.number)
    )
)
_PRICINGS = Statement(_select_pricings)
_DROP_LINES = Statement(lambda _dialect: sa.delete(tables.quote_line).where(*_asked(tables.quote_line)))
_DROP_PRICINGS = Statement(lambda _dialect: sa.delete(tables.quote_pricing).where(*_asked(tables.quote_pricing)))
_OF_QUOTE, _OF_VERSION, _OF_LINE = map(Reader, (tables.quote, tables.quote_version, tables.quote_line))
_ROOT_COLUMNS = [field.name for field in fields(Quote) if field.name in tables.quote.c and field.name not in _READ_ROOT]
_LINE_VALUES = itemgetter(*QuoteLine._fields)
