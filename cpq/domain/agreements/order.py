"""PURE. An order: what a customer accepted, line by line, with the days and amounts of each line. It never changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from cpq.base.rounding import MinorUnit, divide
from cpq.domain.agreements.billing_calendar import Calendar, passed
from cpq.domain.agreements.order_kind import OrderKind
from cpq.domain.billing_terms import Billed, CancellationCredit
from cpq.domain.pricing.request import Quantity
from cpq.domain.quotes.special_terms import Commitment

UNITS_MAX = 10_000
"""Of a year, whose prices in millionths are together exact to half a cent."""


class Basis(NamedTuple):
    """The line of a quote version whose stored price request has the prices of a line."""

    quote_id: str
    version: int
    number: int


class Sold(NamedTuple):
    """What a line sells and on which terms; two equal ones are worth the same on every day."""

    product_id: str
    product_name: str
    quantity: Quantity
    basis: Basis
    selling_model: str = "one_time"
    billing_period: str = "one_time"
    is_evergreen: bool = False
    attributes: Mapping[str, Any] = {}
    unit_price: int | None = None
    """For a unit and period, in millionths, where the seller gave it instead of the regular price."""
    discount: int = 0
    """Discretionary, in millionths of a percent: of the line and of the quote together."""
    uplift: int = 0
    """By which renewals raised the price of the basis, in millionths of a percent."""
    billed: Billed = Billed.ADVANCE
    credit: CancellationCredit = CancellationCredit.PRORATED
    commitment: Commitment | None = None
    """Of a line that is charged by its use; its period is always given, and never the whole term."""

    @property
    def is_recurring(self) -> bool:
        return self.billing_period != "one_time"


class Phase(NamedTuple):
    """A run of days in which a line has one quantity and one price. Amounts are whole millionths."""

    start: date
    end: date | None
    """The first day after it; None where the line has no end, or was bought once."""
    value: int
    """Net for all its days; of a line without an end for one period."""
    sold: Sold
    calendar: Calendar | None = None
    """Of a recurring line."""
    periods: Fraction = Fraction(1)
    """For which its value was charged."""
    ends: date | None = None
    """The first day on which a later order holds instead; None where it runs to its end."""
    ended: date | None = None
    """What `ends` was before the last cut, so that the same day can lead back to it."""
    price: int | None = None
    """Net for one unit and period, where it was charged by one; the value was rounded."""

    @property
    def is_real(self) -> bool:
        """Whether it holds on any day."""
        return self.stop is None or self.stop > self.start

    def cut(self, day: date) -> Phase:
        """With a later order from the day on."""
        return self._replace(ends=max(day, self.start), ended=self.ends)

    @property
    def restored(self) -> Phase:
        """As it was before the last cut."""
        return self._replace(ends=self.ended, ended=None)

    @property
    def stop(self) -> date | None:
        """The first day on which it does not hold any more."""
        return self.end if self.ends is None else self.ends

    def is_on(self, day: date) -> bool:
        return self.start <= day and (self.stop is None or day < self.stop)

    def used(self, day: date, minor_unit: MinorUnit) -> int:
        """The part of the value for the days before `day`. Every amount of a schedule is a difference of two of these.

        A purchase is used up on its first day. A line without an end is worth one period after the other.
        """
        if day <= self.start:
            return 0
        if self.calendar is None:
            return self.value
        if self.end is None:
            count = self.calendar.elapsed(day) - self.calendar.elapsed(self.start)
            whole = int(count)
            return whole * self.value + minor_unit.round(self.value * (count - whole))
        if day >= self.end or not self.periods:  # The period was paid before, where a started one counts in full.
            return self.value
        share = self.passed(day) / self.periods
        return minor_unit.round(self.value, share.numerator, share.denominator)

    def passed(self, day: date) -> Fraction:
        """How many of its periods have passed by a day."""
        if self.calendar is None or self.end is None:
            return Fraction(0)
        return passed(self.calendar, self.start, self.end, day, self.periods)

    def left(self, day: date, minor_unit: MinorUnit) -> int:
        """The value from `day` on: a purchase keeps all of it, a line without an end is worth its next period."""
        if self.calendar is None or self.end is None:
            return self.value
        return self.used(self.stop or self.end, minor_unit) - self.used(day, minor_unit)

    def periods_from(self, day: date) -> Fraction:
        """How many of its periods are left on a day."""
        return (self.periods if self.ends is None else self.passed(self.ends)) - self.passed(day)

    @property
    def yearly(self) -> Fraction:
        """The recurring revenue of a year."""
        if self.calendar is None:
            return Fraction(0)
        return yearly(self.value, self.periods, self.price, self.sold.quantity, self.calendar.periods_of_year)

    @property
    def net_unit_price(self) -> int:
        """For one unit and one period, or once, in millionths."""
        if self.price is not None:
            return self.price
        units = self.periods * Fraction(self.sold.quantity)
        return round(divide(self.value, units)) if units else 0


def yearly(value: int, periods: Fraction, price: int | None, quantity: Quantity, periods_of_year: Fraction) -> Fraction:
    """The revenue of a year by the price of a unit: the value of a few days was rounded.

    Above `UNITS_MAX` units, where the millionths of a price come to a cent, it is a share of the value.
    """
    units = Fraction(quantity) * periods_of_year
    if price is not None and (units <= UNITS_MAX or not periods):
        return price * units
    return Fraction(value) / periods * periods_of_year if periods else Fraction(0)


class OrderLine(NamedTuple):
    """What an order does to one line of an agreement."""

    id: str
    """The line of the agreement: the same in every order that changes it."""
    number: int
    """Of the line in the order and in its quote."""
    agreement_id: str
    effective: date
    phases: tuple[Phase, ...]
    """What holds from the effective day on; none where the line ends."""
    replaced: tuple[Phase, ...] = ()
    """What held from that day on before; its value from that day on is given back."""
    kept: int = 0
    """The part of that value that is not given back."""

    def credit(self, minor_unit: MinorUnit) -> int:
        return sum([phase.left(self.effective, minor_unit) for phase in self.replaced]) - self.kept

    def net(self, minor_unit: MinorUnit) -> int:
        """What the customer accepted for it: negative where more is given back than charged."""
        return sum([phase.value for phase in self.phases]) - self.credit(minor_unit)


@dataclass(frozen=True)
class Order:
    """An accepted version of a quote. Amounts are whole millionths."""

    id: str
    number: str
    kind: OrderKind
    account_id: str
    agreement_id: str
    sequence: int
    """Its place among the orders of the agreement, from 1."""
    quote_id: str
    quote_number: str
    quote_version: int
    currency: str
    rounding: str
    effective: date
    net: int
    tax_total: int
    total: int
    fingerprint: str
    accepted_at: datetime
    accepted_by: str
    evidence: str | None
    lines: tuple[OrderLine, ...]

    @property
    def minor_unit(self) -> MinorUnit:
        return MinorUnit(self.currency, self.rounding)


def line_id(order_id: str, number: int) -> str:
    """The id of a line that an order adds to its agreement."""
    return f"{order_id}-ol-{number}"


def dump(lines: tuple[OrderLine, ...]) -> list[dict[str, Any]]:
    """The lines as JSON values, without defaults."""
    return [
        {
            "id": line.id,
            "number": line.number,
            "agreement_id": line.agreement_id,
            "effective": line.effective.isoformat(),
            "phases": [_dump_phase(phase) for phase in line.phases],
            **({"replaced": dump_phases(line.replaced)} if line.replaced else {}),
            **({"withheld": line.kept} if line.kept else {}),
        }
        for line in lines
    ]


def load(values: list[dict[str, Any]]) -> tuple[OrderLine, ...]:
    """The lines that `dump` wrote."""
    return tuple(
        OrderLine(
            line["id"],
            line["number"],
            line["agreement_id"],
            date.fromisoformat(line["effective"]),
            tuple(map(_load_phase, line["phases"])),
            tuple(map(_load_phase, line.get("replaced", ()))),
            line.get("withheld", 0),
        )
        for line in values
    )


def dump_phases(phases: Iterable[Phase]) -> list[dict[str, Any]]:
    """Phases with the days on which later orders cut them."""
    return [{**_dump_phase(phase), **({"ends": phase.ends.isoformat()} if phase.ends else {})} for phase in phases]


def _dump_phase(phase: Phase) -> dict[str, Any]:
    sold, calendar = phase.sold, phase.calendar
    plain: dict[str, Any] = {
        "start": phase.start.isoformat(),
        "value": phase.value,
        "product_id": sold.product_id,
        "product_name": sold.product_name,
        "quantity": sold.quantity if isinstance(sold.quantity, int) else str(sold.quantity),
        "basis": list(sold.basis),
        "selling_model": sold.selling_model,
    }
    if phase.end:
        plain["end"] = phase.end.isoformat()
    if calendar:
        plain["billing_period"] = sold.billing_period
        plain["anchor"], plain["mode"] = calendar.anchor.isoformat(), calendar.mode
        plain["periods"] = [phase.periods.numerator, phase.periods.denominator]
    if sold.attributes:
        plain["attributes"] = dict(sold.attributes)
    if sold.unit_price is not None:  # A price of 0 is one, too.
        plain["unit_price"] = sold.unit_price
    for name in ("is_evergreen", "discount", "uplift"):
        if value := getattr(sold, name):
            plain[name] = value
    if phase.price is not None:
        plain["price"] = phase.price
    if sold.billed is not Billed.ADVANCE:
        plain["billed"] = sold.billed.value
    if sold.credit is not CancellationCredit.PRORATED:
        plain["credit"] = sold.credit.value
    if committed := sold.commitment:
        quantity = committed.quantity
        exact = quantity if quantity is None or isinstance(quantity, int) else str(quantity)
        plain["commitment"] = [exact, committed.amount, committed.per]
    return plain


def _load_phase(plain: Mapping[str, Any]) -> Phase:
    quantity = plain["quantity"]
    period = plain.get("billing_period", "one_time")
    sold = Sold(
        plain["product_id"],
        plain["product_name"],
        quantity if isinstance(quantity, int) else Decimal(quantity),
        Basis(*plain["basis"]),
        plain["selling_model"],
        period,
        plain.get("is_evergreen", False),
        plain.get("attributes", {}),
        plain.get("unit_price"),
        plain.get("discount", 0),
        plain.get("uplift", 0),
        Billed(plain.get("billed", Billed.ADVANCE)),
        CancellationCredit(plain.get("credit", CancellationCredit.PRORATED)),
        _load_commitment(plain["commitment"]) if "commitment" in plain else None,
    )
    calendar = Calendar(date.fromisoformat(plain["anchor"]), period, plain["mode"]) if "anchor" in plain else None
    end = date.fromisoformat(plain["end"]) if "end" in plain else None
    return Phase(
        date.fromisoformat(plain["start"]),
        end,
        plain["value"],
        sold,
        calendar,
        Fraction(*plain.get("periods", (1, 1))),
        date.fromisoformat(plain["ends"]) if "ends" in plain else None,
        price=plain.get("price"),
    )


def _load_commitment(plain: list[Any]) -> Commitment:
    quantity, amount, per = plain
    return Commitment(Decimal(quantity) if isinstance(quantity, str) else quantity, amount, per)
