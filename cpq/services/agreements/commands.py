"""The commands of an agreement: amend, renew, cancel. Each makes a draft quote, which lives like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, next_call
from cpq.base.money import amount, to_micro
from cpq.domain.agreements.agreement import Agreement, AgreementStatus
from cpq.domain.agreements.changes import Change, RenewalPrice, amended_lines, cancelled_lines, renewed_lines
from cpq.domain.agreements.order_kind import OrderKind
from cpq.domain.pricing.terms import whole_months
from cpq.domain.quotes.draft import AgreementChange, Draft, DraftLine
from cpq.services import orders, quotes
from cpq.services.agreements import views
from cpq.services.agreements.views import ChangeView
from cpq.services.agreements.ways_out import explained, fields_of

TERM_MONTHS = 12
"""Of a renewal whose old term is not a number of months."""


def amend(
    tx: Tx,
    agreement_id: str,
    effective: date,
    changes: Sequence[Change],
    *,
    notes: str | None = None,
    idempotency_key: str | None = None,
) -> ChangeView:
    """A draft with the lines that change: price after less price before, over what is left of the term."""
    with explained(agreement_id, effective) as fields:
        agreement = orders.load_agreement(tx, agreement_id)
        _require_running(agreement, effective)
        lines = amended_lines(agreement, effective, changes)
        fields += fields_of(lines, changes)
        if not lines:
            return views.no_change(agreement, OrderKind.AMENDMENT, effective)
        given = {
            "effective_date": effective.isoformat(),
            "changes": [change.given for change in changes],
            **({"notes": notes} if notes else {}),
        }
        return _quote(tx, OrderKind.AMENDMENT, [agreement], effective, lines, given, notes, idempotency_key)


def renew(
    tx: Tx,
    agreement_id: str,
    *,
    start: date | None,
    term_months: int | None,
    uplift_percent: int | None,
    price: RenewalPrice,
    also: Sequence[str],
    notes: str | None = None,
    idempotency_key: str | None = None,
) -> ChangeView:
    """A draft for the next term of an agreement, or of several that go on as one.

    It starts the day after the first of them ends, or earlier: what is left of the old terms is given back.
    """
    with explained(agreement_id, None):
        found = _renewable(tx, [agreement_id, *also])
        first = found[0]
        ends = [one.end for one in found if one.end]
        begins = start or min(ends)
        for one, end in zip(found, ends, strict=True):
            if not one.starts_on <= begins <= end:
                raise bad_field(
                    "/start_date",
                    f"A renewal of {one.id} starts on {end} at the latest, and not before {one.starts_on}.",
                    minimum=one.starts_on.isoformat(),
                    maximum=end.isoformat(),
                    hint="Leave start_date out: then it starts the day after the first agreement ends.",
                )
        uplift = to_micro(tx.policies.terms.renewal_uplift_percent) if uplift_percent is None else uplift_percent
        if price is not RenewalPrice.SAME:
            if uplift_percent:
                message = f"An uplift raises the last prices, and price is {price.value}: today's prices."
                raise bad_field("/uplift_pct", message, hint="Leave uplift_pct out, or renew at price `same`.")
            uplift = 0
        months = term_months or _term_of(first)
        lines = renewed_lines(found, begins, months, price=price, uplift=uplift)
        if not lines:
            raise CpqError(
                Code.CONFLICT,
                f"Agreement {first.id} has no line with a term on {begins}, so there is nothing to renew.",
                field="/agreement_id",
                next_call=next_call("agreement_get", agreement_id=first.id),
            )
        given = {
            "price": price.value,
            "term_months": months,
            "start_date": begins.isoformat(),
            "uplift_pct": amount(uplift),
            "also": list(also),
            **({"notes": notes} if notes else {}),
        }
        return _quote(tx, OrderKind.RENEWAL, found, begins, lines, given, notes, idempotency_key, uplift=uplift)


def cancel(
    tx: Tx,
    agreement_id: str,
    effective: date,
    *,
    lines: Sequence[str] | None,
    reason: str,
    idempotency_key: str | None = None,
) -> ChangeView:
    """A draft that ends an agreement or some of its lines; what is given back follows the terms of their prices."""
    with explained(agreement_id, effective):
        agreement = orders.load_agreement(tx, agreement_id)
        _require_running(agreement, effective)
        ended = cancelled_lines(agreement, effective, lines)
        if not ended:
            return views.no_change(agreement, OrderKind.CANCELLATION, effective)
        given = {"effective_date": effective.isoformat(), "reason": reason, **({"lines": list(lines)} if lines else {})}
        return _quote(tx, OrderKind.CANCELLATION, [agreement], effective, ended, given, reason, idempotency_key)


def _quote(
    tx: Tx,
    kind: OrderKind,
    agreements: Sequence[Agreement],
    effective: date,
    lines: Sequence[DraftLine],
    arguments: Mapping[str, Any],
    notes: str | None,
    idempotency_key: str | None,
    *,
    uplift: int = 0,
) -> ChangeView:
    first, *others = agreements
    end = first.end
    change = AgreementChange(
        kind.value,
        first.id,
        first.sequence,
        effective,
        tuple((one.id, one.sequence) for one in others),
        {"agreement_id": first.id, **arguments},
        end - timedelta(days=1) if end else None,
        uplift,
    )
    draft = Draft(
        first.account_id,
        first.currency,
        tuple(lines),
        start_date=effective,
        notes=notes,
        agreement=change,
    )
    made = quotes.create(tx, draft, idempotency_key=idempotency_key)
    return views.change_view(tx, made["quote_id"], first)


def _require_running(agreement: Agreement, effective: date) -> None:
    """CONFLICT with the way out when the agreement is over on the day, or another goes on instead."""
    if agreement.renewed_into is not None:
        raise CpqError(
            Code.CONFLICT,
            f"Agreement {agreement.id} was renewed into {agreement.renewed_into}, which goes on instead.",
            field="/agreement_id",
            next_call=next_call("agreement_get", agreement_id=agreement.renewed_into),
        )
    status = agreement.status(effective)
    if status in (AgreementStatus.ENDED, AgreementStatus.CANCELLED):
        end = agreement.end
        raise CpqError(
            Code.CONFLICT,
            f"Agreement {agreement.id} is {status} on {effective}.",
            field="/effective_date",
            status=status,
            maximum=(end - timedelta(days=1)).isoformat() if end else None,
            hint="Give a day inside its term, or quote a new sale.",
            next_call=next_call("agreement_get", agreement_id=agreement.id),
        )
    if effective < agreement.starts_on:
        raise bad_field(
            "/effective_date",
            f"Agreement {agreement.id} starts on {agreement.starts_on}.",
            minimum=agreement.starts_on.isoformat(),
            next_call=next_call("agreement_get", agreement_id=agreement.id, as_of=agreement.starts_on.isoformat()),
        )


def _renewable(tx: Tx, ids: Sequence[str]) -> list[Agreement]:
    """Several agreements that can go on as one: of one account and currency, each with an end."""
    if len(set(ids)) != len(ids):
        raise bad_field("/also", "An agreement is named twice.")
    found = [orders.load_agreement(tx, id_) for id_ in ids]
    for one in found:
        at = "/agreement_id" if one is found[0] else "/also"
        if (one.account_id, one.currency) != (found[0].account_id, found[0].currency):
            message = "Agreements that are renewed into one are of the same account and currency."
            raise CpqError(Code.CONFLICT, message, field=at)
        if one.renewed_into is not None or one.is_cancelled:
            what = f"was renewed into {one.renewed_into}" if one.renewed_into else "was cancelled"
            raise CpqError(
                Code.CONFLICT,
                f"Agreement {one.id} {what}, so it is not renewed.",
                field=at,
                next_call=next_call("agreement_get", agreement_id=one.renewed_into or one.id),
            )
        if one.end is None:
            raise CpqError(
                Code.CONFLICT,
                f"Agreement {one.id} has no end, so there is nothing to renew.",
                field=at,
                hint="Change its prices with agreement_amend.",
                next_call=next_call("agreement_get", agreement_id=one.id),
            )
    return found


def _term_of(agreement: Agreement) -> int:
    """As long as the term that ends: the months of its latest line."""
    phases = [phase for line in agreement.lines for phase in line.phases if phase.calendar and phase.end]
    last = max(phases, key=lambda phase: (phase.end or date.min, phase.start))
    assert last.end is not None
    line = next(line for line in agreement.lines if last in line.phases)
    begin = max((phase.start for phase in line.phases if phase.sold.basis == last.sold.basis), default=last.start)
    first = min(phase.start for phase in line.phases if phase.end == last.end)
    return whole_months(min(begin, first), last.end) or TERM_MONTHS
