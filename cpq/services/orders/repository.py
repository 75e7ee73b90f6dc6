"""Repository of orders and agreements: orders are written once, agreements are folded from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

import sqlalchemy as sa

from cpq.app import recorded_state
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, next_call
from cpq.base.text import canonical_json, digest
from cpq.domain.agreements import order as orders
from cpq.domain.agreements.agreement import Agreement, fold
from cpq.domain.agreements.order import Order
from cpq.domain.agreements.order_kind import OrderKind
from cpq.domain.quotes.lifecycle import QuoteStatus
from cpq.storage.schema import tables
from cpq.storage.statements import AnyRow, Statement
from cpq.storage.upsert import upsert


def next_number(tx: Tx, year: int) -> str:
    """The next number of the year: `SO-2026-000001`. On PostgreSQL another writer waits here."""
    ((place,),) = _COUNT.rows(tx.connection, tenant_id=tx.tenant_id, year=year, last=1)
    return f"SO-{year:04}-{place:06}"


def add(tx: Tx, order: Order, sequences: Iterable[tuple[str, int]]) -> None:
    """Store an order with its place in each of its agreements, whose rows exist."""
    tx.connection.execute(
        sa.insert(tables.sales_order).values(
            tenant_id=tx.tenant_id,
            id=order.id,
            number=order.number,
            kind=order.kind.value,
            account_id=order.account_id,
            agreement_id=order.agreement_id,
            quote_id=order.quote_id,
            version=order.quote_version,
            currency=order.currency,
            rounding=order.rounding,
            effective_on=order.effective,
            net=order.net,
            tax_total=order.tax_total,
            total=order.total,
            fingerprint=order.fingerprint,
            accepted_at=order.accepted_at,
            accepted_by=order.accepted_by,
            evidence=order.evidence,
            lines=orders.dump(order.lines),
        )
    )
    recorded_state.note(tx, order.quote_id, "sales_order", order.id)
    rows = [
        {"tenant_id": tx.tenant_id, "agreement_id": id_, "sequence": sequence, "order_id": order.id}
        for id_, sequence in sequences
    ]
    tx.connection.execute(sa.insert(tables.agreement_order), rows)


def store_agreement(tx: Tx, agreement: Agreement, *, is_new: bool) -> None:
    """Write what lists and checks read of an agreement; all of it follows from its orders."""
    row = cached(agreement)
    if is_new:
        tx.connection.execute(
            sa.insert(tables.agreement).values(
                tenant_id=tx.tenant_id,
                id=agreement.id,
                account_id=agreement.account_id,
                currency=agreement.currency,
                created_at=tx.now,
                **row,
            )
        )
    else:
        tx.connection.execute(sa.update(tables.agreement).where(*_mine(tx, agreement.id)).values(**row))


def cached(agreement: Agreement) -> dict[str, object]:
    """The columns of an agreement that follow from its orders."""
    end, effective = agreement.end, agreement.orders[-1].effective
    return {
        "sequence": agreement.sequence,
        "starts_on": agreement.starts_on,
        "ends_on": end - timedelta(days=1) if end else None,
        "cancelled_on": effective if agreement.is_cancelled else None,
        "yearly": agreement.yearly(max(effective, agreement.starts_on)),
        "state_hash": state_hash(agreement),
        "renewed_into": agreement.renewed_into,
    }


def state_hash(agreement: Agreement) -> str:
    """Hash of everything that is owned on any day."""
    lines = [[line.id, list(line.source), orders.dump_phases(line.phases)] for line in agreement.lines]
    return digest([canonical_json(lines)])


def sequences(tx: Tx, agreement_ids: Iterable[str]) -> dict[str, int]:
    """The number of orders that each agreement has."""
    return dict(tx.connection.execute(_sequences(tx, agreement_ids)).all())


def lock(tx: Tx, agreement_ids: Iterable[str]) -> dict[str, int]:
    """Let one order at a time change these agreements; returns the number of orders that each has."""
    in_order = _sequences(tx, agreement_ids).order_by(tables.agreement.c.id)
    return dict(tx.connection.execute(in_order.with_for_update()).all())


def _sequences(tx: Tx, agreement_ids: Iterable[str]) -> sa.Select[*tuple[str, int]]:
    agreements = tables.agreement.c
    return sa.select(agreements.id, agreements.sequence).where(tx.own_among(agreements.id, sorted(agreement_ids)))


def load_agreement(tx: Tx, agreement_id: str) -> Agreement:
    """An agreement folded from its orders; NOT_FOUND when nobody has made it."""
    found = orders_of(tx, agreement_id)
    if not found:
        raise CpqError(
            Code.NOT_FOUND,
            f"There is no agreement {agreement_id!r}.",
            field="/agreement_id",
            hint=waiting_note(tx) or "An accepted quote makes an order, and its order an agreement.",
            next_call=next_call("agreement_list"),
        )
    return fold(agreement_id, found)


def orders_of(tx: Tx, agreement_id: str) -> list[Order]:
    """The orders of an agreement in their sequence."""
    order, place = tables.sales_order, tables.agreement_order
    together = (place.c.tenant_id == order.c.tenant_id) & (place.c.order_id == order.c.id)
    query = _ORDER.add_columns(place.c.sequence).join(place, together)
    query = query.where(tx.own(order), tx.own(place), place.c.agreement_id == agreement_id)
    return [_order(row, row.sequence) for row in tx.connection.execute(query.order_by(place.c.sequence))]


def load_order(tx: Tx, order_id: str) -> Order:
    """An order by its id or number; NOT_FOUND when nobody has made it."""
    order = tables.sales_order
    named = (order.c.id == order_id) | (order.c.number == order_id)
    row = tx.connection.execute(_ORDER.where(tx.own(order), named)).one_or_none()
    if row is None:
        raise CpqError(
            Code.NOT_FOUND, f"There is no order {order_id!r}.", field="/order_id", next_call=next_call("order_list")
        )
    return _order(row, _sequence(tx, row.agreement_id, row.id))


def of_quote(tx: Tx, quote_id: str) -> str | None:
    """The id of the order that a quote became, if it was accepted."""
    order = tables.sales_order
    return tx.connection.scalar(sa.select(order.c.id).where(tx.own(order), order.c.quote_id == quote_id))


def waiting(tx: Tx, account_id: str | None = None) -> int:
    """How many quotes were accepted before orders existed and have none yet."""
    quote, order = tables.quote, tables.sales_order
    accepted = sa.select(sa.func.count()).where(tx.own(quote), quote.c.status == QuoteStatus.ACCEPTED)
    made = sa.select(sa.func.count()).where(tx.own(order))
    counted, ordered = tx.connection.execute(
        sa.select(accepted.scalar_subquery(), made.scalar_subquery())
    ).one()  # Two counts of an index: a list must not search all quotes for the few that wait.
    if account_id is None or counted == ordered:
        return int(counted - ordered)
    theirs = accepted.where(quote.c.account_id == account_id, is_waiting(tx))
    return tx.connection.scalar(theirs) or 0


def is_waiting(tx: Tx) -> sa.ColumnElement[bool]:
    """Quotes that were accepted and have no order."""
    quote, order = tables.quote, tables.sales_order
    has_order = sa.exists().where(tx.own(order), order.c.quote_id == quote.c.id).correlate(quote)
    return (quote.c.status == QuoteStatus.ACCEPTED) & ~has_order


def waiting_note(tx: Tx, account_id: str | None = None) -> str | None:
    """What to say where something may be missing because its order has not been made yet."""
    count = waiting(tx, account_id)
    if not count:
        return None
    few = "1 accepted quote has" if count == 1 else f"{count:,} accepted quotes have"
    return f"{few} no order yet, so what they sold is missing here; the operator runs `cpq agreements build`."


def _sequence(tx: Tx, agreement_id: str, order_id: str) -> int:
    place = tables.agreement_order
    mine = tx.own(place), place.c.agreement_id == agreement_id, place.c.order_id == order_id
    return int(tx.connection.execute(sa.select(place.c.sequence).where(*mine)).scalar_one())


def _order(row: AnyRow, sequence: int) -> Order:
    return Order(
        id=row.id,
        number=row.number,
        kind=OrderKind(row.kind),
        account_id=row.account_id,
        agreement_id=row.agreement_id,
        sequence=sequence,
        quote_id=row.quote_id,
        quote_number=row.quote_number,
        quote_version=row.version,
        currency=row.currency,
        rounding=row.rounding,
        effective=row.effective_on,
        net=row.net,
        tax_total=row.tax_total,
        total=row.total,
        fingerprint=row.fingerprint,
        accepted_at=row.accepted_at,
        accepted_by=row.accepted_by,
        evidence=row.evidence,
        lines=orders.load(row.lines),
    )


def _mine(tx: Tx, agreement_id: str) -> Sequence[sa.ColumnElement[bool]]:
    return tx.own(tables.agreement), tables.agreement.c.id == agreement_id


_QUOTE = (tables.quote.c.tenant_id == tables.sales_order.c.tenant_id) & (
    tables.quote.c.id == tables.sales_order.c.quote_id
)
_ORDER = sa.select(tables.sales_order, tables.quote.c.number.label("quote_number")).join(tables.quote, _QUOTE)
_COUNT = Statement(
    lambda dialect: upsert(
        dialect, tables.order_counter, {"last": tables.order_counter.c.last + sa.literal_column("1")}
    ).returning(tables.order_counter.c.last)
)
