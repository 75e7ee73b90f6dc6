"""PURE. The lines of an order from the quote version that was accepted: days, values, and what they replace."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import pairwise

from cpq.base.rounding import MinorUnit, nearest
from cpq.domain.agreements.agreement import Agreement, require_line
from cpq.domain.agreements.billing_calendar import Calendar
from cpq.domain.agreements.order import Basis, OrderLine, Phase, Sold, line_id
from cpq.domain.billing_terms import Billed, CancellationCredit
from cpq.domain.pricing.discounts import percent_off, together
from cpq.domain.pricing.period_prices import PeriodPrice, period_prices
from cpq.domain.pricing.price_selection import PriceSelection
from cpq.domain.pricing.request import Line, PriceRow, Request, Segment
from cpq.domain.pricing.result import MIXED, PricedLine, PricedQuote, Stage
from cpq.domain.pricing.terms import add_months, terms_of_line
from cpq.domain.quotes.draft import AgreementChange, Draft, DraftLine
from cpq.domain.quotes.special_terms import WHOLE_TERM, AgreedLine, Commitment

WHOLE_MONTHS = "whole_months"


class Acceptance:
    """Reads the lines of an order off the accepted version. `day` is the day of acceptance where the account is."""

    def __init__(
        self,
        version: tuple[str, int],
        draft: Draft,
        names: Mapping[int, str],
        request: Request,
        priced: PricedQuote,
        *,
        day: date,
        part_periods: str,
        billing_day: int = 0,
    ) -> None:
        """`version` is the accepted one with the id of its quote, `names` what its lines call their products.

        `part_periods` counts parts of a period where the quote was priced in whole months only.
        """
        self.minor_unit = MinorUnit(request.currency, request.rounding)
        self._version = version
        self._request = request
        self._mode = part_periods if request.part_periods == WHOLE_MONTHS else request.part_periods
        self._billing_day = billing_day
        self._selection = PriceSelection(request)
        self._prices = period_prices(request, priced.lines)
        self._draft = replace(draft, start_date=draft.start_date or day)
        self._asked = {line.number: line for line in self._draft.lines}
        self._lines = {line.id: line for line in request.lines}
        self._priced = priced
        self._names = names

    def lines(self, order_id: str, agreement_id: str) -> Iterator[OrderLine]:
        """The lines of a first order: each begins a line of the agreement."""
        for priced in self._priced.lines:
            number = int(priced.id)
            for suffix, phases in self._phases(priced, self._asked[number]):
                id_ = line_id(order_id, number) + suffix
                yield OrderLine(id_, number, agreement_id, phases[0].start, phases)

    def changed_lines(
        self, order_id: str, change: AgreementChange, agreements: Mapping[str, Agreement]
    ) -> Iterator[OrderLine]:
        """The lines of an order that changes agreements, and what each of them replaces."""
        for priced in self._priced.lines:
            number = int(priced.id)
            asked = self._asked[number]
            agreed = asked.agreed
            assert agreed is not None, "every line of such a quote changes an agreement"
            start = self._start(asked)
            is_apart = priced.billing_period == MIXED
            phases = () if is_apart or agreed.action == "remove" else self._changed_phases(priced, asked, agreed)
            if is_apart:
                for suffix, own in self._phases(priced, asked):
                    id_ = line_id(order_id, number) + suffix
                    yield OrderLine(id_, number, change.agreement_id, start, own)
            if agreed.line_id is None:
                if not is_apart:
                    yield OrderLine(line_id(order_id, number), number, change.agreement_id, start, phases)
                continue
            other = agreed.agreement_id or change.agreement_id
            line = require_line(agreements[other], agreed.line_id, "/quote_id")
            until = date.fromisoformat(agreed.until) if agreed.until else date.max
            replaced = tuple(
                phase._replace(ended=None)
                for phase in line.from_(start)
                if phase.start < until and (phase.calendar or agreed.action != "renew")
            )
            if other == change.agreement_id:
                yield OrderLine(line.id, number, other, start, phases, replaced, agreed.kept)
            else:
                if replaced:
                    yield OrderLine(line.id, number, other, start, (), replaced, agreed.kept)
                yield OrderLine(line_id(order_id, number), number, change.agreement_id, start, phases)

    def _changed_phases(self, priced: PricedLine, asked: DraftLine, agreed: AgreedLine) -> tuple[Phase, ...]:
        """The one phase of a changed line, counted from the day from which the line was always counted."""
        ((_, (phase,)),) = self._phases(priced, asked)
        sold = phase.sold
        if agreed.basis is not None:
            sold = sold._replace(
                basis=Basis(*agreed.basis), uplift=agreed.uplift, product_name=agreed.name or sold.product_name
            )
        if phase.calendar is None:
            return (phase._replace(sold=sold),)
        anchor = date.fromisoformat(agreed.anchored_on) if agreed.anchored_on else phase.calendar.anchor
        calendar = phase.calendar._replace(anchor=anchor, mode=agreed.part_periods or phase.calendar.mode)
        price = phase.price if agreed.settled is None else agreed.settled_price
        periods = Fraction(agreed.settled_periods) if agreed.settled_periods else phase.periods
        return (phase._replace(sold=sold, calendar=calendar, price=price, periods=periods),)

    def _phases(self, priced: PricedLine, asked: DraftLine) -> Iterator[tuple[str, tuple[Phase, ...]]]:
        """The phases of a line; the parts of a bundle that are billed differently are lines of their own."""
        if priced.billing_period == MIXED:
            yield from self._parts(priced, asked)
            return
        line = self._lines[priced.id]
        row = self._row(line)
        sold = self._sold(priced, asked, row)
        if line.ramp:
            yield "", tuple(self._ramp(priced, asked, sold))
        else:
            yield "", (self._phase(asked, sold, priced.net, self._prices.get(priced.id)),)

    def _sold(self, priced: PricedLine, asked: DraftLine, row: PriceRow) -> Sold:
        line = self._lines[priced.id]
        return Sold(
            asked.product_id,
            self._names[asked.number],
            asked.quantity,
            Basis(*self._version, asked.number),
            row.selling_model,
            priced.billing_period,
            row.is_evergreen,
            asked.attributes,
            line.override,
            self._discount(priced, line),
            0,
            Billed(row.billed),
            CancellationCredit(row.cancellation_credit),
            self._commitment(line, row),
        )

    def _commitment(self, line: Line, row: PriceRow) -> Commitment | None:
        """For each of some period: an amount for the whole term says nothing of the rest of it."""
        usage = line.usage
        if usage is None or not usage.is_committed:
            return None
        if usage.per != WHOLE_TERM:
            return Commitment(usage.quantity, usage.amount, usage.per or row.billing_period)
        term = terms_of_line(self._request, line.term).of_row(row)
        return Commitment(None, nearest((usage.amount or 0) * term.of, term.periods), row.billing_period)

    def _discount(self, priced: PricedLine, line: Line) -> int:
        """What was taken off the price that the seller gave, or else off the regular one."""
        if not line.amount_off and not self._request.requested_amount:
            return together(line.discount, self._request.requested_discount)
        given = next((step.amount for step in priced.steps if step.source == "unit_price"), priced.regular)
        return percent_off(given, priced.net)

    def _phase(self, asked: DraftLine, sold: Sold, value: int, price: PeriodPrice | None) -> Phase:
        start = self._start(asked)
        if not sold.is_recurring:
            return Phase(start, None, value, sold)
        calendar = self._calendar(start, sold.billing_period)
        unit_price = price.net_unit_price if price else None
        if sold.is_evergreen:
            return Phase(start, None, value, sold, calendar, price=unit_price)
        last = self._draft.last_day_of(asked)
        end = last + timedelta(days=1) if last else Calendar(start, sold.billing_period, self._mode).boundary(1)
        return Phase(start, end, value, sold, calendar, price.periods if price else Fraction(1), price=unit_price)

    def _start(self, asked: DraftLine) -> date:
        start = asked.special.start_date if asked.special else None
        found = start or self._draft.start_date
        assert found is not None, "the day of acceptance is the default"
        return found

    def _calendar(self, start: date, billing_period: str) -> Calendar:
        """Periods begin on the line's first day, or on the seller's billing day, on or before it."""
        day = self._billing_day
        if not day:
            return Calendar(start, billing_period, self._mode)
        anchor = start.replace(day=day)
        return Calendar(anchor if anchor <= start else add_months(anchor, -1), billing_period, self._mode)

    def _ramp(self, priced: PricedLine, asked: DraftLine, sold: Sold) -> Iterator[Phase]:
        """A phase for each segment; they share the line's net by what each was worth."""
        start, segments = self._start(asked), asked.ramp
        terms = terms_of_line(self._request, self._lines[priced.id].term)
        calendar = self._calendar(start, sold.billing_period)
        weights = [self._worth(priced, position, segment, asked) for position, segment in enumerate(segments, 1)]
        values = self.minor_unit.allocate(priced.net, weights)
        offset = 0
        for segment, value in zip(segments, values, strict=True):
            begin, end = add_months(start, offset), add_months(start, offset + segment.months)
            part = sold._replace(
                quantity=segment.quantity or sold.quantity,
                unit_price=segment.override,
                discount=together(sold.discount, segment.discount),
                uplift=segment.uplift,
            )
            charged = terms.of(sold.billing_period, offset, segment.months)
            yield Phase(begin, end, value, part, calendar, Fraction(charged.periods, charged.of))
            offset += segment.months

    def _worth(self, priced: PricedLine, position: int, segment: Segment, asked: DraftLine) -> int:
        if segment.override is not None:
            periods = Calendar(date.min, priced.billing_period, self._mode).periods_of_year * segment.months / 12
            return int(segment.override * Fraction(segment.quantity or asked.quantity) * periods)
        name = f"segment {position}"
        amounts = _last_amounts(priced)
        whole = sum(amount for part, amount in amounts.items() if part == name or part.startswith(f"{name} "))
        return whole * (100_000_000 - segment.discount) // 100_000_000

    def _parts(self, priced: PricedLine, asked: DraftLine) -> Iterator[tuple[str, tuple[Phase, ...]]]:
        """A bundle that has a price, and its components, with their shares of its net, each billed like its price."""
        line = self._lines[priced.id]
        components = self._request.products[line.product_id].components
        quantities = Counter[str]()
        for component in (*components, *line.charged):
            quantities[component.product_id] += component.quantity
        amounts = _last_amounts(priced)
        weights = [
            sum(amount for part, amount in amounts.items() if part == id_ or part.endswith(f" {id_}"))
            for id_ in quantities
        ]
        if not components:  # The bundle has a price of its own.
            row = self._row(line)
            whole = self._sold(priced, asked, row)._replace(billing_period=row.billing_period)
            own, *values = self.minor_unit.allocate(priced.net, [sum(_own_amounts(priced)), *weights])
            yield "", (self._phase(asked, whole, own, None),)
        else:
            values = self.minor_unit.allocate(priced.net, weights)
        for place, ((id_, each), value) in enumerate(zip(quantities.items(), values, strict=True), 1):
            found = self._selection.of(id_, line.part_models.get(id_, "")).charged
            assert found is not None, "it was priced"
            whole = self._sold(priced, asked, found)
            sold = whole._replace(
                product_id=id_,
                product_name=f"{whole.product_name}: {id_}",
                quantity=whole.quantity * each,
                billing_period=found.billing_period,
                attributes={},
            )
            yield f".{place}", (self._phase(asked, sold, value, None),)

    def _row(self, line: Line) -> PriceRow:
        row = self._selection.of(line.price_key, line.selling_model).charged
        assert row is not None, "it was priced"
        return row


def _last_amounts(priced: PricedLine) -> dict[str, int]:
    """The amount of each part after its last stage, of parts of one name together."""
    found = Counter[str]()
    for step, after in pairwise((*priced.steps, None)):
        assert step is not None
        if step.part and (after is None or after.part != step.part or after.stage == Stage.LIST):
            found[step.part] += step.amount
    return found


def _own_amounts(priced: PricedLine) -> Iterator[int]:
    """What a bundle with a price of its own costs without its components, for each segment of a ramp."""
    steps = priced.steps[: next(place for place, step in enumerate(priced.steps) if step.source == "bundle")]
    own = {step.part: step.amount for step in steps if step.part == "" or _SEGMENT.fullmatch(step.part)}
    yield from own.values()


_SEGMENT = re.compile(r"segment [0-9]+")
