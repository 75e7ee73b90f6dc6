"""The names of all customers, which a text for one of them must not have."""

from __future__ import annotations

import threading

import sqlalchemy as sa

from cpq.app.corpus_changes import PAST_QUOTES, generation
from cpq.app.transaction import Tx, UnpreparedError
from cpq.domain.quotes.customer_names import Names
from cpq.services.catalog.repository import revision_of
from cpq.storage.schema import tables
from cpq.storage.statements import Statement
from cpq.storage.tenants import of_tenant

AT_ONCE_MAX = 500
"""New names that a call reads itself, in a twentieth of a second. More of them are read before its transaction."""

_Seen = tuple[object, int]
"""The revision of the catalogue, and the newest change of the past quotes."""

_Known = tuple[_Seen, frozenset[str], Names]
_preparing = threading.Lock()


def customer_names(tx: Tx) -> Names:
    """The names of all customers, of accounts and of past quotes; read again when one of them has changed."""
    newest = _newest(tx)
    known: _Known | None = tx.kept.get((tx.tenant_id, "customer_names"))
    if known is not None and (known[0] == newest or _is_as_seen(tx, known[0], newest)):
        tx.kept[tx.tenant_id, "customer_names"] = (newest, *known[1:])
        return known[2]
    found = _stored(tx)
    if len(found - known[1] if known else found) > AT_ONCE_MAX:
        raise UnpreparedError(_prepare)
    return _kept(tx, newest, found)


def _prepare(tx: Tx) -> None:
    with _preparing:  # Calls at the same time need the names only once.
        newest = _newest(tx)
        known: _Known | None = tx.kept.get((tx.tenant_id, "customer_names"))
        if known is None or known[0] != newest:
            _kept(tx, newest, _stored(tx))


def _kept(tx: Tx, newest: _Seen, found: frozenset[str]) -> Names:
    known: _Known | None = tx.kept.get((tx.tenant_id, "customer_names"))
    if known is not None and known[1] <= found:
        names = known[2]
        names.add(found - known[1])  # To read a name takes a tenth of a millisecond.
    else:
        names = Names(found)
    tx.kept[tx.tenant_id, "customer_names"] = (newest, found, names)
    return names


def _newest(tx: Tx) -> _Seen:
    return revision_of(tx), generation(tx, PAST_QUOTES)


def _is_as_seen(tx: Tx, seen: _Seen, newest: _Seen) -> bool:
    """Whether only quotes of our own were sent since: their customers are accounts, which have a revision."""
    if seen[0] != newest[0] or seen[1] > newest[1]:
        return False
    return not _HISTORY_SINCE.rows(tx.connection, tenant=tx.tenant_id, corpus=PAST_QUOTES, seen=seen[1])


def _stored(tx: Tx) -> frozenset[str]:
    return frozenset(
        name
        for table, column in ((tables.account, "name"), (tables.past_quote, "customer"))
        for name in tx.connection.scalars(sa.select(table.c[column]).where(tx.own(table)).distinct())
    )


def _history_since(_dialect: str) -> sa.Select[*tuple[int]]:
    change, quote = tables.search_change, tables.quote
    sent = sa.exists().where(of_tenant(quote, sa.bindparam("tenant")), quote.c.id == change.c.document_id)
    changed = (change.c.corpus == sa.bindparam("corpus")) & (change.c.generation > sa.bindparam("seen"))
    return (
        sa.select(change.c.generation)
        .where(of_tenant(change, sa.bindparam("tenant")), changed, ~sent)
        .limit(sa.literal_column("1"))
    )


_HISTORY_SINCE = Statement(_history_since)
