"""Relationships between the products that an account owns, as they are after a change of an agreement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.domain import configuration
from cpq.domain.agreements.agreement import Agreement
from cpq.domain.configuration.relations import QuotedProduct, Relation
from cpq.domain.quotes.draft import AgreementChange, Draft
from cpq.services import orders
from cpq.services.catalog import repository
from cpq.storage.schema import tables

_BINDING = {Relation.COMPONENT, Relation.REQUIRES, Relation.EXCLUDES}


def broken_by_change(tx: Tx, draft: Draft) -> tuple[str, ...]:
    """Requirements and exclusions that a change violates and that held before; any agreement of the account counts."""
    change = draft.agreement
    if change is None or all(line.agreed and line.agreed.action == "renew" for line in draft.lines):
        return ()
    changed = [orders.load_agreement(tx, id_) for id_ in change.bases]
    found = _broken(tx, draft, changed, ())
    if found:
        others = [orders.load_agreement(tx, id_) for id_ in _other_agreements(tx, draft.account_id, change)]
        found = _broken(tx, draft, changed, others)
    return found


def _broken(tx: Tx, draft: Draft, changed: Sequence[Agreement], others: Sequence[Agreement]) -> tuple[str, ...]:
    change = draft.agreement
    assert change is not None
    ended = {line.agreed.line_id for line in draft.lines if line.agreed}
    kept = [*_owned(changed, change, ended), *_owned(others, change, ())]
    sold = {line.agreed.line_id or line.number: line for line in reversed(draft.lines) if line.agreed}
    new = [
        QuotedProduct(line.product_id, line.quantity)
        for line in sold.values()
        if line.agreed and line.agreed.action != "remove"
    ]
    before = [*_owned(changed, change, ()), *_owned(others, change, ())]
    ids = {one.product_id for one in (*before, *new)}
    facts = repository.gather(tx, ids, account_id=draft.account_id, currency=draft.currency)
    relations = [
        configuration.ProductRelation(product.id, Relation(r.kind), r.product_id, r.quantity)
        for product in facts.products.values()
        for r in product.relations
        if r.kind in _BINDING
    ]
    known = set(_messages(before, relations))
    return tuple(message for message in _messages([*kept, *new], relations) if message not in known)


def _messages(owned: Sequence[QuotedProduct], relations: Iterable[configuration.ProductRelation]) -> Iterator[str]:
    for problem in configuration.check_relations(owned, relations).problems:
        yield problem.message.replace(" in the quote.", ", which the account would not own.").replace(
            " in one quote.", " for one account."
        )


def _owned(
    agreements: Sequence[Agreement], change: AgreementChange, but: Iterable[str | None]
) -> Iterator[QuotedProduct]:
    """What is owned on the day of the change, without some lines."""
    left_out = set(but)
    for agreement in agreements:
        for line, phase in agreement.on(change.effective):
            if line.id not in left_out:
                yield QuotedProduct(phase.sold.product_id, phase.sold.quantity)


def _other_agreements(tx: Tx, account_id: str, change: AgreementChange) -> list[str]:
    table = tables.agreement
    mine = tx.own(table), table.c.account_id == account_id, table.c.id.not_in(sorted(change.bases))
    is_over = table.c.ends_on.is_not(None) & (table.c.ends_on < change.effective)
    return list(tx.connection.scalars(sa.select(table.c.id).where(*mine, ~is_over).order_by(table.c.id)))
