"""Makes the order of an accepted quote, and moves the agreements that it begins or changes, in the same transaction."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import date, datetime
from typing import NamedTuple

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, next_call
from cpq.domain.agreements.acceptance import Acceptance
from cpq.domain.agreements.agreement import Agreement, fold
from cpq.domain.agreements.order import Order
from cpq.domain.agreements.order_kind import OrderKind
from cpq.domain.quotes.draft import AgreementChange
from cpq.domain.quotes.lifecycle import local_day
from cpq.domain.quotes.quote import Pricing, Quote
from cpq.services.orders import events, repository


class Signature(NamedTuple):
    """Who accepted, when, and what proves it."""

    at: datetime
    by: str
    evidence: str | None


def record_order(tx: Tx, quote: Quote, pricing: Pricing, *, evidence: str | None) -> Order:
    """The order of the loaded version, which was just accepted, with the price of the accepted option set."""
    order, agreements = _recorded(tx, quote, pricing, Signature(tx.now, tx.caller, evidence))
    events.publish(tx, order, agreements)
    return order


def record_past_order(tx: Tx, quote: Quote, pricing: Pricing, signature: Signature) -> Order:
    """The order of a version that was accepted before orders existed. Nothing is published: the sale is no news."""
    return _recorded(tx, quote, pricing, signature)[0]


def _recorded(tx: Tx, quote: Quote, pricing: Pricing, signature: Signature) -> tuple[Order, Collection[Agreement]]:
    day = local_day(signature.at, quote.time_zone)
    change = quote.version.agreement
    accepted = _accepted(tx, quote, pricing, day)
    agreements = _locked(tx, change) if change else {}
    order = _order(tx, quote, pricing, day, signature)
    if change is None:
        order = replace(order, lines=tuple(accepted.lines(order.id, order.agreement_id)))
        agreement = fold(order.agreement_id, [order])
        repository.store_agreement(tx, agreement, is_new=True)
        repository.add(tx, order, [(agreement.id, 1)])
        agreements = {agreement.id: agreement}
    else:
        lines = tuple(accepted.changed_lines(order.id, change, agreements))
        order = replace(order, lines=lines, sequence=agreements[change.agreement_id].sequence + 1)
        repository.add(tx, order, [(id_, one.sequence + 1) for id_, one in agreements.items()])
        agreements = {id_: _moved(one, order) for id_, one in agreements.items()}
        for agreement in agreements.values():
            repository.store_agreement(tx, agreement, is_new=False)
    assert sum(line.net(order.minor_unit) for line in order.lines) == order.net, "an order is what was accepted"
    return order, agreements.values()


def _accepted(tx: Tx, quote: Quote, pricing: Pricing, day: date) -> Acceptance:
    priced = pricing.result
    inside = {int(line.id) for line in priced.lines}
    draft = quote.as_draft()
    draft = replace(draft, lines=tuple(line for line in draft.lines if line.number in inside))
    terms = tx.policies.terms
    return Acceptance(
        (quote.id, quote.version.number),
        draft,
        {line.number: line.product_name for line in quote.lines},
        pricing.request,
        priced,
        day=day,
        part_periods=terms.agreement_part_periods.value,
        billing_day=terms.billing_day,
    )


def _moved(agreement: Agreement, order: Order) -> Agreement:
    return fold(agreement.id, [*agreement.orders, replace(order, sequence=agreement.sequence + 1)])


def _locked(tx: Tx, change: AgreementChange) -> dict[str, Agreement]:
    """The agreements as the quote knew them; CONFLICT with the call that makes it again when one has moved."""
    _require_same(tx, change, repository.lock(tx, change.bases))
    return {id_: repository.load_agreement(tx, id_) for id_ in change.bases}


def require_base(tx: Tx, change: AgreementChange) -> None:
    """CONFLICT with the call that makes the quote again, once an agreement that it changes has moved."""
    _require_same(tx, change, repository.sequences(tx, change.bases))


def _require_same(tx: Tx, change: AgreementChange, found: dict[str, int]) -> None:
    moved = {id_: found.get(id_) for id_, sequence in change.bases.items() if found.get(id_) != sequence}
    if moved:
        raise _has_moved(tx, change, moved)


def _has_moved(tx: Tx, change: AgreementChange, moved: dict[str, int | None]) -> CpqError:
    """What happened to the agreement since the quote was made, and the call that makes the same change again."""
    id_, sequence = next(iter(moved.items()))
    since = [order for order in repository.orders_of(tx, id_) if order.sequence > change.bases[id_]]
    tool = {"amendment": "agreement_amend", "renewal": "agreement_renew"}.get(change.kind, "agreement_cancel")
    return CpqError(
        Code.CONFLICT,
        f"Agreement {id_} has changed since this {change.kind} was made from it"
        + "".join(f"; order {order.number}, {order.kind}, of {order.effective}" for order in since[:3])
        + ". Nothing was changed.",
        field="/quote_id",
        agreement_id=id_,
        sequence=sequence,
        expected_sequence=change.bases[id_],
        orders_since=[
            {
                "order_id": order.id,
                "number": order.number,
                "kind": order.kind,
                "lines": [line.id for line in order.lines if line.agreement_id == id_][:20],
            }
            for order in since[:20]
        ],
        hint="The next call makes the same change again from what the customer owns now; then cancel this quote.",
        next_call=next_call(tool, **change.arguments),
    )


def _order(tx: Tx, quote: Quote, pricing: Pricing, day: date, signature: Signature) -> Order:
    version, change = quote.version, quote.version.agreement
    priced = pricing.amounts
    return Order(
        id=tx.new_id("O-"),
        number=repository.next_number(tx, signature.at.year),
        kind=OrderKind(change.kind) if change else OrderKind.NEW,
        account_id=quote.account_id,
        agreement_id=change.agreement_id if change else tx.new_id("A-"),
        sequence=1,
        quote_id=quote.id,
        quote_number=quote.number,
        quote_version=version.number,
        currency=version.currency,
        rounding=pricing.request.rounding,
        effective=change.effective if change else version.start_date or day,
        net=priced.net,
        tax_total=priced.tax_total,
        total=priced.total,
        fingerprint=version.fingerprint,
        accepted_at=signature.at,
        accepted_by=signature.by,
        evidence=signature.evidence,
        lines=(),
    )
