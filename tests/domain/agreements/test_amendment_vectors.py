"""A-12 to A-14: published cases of changes. What our rules cover comes out as there; the rest says why not."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cpq.base.money import from_micro, to_micro
from cpq.base.rounding import MinorUnit
from cpq.domain.agreements.agreement import Agreement
from cpq.domain.agreements.changes import Action, Change, RenewalPrice, amended_lines, cancelled_lines, renewed_lines
from cpq.domain.agreements.order_kind import OrderKind
from cpq.domain.pricing.request import PriceRow, Segment
from cpq.domain.pricing.terms import add_months, whole_months
from cpq.domain.quotes.draft import DraftLine
from cpq.domain.quotes.lifecycle import local_day
from tests.support.agreements import BOOK, World

CASES = json.loads((Path(__file__).parent / "amendment_cases.json").read_text(encoding="utf-8"))

NEXT_DAY = timedelta(days=1)

NOT_OURS = {
    "AMD-0009": "the day of a change is charged twice: our periods have no day twice",
    "AMD-0030": "a coupon and the credit of an invoice line belong to invoicing, which comes after the order",
    "AMD-0035": "an account's balance of money belongs to invoicing",
    "AMD-0041": "the case refers to inputs that are not published with it",
    "AMD-0045": "list value is a metric of that vendor; ours is the discount off list",
    "AMD-0046": "a price for another period than the one that is billed",
    "AMD-0052": "money left buys days, so that the end moves: our amendments keep the end and settle in money",
    "AMD-0059": "a renewal takes the last price, not the larger of two",
    "AMD-0068": "a blanket order that is called off in parts is no agreement of ours",
    "AMD-0070": "a blanket order that is called off in parts is no agreement of ours",
    "AMD-0081": "grants of units are metered, not sold",
    "AMD-0082": "grants of units are metered, not sold",
    "AMD-0083": "what is added is a line of its own, which may be due at another time",
    "AMD-0085": "an agreement has one currency, in which every price is looked up",
    "AMD-0089": "a suspension moves the end: there is no such change",
    "AMD-0091": "a suspension moves the end: there is no such change",
    "AMD-0093": "a suspension moves the end: there is no such change",
    "AMD-0099": "a line without an end ends with a billing period, so that none is billed in part",
    "AMD-0109": "days of all licences are pooled, so that the end moves",
    "AMD-0115": "amounts are by days, not by milliseconds",
}
"""Why a case is left out."""


def day(text: str) -> date:
    return date.fromisoformat(text)


def micro(text: object) -> int:
    return to_micro(Decimal(str(text)))


def cents(number: int) -> int:
    return number * 10_000


def world(*prices: tuple[int, str], mode: str = "actual_days", billing_day: int = 0, credit: str = "prorated") -> World:
    """Products p0, p1, … with one price each, by its billing period."""
    rows: dict[str, tuple[PriceRow, ...]] = {
        f"p{place}": (PriceRow(f"row{place}", price, BOOK, billing_period=period, cancellation_credit=credit),)
        for place, (price, period) in enumerate(prices)
    }
    return World(rows, mode=mode, billing_day=billing_day)


def sell(made: World, start: date, end: date, *quantities: int, discount: int = 0) -> Agreement:
    """A sale of the products in these quantities, to `end` (exclusive)."""
    months = whole_months(start, end)
    lines = [DraftLine(place + 1, f"p{place}", number, discount) for place, number in enumerate(quantities) if number]
    if add_months(start, months) == end:
        return made.sell(lines, start, months)
    return made.sell(lines, start, None, end=end - NEXT_DAY)


def amend(made: World, agreement: Agreement, on: date, *changes: Change) -> tuple[Agreement, list[tuple[int, int]]]:
    """After the changes, with price and credit of each line."""
    lines = amended_lines(agreement, on, changes)
    net = made.change(OrderKind.AMENDMENT, agreement, on, lines)
    after = made.agreement(agreement.id)
    order = after.orders[-1]
    sides = [(sum(phase.value for phase in line.phases), line.credit(order.minor_unit)) for line in order.lines]
    assert sum(price - credit for price, credit in sides) == net
    return after, sides


def priced(agreement: Agreement, price: int, line: int = 0) -> Change:
    return Change(Action.CHANGE_PRICE, agreement.lines[line].id, unit_price=price, price_reason="as published")


def cancelled(made: World, agreement: Agreement, on: date) -> int:
    """What is given back."""
    lines = cancelled_lines(agreement, on, None)
    return -made.change(OrderKind.CANCELLATION, agreement, on, lines) if lines else 0


def with_tax(net: int, percent: object) -> int:
    return MinorUnit("EUR", "half_up").round(net * (100 + int(str(percent))), 1, 100)


def of_upgrades(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """Several changes of price in one paid period."""
    start, end = day(asked["start"]), day(asked["period_end"]) + NEXT_DAY
    made = world((cents(asked["price_cents"]), "monthly"))
    agreement = sell(made, start, end, 1)
    assert agreement.orders[0].net == cents(expected["first_charge_cents"])
    for change, wanted in zip(asked["changes"], expected["changes"], strict=True):
        agreement, ((price, credit),) = amend(
            made, agreement, day(change["on"]), priced(agreement, cents(change["price_cents"]))
        )
        assert price == cents(wanted["charge_cents"])
        assert with_tax(credit, asked["tax_pct"]) == cents(wanted["credit_incl_tax_cents"])


def of_components(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """Calendar months: A is removed, B dearer, C new."""
    parts, start, on = asked["components"], day(asked["start"]), day(asked["on"])
    old_a, old_b = cents(parts["A"]["old_cents"]), cents(parts["B"]["old_cents"])
    made = world((old_a, "monthly"), (old_b, "monthly"), (cents(parts["C"]["new_cents"]), "monthly"), billing_day=1)
    agreement = sell(made, start, day(asked["paid_to"]) + NEXT_DAY, 1, 1)
    first = [due.amount for due in agreement.schedule(date.max) if due.start == start]
    assert first == [cents(expected["first_charges_cents"][name]) for name in ("A", "B")]
    changes = (
        Change(Action.REMOVE_LINE, agreement.lines[0].id),
        priced(agreement, cents(parts["B"]["new_cents"]), 1),
        Change(Action.ADD_LINE, product_id="p2", quantity=1),
    )
    _, (_, dearer, new) = amend(made, agreement, on, *changes)
    assert dearer[0] - dearer[1] == cents(expected["on_change_cents"]["B"])
    assert new == (cents(expected["on_change_cents"]["C"]), 0)


def of_termination(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """The last day is used; days are those of the account."""
    zone = asked.get("timezone", "UTC")
    start, last = (_local(asked[name], zone) for name in ("start", "terminate"))
    made = world((cents(asked["price_cents"]), "monthly"), billing_day=1 if "calendar" in asked["alignment"] else 0)
    if "trial_ends" in asked:
        start, last = day(asked["trial_ends"]), day(asked["terminate"]) - NEXT_DAY  # Taken back within the hour.
    end = add_months(start.replace(day=1), 1) if "calendar" in asked["alignment"] else add_months(start, 1)
    agreement = sell(made, start, end, 1)
    first = agreement.orders[0].net
    wanted = expected.get("first_invoice_cents", expected.get("first_charge_cents"))
    assert wanted is None or with_tax(first, asked.get("tax_pct", 0)) == cents(wanted)
    back = cancelled(made, agreement, last + NEXT_DAY)
    assert back == cents(expected.get("credit_net_cents", expected["credit_cents"]))
    assert with_tax(back, asked.get("tax_pct", 0)) == cents(expected["credit_cents"])


def _local(moment: str, zone: str) -> date:
    return local_day(datetime.fromisoformat(moment), zone) if "T" in moment else day(moment)


def of_arrears(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    start, on = day("2024-02-01"), day(asked["change"]["on"])
    usage = cents(asked["recurring_usage_cents_per_month"])
    made = world((cents(asked["price_cents"]), "monthly"), (usage, "monthly"))
    agreement = sell(made, start, add_months(start, 1), 1, 1)
    used = [line.phases[0].used(on, agreement.minor_unit) for line in agreement.lines]
    rest = [line.phases[0].left(on, agreement.minor_unit) for line in agreement.lines]
    _, ((price, _),) = amend(made, agreement, on, priced(agreement, cents(asked["change"]["price_cents"])))
    assert sum(used) == cents(expected["on_change_cents"])
    assert price + rest[1] == cents(expected["next_invoice_cents"])


def of_weeks(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    start = _local(asked["start"], asked["timezone"])
    assert start == day(expected["local_start"])
    monday = start + timedelta(days=7 - start.weekday())
    sold = sell(world((cents(asked["price_cents"]), "weekly")), start, monday, 1)
    assert sold.orders[0].net == cents(expected["charge_cents"])


def of_repair(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """A cheaper plan, and a dearer one a day later."""
    start, end = map(day, asked["period"])
    made = world((micro("599.95"), "monthly"))
    agreement = sell(made, start, end, 1)
    agreement, ((price, credit),) = amend(made, agreement, day("2012-05-07"), priced(agreement, micro("9.95")))
    if "charged_before" in asked:
        assert price == micro(asked["charged_before"]["amount"])
        _, ((price, credit),) = amend(made, agreement, day(asked["on"]), priced(agreement, micro(asked["new_price"])))
    assert (price, credit) == (micro(expected["charge"]), micro(expected["repair"]))


def of_quantity(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    made = world((micro(asked["price"]), "monthly"))
    end = day(asked["end"]) + NEXT_DAY
    agreement = sell(made, day("2018-01-01"), end, int(asked["quantity_before"]))
    before = agreement.yearly(day(asked["on"]))
    more = Change(Action.SET_QUANTITY, agreement.lines[0].id, int(asked["quantity"]))
    agreement, ((price, credit),) = amend(made, agreement, day(asked["on"]), more)
    assert price - credit == micro(expected["delta_tcv"])
    assert agreement.yearly(day(asked["on"])) - before == 12 * micro(expected["delta_mrr"])


def of_renewal_with_service(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    made = world((micro(asked["mrr"]), "monthly"), (micro(asked["one_off"]), "one_time"))
    start = day(asked["start"])
    agreement = sell(made, add_months(start, -12), start, 1)
    lines = renewed_lines([agreement], start, 3, price=RenewalPrice.SAME, uplift=0)
    assert made.change(OrderKind.RENEWAL, agreement, start, lines) == micro(expected["delta_tcv_recurring"])
    agreement = made.agreement(agreement.id)
    assert agreement.end == day(asked["end_exclusive"])
    _, (service,) = amend(made, agreement, start, Change(Action.ADD_LINE, product_id="p1", quantity=1))
    assert service == (micro(expected["delta_tcv_one_off"]), 0)


def of_discount(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    made = world((micro(asked["price_per_month"]), "monthly"))
    discount = micro(asked["discount_pct"])
    agreement = sell(made, day(asked["start"]), day(asked["end"]) + NEXT_DAY, 1, discount=discount)
    gone = Change(Action.CHANGE_PRICE, agreement.lines[0].id, discount_pct=0)
    agreement, ((price, credit),) = amend(made, agreement, day(asked["removed_on"]), gone)
    assert price - credit == micro(expected["delta_on_removal"])
    assert sum(order.net for order in agreement.orders) == micro(expected["net_total"])


def of_half(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    made = world((micro(asked["old_price"]), "monthly"))
    agreement = sell(made, day("2026-04-01"), day("2026-05-01"), 1)
    _, ((price, credit),) = amend(made, agreement, day("2026-04-16"), priced(agreement, micro(asked["new_price"])))
    assert price - credit == micro(expected["net"])


def of_next_period(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """A line without an end changes with its next period: nothing is due before."""
    start, following = map(day, asked["period"])
    made = world((micro(asked["old_price"]), "monthly"))
    made.rows["p0"] = (made.rows["p0"][0]._replace(is_evergreen=True),)
    agreement = made.sell([DraftLine(1, "p0", 1)], start, None)
    agreement, _ = amend(made, agreement, following, priced(agreement, micro(asked["new_price"])))
    dues = [(due.due_on, due.amount) for due in agreement.schedule(add_months(following, 1))]
    assert dues == [(start, micro(asked["old_price"])), (day(expected["next_payment"]), micro(expected["next_amount"]))]


def of_last_segment(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    made = world((micro(230), "yearly"))
    prices = [segment.get("price") for segment in asked["segments"]]
    ramp = tuple(Segment(12, override=micro(price) if price else None) for price in prices)
    agreement = made.sell([DraftLine(1, "p0", 1, ramp=ramp)], day("2024-01-01"), 36)
    uplift = micro(asked["uplift_pct_per_year"])
    lines = renewed_lines([agreement], day("2027-01-01"), 12, price=RenewalPrice.SAME, uplift=uplift)
    assert made.change(OrderKind.RENEWAL, agreement, day("2027-01-01"), lines) == micro(expected["renewal_price"])


def of_own_term(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    made = world((micro(asked["price"]), "monthly"))
    start = day("2026-01-01")
    agreement = sell(made, start, add_months(start, 12), asked["seats"])
    on, end = (add_months(start, months) for months in (asked["added_in_month"], expected["ends_in_month"]))
    more = Change(Action.ADD_LINE, product_id="p0", quantity=asked["add_seats"], end_date=end - NEXT_DAY)
    assert amend(made, agreement, on, more)[1] == [(micro(expected["amount"]), 0)]


def of_term_price(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    start, end = day(asked["start"]), day(asked["end"])
    if asked["period"] == "week":
        sold = sell(world((micro(asked["list_price"]), "weekly")), start, end, int(asked["quantity"]))
        assert sold.orders[0].net == micro(expected["by_75_days_unrounded"])
    else:
        rounded_up = world((micro(asked["list_price"]), "monthly"), mode="whole_months_up")
        assert sell(rounded_up, start, end + NEXT_DAY, 1).orders[0].net == micro(expected["price"])


def of_addon(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """An add-on is a line of its own; what is paid for a period is the sum of the lines of a day."""
    days = {f"t{number}": add_months(day("2026-01-01"), number) for number in range(6)}
    if "base" in asked:
        prices, base = ["100", "100"], [(days[one["from"]], days[one.get("to", "t5")]) for one in asked["base"]]
        added = (days[asked["addon"]["from"]], days[asked["addon"]["to"]])
    else:
        start = day(asked.get("start", "2026-01-01"))
        whole = asked.get("base_price", "")
        prices = [whole or str(int(asked["price_with_addon"]) - int(asked["addon_price"])), asked["addon_price"]]
        base = [(start, add_months(start, 5))]
        added = (day(asked["addon_from"]) if "addon_from" in asked else start, base[0][1])
    made = world(*((micro(price), "monthly") for price in prices))
    agreement = sell(made, *base[0], 1)
    for product, (begin, end) in [("p0", one) for one in base[1:]] + [("p1", added)]:
        new = Change(Action.ADD_LINE, product_id=product, quantity=1, end_date=end - NEXT_DAY)
        agreement, _ = amend(made, agreement, begin, new)
    if asked.get("action") == "remove":
        agreement, _ = amend(made, agreement, added[0], Change(Action.REMOVE_LINE, agreement.lines[-1].id))
    segments = expected.get("segments", [{"from": base[0][0].isoformat(), "price": expected.get("price")}])
    for segment in segments:
        begin = days.get(segment["from"]) or day(segment["from"])
        assert agreement.yearly(begin) == 12 * micro(segment["price"])


def of_extension(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    end = day(asked["end"]) + NEXT_DAY
    start = day(asked["start"]) if "start" in asked else add_months(end, -12)
    made = world((micro("120"), "yearly"))
    agreement = sell(made, start, end, asked.get("licences", 1))
    lines = renewed_lines([agreement], end, 12, price=RenewalPrice.SAME, uplift=0)
    made.change(OrderKind.RENEWAL, agreement, end, lines)
    (line,) = made.agreement(agreement.id).lines
    assert line.stop is not None
    wanted = expected.get("new_end") or expected["periods"][0][1]
    assert (line.start, line.stop - NEXT_DAY) == (start, day(wanted))


def of_late_stop(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    end = day(asked["end"])
    agreement = sell(world((micro("10"), "monthly")), day(asked["start"]), end + NEXT_DAY, 1)
    assert cancelled_lines(agreement, day(asked["stop"]), None) == []
    assert agreement.end == day(expected["end"]) + NEXT_DAY


def of_cancelled_arrears(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    start, last = map(day, asked["period"])
    made = world((micro(asked["price"]), "monthly"), credit="prorated" if asked["mode"] == "prorate" else "none")
    agreement = sell(made, start, last + NEXT_DAY, 1)
    back = cancelled(made, agreement, day(asked["cancel"]) + NEXT_DAY)
    assert micro(asked["price"]) - back == micro(expected["amount"])


def of_early_renewal(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """The rest of the old term is given back in months, and the new one starts the same day."""
    old = asked.get("old") or {**asked["subscriptions"][1], "start": asked["start"], "end": "2025-12-31"}
    price, on = micro(old["price_per_year"]), day(asked.get("renew_from", "2025-06-01"))
    made = world((price, "yearly"), mode="months_and_days")
    agreement = sell(made, day(old["start"]), day(old["end"]) + NEXT_DAY, 1)
    lines = renewed_lines([agreement], on, 12, price=RenewalPrice.SAME, uplift=0)
    assert made.change(OrderKind.RENEWAL, agreement, on, lines) == price - micro(expected["removed"])
    order = made.agreement(agreement.id).orders[-1]
    assert order.lines[0].credit(order.minor_unit) == micro(expected["removed"])
    if "total_after" in expected:
        assert 2 * price - micro(expected["removed"]) == micro(expected["total_after"])


def of_whole_days(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    renewal, wanted = day(asked["renewal"]), expected["by_whole_days"]
    made = world((micro(asked["old_price_per_year"]), "yearly"))
    agreement = sell(made, add_months(renewal, -12), renewal, 1)
    _, (sides,) = amend(made, agreement, day(asked["on"]), priced(agreement, micro(asked["new_price_per_year"])))
    assert sides == (micro(wanted["charge"]), -micro(wanted["credit"]))


def of_common_end(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """A day costs 1: what each is renewed for is its days beyond its old end."""
    made = world((micro(365), "yearly"))
    found = []
    for one in asked["subscriptions"]:
        end = day(one["valid_through"]) + NEXT_DAY
        found.append(sell(made, add_months(end, -12), end, one["quantity"]))
    first = found[0].end
    assert first is not None
    lines = renewed_lines(found, first, 12, price=RenewalPrice.SAME, uplift=0)
    made.change(OrderKind.RENEWAL, found[0], first, lines, found[1:])
    after = made.agreement(found[0].id)
    assert after.end == day(expected["common_payment_date"])
    order = after.orders[-1]
    nets: Counter[int] = Counter()
    for line in order.lines:
        nets[line.number] += line.net(order.minor_unit)
    quantities = [one["quantity"] for one in asked["subscriptions"]]
    days = [from_micro(nets[number]) / quantity for number, quantity in enumerate(quantities, 1)]
    assert days == list(expected["renewed_days"].values())


def of_split(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    agreement = sell(world((micro(asked["amount"]), "yearly")), day(asked["start"]), day(asked["end_exclusive"]), 1)
    (phase,) = agreement.lines[0].phases
    on, unit = day(asked["split"]), agreement.minor_unit
    assert (phase.used(on, unit), phase.left(on, unit)) == (micro(expected["before"]), micro(expected["after"]))


def of_items(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """Purchases that are exchanged: the difference is charged or given back."""
    items = asked["items"]
    rest = micro(asked["order_total"]) - sum(micro(item["old_price"]) for item in items)
    old, new = ([micro(item[name]) for item in items] for name in ("old_price", "new_price"))
    made = world(*((price, "one_time") for price in (*old, rest, *new)))
    agreement = sell(made, day("2026-01-01"), day("2027-01-01"), *[1] * (len(items) + 1))
    changes = [
        Change(Action.SWAP_PRODUCT, agreement.lines[place].id, product_id=f"p{len(items) + 1 + place}")
        for place in range(len(items))
    ]
    agreement, sides = amend(made, agreement, day("2026-01-08"), *changes)
    difference = sum(price - credit for price, credit in sides)
    assert difference == micro(expected["difference"])
    assert (difference > 0) == (expected["direction"] == "charge")
    assert sum(order.net for order in agreement.orders) == micro(expected["new_order_total"])


Run = Callable[[dict[str, Any], dict[str, Any]], None]
RUN: dict[str, Run] = {
    "AMD-0002": of_upgrades,
    "AMD-0005": of_components,
    "AMD-0007": of_components,
    "AMD-0020": of_weeks,
    "AMD-0022": of_weeks,
    "AMD-0027": of_arrears,
    "AMD-0033": of_repair,
    "AMD-0034": of_repair,
    "AMD-0037": of_quantity,
    "AMD-0038": of_quantity,
    "AMD-0042": of_renewal_with_service,
    "AMD-0043": of_discount,
    "AMD-0051": of_half,
    "AMD-0055": of_next_period,
    "AMD-0057": of_last_segment,
    "AMD-0063": of_own_term,
    "AMD-0064": of_term_price,
    "AMD-0065": of_term_price,
    "AMD-0073": of_addon,
    "AMD-0076": of_addon,
    "AMD-0077": of_addon,
    "AMD-0078": of_addon,
    "AMD-0095": of_extension,
    "AMD-0097": of_late_stop,
    "AMD-0100": of_cancelled_arrears,
    "AMD-0102": of_cancelled_arrears,
    "AMD-0104": of_early_renewal,
    "AMD-0107": of_early_renewal,
    "AMD-0108": of_whole_days,
    "AMD-0110": of_extension,
    "AMD-0112": of_common_end,
    "AMD-0114": of_split,
    **{f"AMD-{number:04}": of_termination for number in (10, 16, 17, 18, 19, 29)},
    **{case["id"]: of_items for case in CASES if "items" in case["inputs"]},
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a12_a_published_change_comes_out_as_there_or_says_why_not(case: dict[str, Any]):
    if case["id"] not in NOT_OURS:
        RUN[case["id"]](case["inputs"], case["expected"])


def test_a12_no_more_changes_are_left_out_than_these():
    assert RUN.keys() | NOT_OURS.keys() == {case["id"] for case in CASES}
    assert not RUN.keys() & NOT_OURS.keys()
    assert (len(RUN), len(NOT_OURS)) == (68, 20)
