"""Which quote an id or a number names; a module of its own, so that a list of ids loads no pricing."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.domain.quotes.quote_number import is_number
from cpq.storage.schema import tables


def id_of(tx: Tx, given: str) -> str:
    """The id of the quote that has this id or this number; as given when no quote has it.

    The one place that reads numbers: whatever takes the id of a quote takes its number. An id that looks like a
    number comes first.
    """
    if not is_number(given):
        return given
    columns = tables.quote.c
    query = sa.select(columns.id).where(tx.own(tables.quote), (columns.id == given) | (columns.number == given))
    found = list(tx.connection.scalars(query))
    return given if given in found or not found else found[0]


def numbers_of(tx: Tx, quote_ids: Collection[str]) -> dict[str, str]:
    """The numbers of the quotes among these ids."""
    query = sa.select(tables.quote.c.id, tables.quote.c.number)
    return dict(tx.connection.execute(query.where(tx.own_among(tables.quote.c.id, sorted(quote_ids)))).all())
