"""A small world of agreements without a database: sales, changes and their orders, by the product's own rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime

from cpq.base.rounding import MinorUnit
from cpq.domain import pricing
from cpq.domain.agreements.acceptance import Acceptance
from cpq.domain.agreements.agreement import Agreement, fold
from cpq.domain.agreements.kept_prices import with_kept_prices
from cpq.domain.agreements.order import Order
from cpq.domain.agreements.order_kind import OrderKind
from cpq.domain.pricing.request import EDITION, Line, PriceRow, Product, Request
from cpq.domain.pricing.result import PricedQuote
from cpq.domain.quotes.draft import AgreementChange, Draft, DraftLine

BOOK = "book"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class World:
    """One account's agreements. `rows` are the prices of its catalogue, by product."""

    rows: dict[str, tuple[PriceRow, ...]]
    currency: str = "USD"
    mode: str = "actual_days"
    billing_day: int = 0
    requests: dict[tuple[str, int], Request] = field(default_factory=dict, repr=False)
    orders: dict[str, list[Order]] = field(default_factory=dict, repr=False)

    @property
    def minor_unit(self) -> MinorUnit:
        return MinorUnit(self.currency, "half_up")

    def sell(
        self,
        lines: Sequence[DraftLine],
        start: date,
        months: int | None,
        *,
        requested_discount: int = 0,
        requested_amount: int = 0,
        part_periods: str | None = None,
        end: date | None = None,
    ) -> Agreement:
        """A first order; returns its agreement."""
        id_ = f"A-{len(self.orders) + 1}"
        draft = Draft(
            "acct",
            self.currency,
            tuple(lines),
            start_date=start,
            term_months=months,
            requested_discount=requested_discount,
            requested_amount=requested_amount,
            end_date=end,
        )
        request = self._request(draft, part_periods or self.mode)
        priced, accepted = self._accepted(draft, request, start)
        order = self._order(OrderKind.NEW, id_, draft, priced, start)
        self.orders[id_] = [replace(order, lines=tuple(accepted.lines(order.id, id_)))]
        return self.agreement(id_)

    def change(
        self,
        kind: OrderKind,
        agreement: Agreement,
        effective: date,
        lines: Sequence[DraftLine],
        others: Sequence[Agreement] = (),
    ) -> int:
        """Accept a change; returns its net in millionths."""
        change = AgreementChange(
            kind.value,
            agreement.id,
            agreement.sequence,
            effective,
            also=tuple((other.id, other.sequence) for other in others),
        )
        draft = Draft("acct", self.currency, tuple(lines), start_date=effective, agreement=change)
        request = with_kept_prices(
            draft, self._request(draft, self.mode), BOOK, lambda id_, version: self.requests[id_, version]
        )
        priced, accepted = self._accepted(draft, request, effective)
        known = {one.id: one for one in (agreement, *others)}
        order = self._order(kind, agreement.id, draft, priced, effective)
        order = replace(order, lines=tuple(accepted.changed_lines(order.id, change, known)))
        for one in known.values():
            self.orders[one.id].append(replace(order, sequence=one.sequence + 1))
        assert sum(line.net(order.minor_unit) for line in order.lines) == priced.net
        return priced.net

    def copy(self) -> World:
        """The same world, which then goes its own way."""
        return replace(self, requests=dict(self.requests), orders={id_: list(one) for id_, one in self.orders.items()})

    def agreement(self, id_: str) -> Agreement:
        return fold(id_, self.orders[id_])

    def _accepted(self, draft: Draft, request: Request, day: date) -> tuple[PricedQuote, Acceptance]:
        version = (f"Q-{len(self.requests) + 1}", 1)
        self.requests[version] = request
        priced = pricing.price(request)
        names = {line.number: line.product_id for line in draft.lines}
        accepted = Acceptance(
            version, draft, names, request, priced, day=day, part_periods="actual_days", billing_day=self.billing_day
        )
        return priced, accepted

    def _request(self, draft: Draft, part_periods: str) -> Request:
        lines = tuple(
            Line(
                str(line.number),
                line.product_id,
                line.quantity,
                line.discount_pct,
                ramp=line.ramp,
                override=line.special.unit_price if line.special else None,
                amount_off=line.special.discount_amount if line.special else 0,
                selling_model=line.selling_model or "",
                usage=line.special.usage if line.special else None,
            )
            for line in draft.lines
        )
        return Request(
            currency=self.currency,
            as_of=(draft.start_date or MOMENT.date()).isoformat(),
            lines=lines,
            products={id_: Product(rows) for id_, rows in self.rows.items()},
            price_books=(BOOK,),
            tax_rates={"standard": 0},
            term_months=draft.term_months,
            starts_on=draft.start_date.isoformat() if draft.start_date else None,
            ends_on=draft.end_date.isoformat() if draft.end_date else None,
            requested_discount=draft.requested_discount,
            requested_amount=draft.requested_amount,
            part_periods=part_periods,
            edition=EDITION,
        )

    def _order(self, kind: OrderKind, agreement_id: str, draft: Draft, priced: PricedQuote, day: date) -> Order:
        number = len(self.requests)
        return Order(
            id=f"O-{number}",
            number=f"{number}",
            kind=kind,
            account_id="acct",
            agreement_id=agreement_id,
            sequence=1,
            quote_id=f"Q-{number}",
            quote_number=f"{number}",
            quote_version=1,
            currency=draft.currency,
            rounding="half_up",
            effective=day,
            net=priced.net,
            tax_total=priced.tax_total,
            total=priced.total,
            fingerprint="",
            accepted_at=MOMENT,
            accepted_by="human:dana",
            evidence=None,
            lines=(),
        )
