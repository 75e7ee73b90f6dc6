"""The names of all customers, which a text for one of them must not have."""

from __future__ import annotations

import sqlalchemy as sa

from cpq.app.corpus_changes import PAST_QUOTES, generation
from cpq.app.transaction import Tx
from cpq.domain.quotes.customer_names import Names
from cpq.services.catalog.repository import revision_of
from cpq.storage.schema import tables


def customer_names(tx: Tx) -> Names:
    """The names of all customers, of accounts and of past quotes; read again when one of them has changed."""
    newest = (revision_of(tx), generation(tx, PAST_QUOTES))
    known: tuple[object, frozenset[str], Names] | None = tx.kept.get((tx.tenant_id, "customer_names"))
    if known is not None and known[0] == newest:
        return known[2]
    found = frozenset(
        name
        for table, column in ((tables.account, "name"), (tables.past_quote, "customer"))
        for name in tx.connection.scalars(sa.select(table.c[column]).where(tx.own(table)).distinct())
    )
    if known is not None and known[1] <= found:
        names = known[2]
        names.add(found - known[1])  # To read a name takes a tenth of a millisecond.
    else:
        names = Names(found)
    tx.kept[tx.tenant_id, "customer_names"] = (newest, found, names)
    return names
