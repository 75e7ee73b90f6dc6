"""Relationships between the products that an account owns, as they are after a change of an agreement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.errors import CpqError, bad_field
from cpq.domain import configuration
from cpq.domain.agreements.agreement import Agreement
from cpq.domain.configuration.relations import QuotedProduct, Relation
from cpq.domain.pricing.selling_models import is_usage
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


def counted_twice(tx: Tx, draft: Draft, selling_models: Mapping[int, str]) -> Iterator[CpqError]:
    """Use that two lines would count on the same days after a change, each with its included units.

    `selling_models` are of the lines of the draft, by their numbers.
    """
    change = draft.agreement
    if change is None or not any(map(is_usage, selling_models.values())):
        return
    ended = {line.agreed.line_id for line in draft.lines if line.agreed}
    counted = [
        _Counted(line.id, phase.sold.product_id, phase.sold.selling_model, phase.start, phase.stop or date.max)
        for id_ in change.bases
        for line in orders.load_agreement(tx, id_).lines
        if line.id not in ended
        for phase in line.from_(change.effective)
    ]
    for index, line in enumerate(draft.lines):
        own, agreed, model = line.special, line.agreed, selling_models.get(line.number, "")
        if own is None or agreed is None or agreed.action == "remove" or not is_usage(model):
            continue
        stop = own.end_date + timedelta(days=1) if own.end_date else date.max
        id_ = agreed.line_id or str(line.number)
        new = _Counted(id_, line.product_id, model, own.start_date or change.effective, stop)
        if twice := next(filter(new.counts_as, counted), None):
            yield bad_field(
                f"/line_items/{index}/product_id",
                f"The use of {line.product_id} would be counted on the line {twice.line_id} at the same time.",
                hint="Change what that line commits to, or end it first.",
            )
        counted.append(new)


class _Counted(NamedTuple):
    """The days on which a line counts the use of a product."""

    line_id: str
    product_id: str
    selling_model: str
    start: date
    stop: date

    def counts_as(self, other: _Counted) -> bool:
        is_same = (self.product_id, self.selling_model) == (other.product_id, other.selling_model)
        return is_same and self.line_id != other.line_id and self.start < other.stop and other.start < self.stop


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
