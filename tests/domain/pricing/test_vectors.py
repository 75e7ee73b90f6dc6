"""Cases that other systems publish, each with its source: what they expect of a price is what ours comes to."""

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cpq.base.money import from_micro, to_micro
from cpq.base.rounding import MinorUnit
from cpq.domain.pricing import PricedQuote, price, terms
from cpq.domain.pricing.request import Adjustment, Line, PriceRow, Product, Request, Tier
from cpq.domain.pricing.result import Stage
from cpq.domain.pricing.tax import TaxTable
from tests.support.random_quotes import PART_PERIODS

CASES = json.loads((Path(__file__).parent / "pricing_cases.json").read_text(encoding="utf-8"))

EXCLUDED = {
    ("tier.graduated", "qty 0"): "zero is not a quantity, so no fee can fall due for it",
    ("tier.volume", "qty 0"): "zero is not a quantity, so no fee can fall due for it",
    ("proration", "bill-through 2012-03-02, end 2012-06-02 MONTHLY"): "three whole anniversary months are three",
    ("rounding", "12.23 cash rounding 0.05"): "a quote is not paid in coins; amounts end at the minor unit",
}
"""Cases that a decision of ours contradicts, with the decision."""


def micro(amount: object) -> int:
    return to_micro(Decimal(str(amount)))


def percent(value: object) -> int:
    return micro(value)


def row(unit_price: object = 0, **fields: Any) -> PriceRow:
    return PriceRow("row", micro(unit_price), price_book_id="list", **fields)


def quote(*lines: Line, rows: list[PriceRow], rate: object = 0, currency: str = "USD", **fields: Any) -> PricedQuote:
    """Line n has product n with row n; a line that is not given asks for one unit."""
    products = {f"p{n:03}": Product((row,)) for n, row in enumerate(rows)}
    asked = lines or tuple(Line(f"l{n:03}", f"p{n:03}", 1) for n in range(len(rows)))
    return price(Request(currency, "2026-01-01", asked, products, ("list",), {"standard": percent(rate)}, **fields))


def written(*amounts: int) -> list[Decimal]:
    return [from_micro(amount) for amount in amounts]


def apportion(case: dict) -> list[Decimal]:
    weights, amount = case["input"]["weights"], case["input"]["amount"]
    shares = written(*MinorUnit("JPY").allocate(micro(amount), weights))
    if 0 <= amount <= sum(weights):
        off = round(Fraction(amount * 10**8, sum(weights)))
        priced = quote(rows=[row(weight) for weight in weights], currency="JPY", requested_discount=off)
        assert written(*(line.discount_amount for line in priced.lines)) == shares
    return shares


def tiered(case: dict) -> Decimal:
    asked = case["input"]
    if case["group"] == "tier.package":
        priced = row(asked["amount"], tier_mode="package", package_size=asked["size"], free_quantity=asked["free"])
    else:
        tiers = tuple(Tier(up_to, micro(unit), micro(fee)) for up_to, unit, fee in asked["tiers"])
        priced = row(tier_mode=case["group"].removeprefix("tier."), tiers=tiers)
    return from_micro(quote(Line("l", "p000", int(asked["qty"])), rows=[priced]).total)


def tax_of_lines(case: dict) -> list[Decimal] | Decimal:
    asked = case["input"]
    rounding = asked.get("rounding", "half-up").replace("-", "_")
    rows = [row(amount) for amount in asked["lines"]]
    priced = quote(rows=rows, rate=asked["rate"], rounding=rounding, tax_rounding=asked["mode"])
    return written(priced.net, priced.tax_total) if isinstance(case["expected"], list) else from_micro(priced.tax_total)


def odoo_net(case: dict) -> Decimal:
    rows = [row("30.75"), row(70, tax_category="high")]
    lines = [Line("a", "p000", 10, percent(5)), Line("b", "p001", 1, percent(5))]
    products = {f"p{n:03}": Product((one,)) for n, one in enumerate(rows)}
    rates = {"standard": percent(15), "high": percent(17)}
    return from_micro(price(Request("USD", "2026-01-01", tuple(lines), products, ("list",), rates)).net)


def odoo_modes(case: dict) -> list[Decimal]:
    rows = [row(amount) for amount in case["input"]["lines"]]
    return written(*(quote(rows=rows, rate=15, tax_rounding=mode).tax_total for mode in ("line", "group")))


def odoo_negative(case: dict) -> Decimal:
    """A quote has no negative lines; the table of taxes does not mind them."""
    taxes = TaxTable({"standard": percent(10)}, "group", MinorUnit("USD"))
    for amount in case["input"]["lines"]:
        taxes.add("standard", micro(amount))
    return from_micro(taxes.groups()[0].tax)


def saleor_gross(case: dict) -> list[Decimal]:
    outside = quote(rows=[row(10)], rate=23)
    inside = quote(rows=[row(10, tax_included=True)], rate=23)
    assert inside.total == micro(10)
    return written(outside.total, inside.net)


def vendure_line(case: dict) -> list[Decimal]:
    line = Line("l", "p000", case["input"]["qty"])
    priced = quote(line, rows=[row(case["input"]["listPrice"])], rate=20, currency="JPY")
    return written(priced.net, priced.total)


def gobl(case: dict) -> list[Decimal]:
    priced = quote(Line("l", "p000", 20, percent("12.5")), rows=[row("12.36")], rate=21)
    return written(priced.discount_total, priced.net, priced.tax_total, priced.total)


def ubl(case: dict) -> list[Decimal]:
    rows = [row(amount) for amount in (4300, 1250, 50, 50)]
    lines = [Line(f"l{n}", f"p{n:03}", 35) for n in range(4)]
    priced = quote(*lines, rows=rows, rate=25, currency="DKK")
    return written(priced.net, priced.tax_total, priced.total)


def line_discount(case: dict) -> Decimal:
    line = Line("l", "p000", 1, percent(case["input"]["pct"]))
    return from_micro(quote(line, rows=[row(case["input"]["price"])]).discount_total)


def two_promotions(case: dict) -> list[Decimal]:
    line = Line("l", "p000", 3, percent(50))
    priced = quote(line, rows=[row(800)], rate=20, currency="JPY", requested_discount=percent(10))
    return written(priced.net, priced.total)


def item_then_order(case: dict) -> list[Decimal]:
    line = Line("l", "p000", 1, percent(10))
    priced = quote(line, rows=[row(155880)], rate=20, currency="JPY", requested_discount=percent(10))
    customer = next(step.amount for step in priced.lines[0].steps if step.stage == Stage.LINE_DISCOUNT)
    return written(customer, priced.net, priced.total)


def nebula(case: dict) -> list[Decimal]:
    extra = Adjustment("additional", "amount", micro(30), "line")
    priced = quote(Line("l", "p000", 1, percent(20), adjustments=(extra,)), rows=[row(120)])
    return written(priced.subtotal, priced.net)


def chargebee(case: dict) -> list[Decimal]:
    return written(*(MinorUnit(code).round(micro("4.4556"), 10625, 1000) for code in ("USD", "JPY")))


def all_given_away(case: dict) -> list[Decimal]:
    priced = quote(Line("l", "p000", 1, percent(100)), rows=[row(1300, tax_included=True)], rate=20)
    return written(priced.net, priced.tax_total, priced.total)


def polar(case: dict) -> list[Decimal]:
    asked = case["input"]
    start, end, change = (date.fromisoformat(asked[name]) for name in ("start", "end", "change"))
    share = terms.part((start, end), change, end)
    return [prorated(asked["old"], share), prorated(asked["new"], share)]


def prorated(amount: int, share: Fraction) -> Decimal:
    return from_micro(MinorUnit("JPY").round(micro(amount) * share))


def polar_year(start: date, change: date) -> Decimal:
    period = (start, terms.add_months(start, 12))
    return prorated(100000, terms.part(period, change, period[1]))


def erpnext_from_the_eighth(case: dict) -> Decimal:
    start, end = date(2026, 4, 8), date(2026, 7, 1)
    tiles = terms.periods(date(2026, 4, 1), start, end, 1)
    share = sum(terms.part(tile, max(start, tile[0]), min(end, tile[1])) for tile in tiles)
    return from_micro(MinorUnit("USD").round(micro(3950) * share))


def erpnext_year(case: dict) -> Decimal:
    term = {"starts_on": "2026-08-03", "ends_on": "2027-08-02"}
    rows = [row(20, billing_period="monthly")]
    totals = {quote(rows=rows, part_periods=mode, **term).total for mode in PART_PERIODS}
    assert len(totals) == 1
    return from_micro(totals.pop())


def fifteen_months(case: dict) -> Decimal:
    return from_micro(quote(rows=[row(50, billing_period="yearly")], term_months=15).total)


def yearly_segments(case: dict) -> list[Decimal]:
    start = date(2026, 1, 1)
    end = terms.add_months(start, 39)
    tiles = terms.periods(start, start, end, 12)
    return [Decimal(len(tiles)), Decimal(terms.whole_months(tiles[-1][0], end))]


def day_of_period(case: dict) -> list[Decimal]:
    start, end = date(2025, 3, 28), date(2026, 2, 5)
    first = terms.periods(date(2025, 3, 5), start, end, 1)[0]
    share = terms.part(first, start, first[1])
    return [Decimal((end - start).days), Decimal(share.numerator), Decimal(share.denominator)]


BY_GROUP: dict[str, Callable[[dict], object]] = {
    "apportion": apportion,
    "tier.graduated": tiered,
    "tier.volume": tiered,
    "tier.package": tiered,
}
BY_CASE: dict[str, Callable[[dict], object]] = {
    "100 lines x 1.001 @20% rounding=line": tax_of_lines,
    "100 lines x 1.001 @20% rounding=document": tax_of_lines,
    "1.070 + 1.005 @100% rounding=line": tax_of_lines,
    "10x30.75-5% @15% + 70-5% @17% (issue text) per line": odoo_net,
    "both @15% per line vs global": odoo_modes,
    "54.45, 600, -500 @10% global": odoo_negative,
    "10.00 net @23%; 10.00 gross @23%": saleor_gross,
    "123x1 incl=False @20%": vendure_line,
    "123x3 incl=False @20%": vendure_line,
    "20x12.36 -12.5% @21%": gobl,
    "35x(4300,1250,50,50) @25% DKK": ubl,
    "3x800 two order promos 50% then 10%": two_promotions,
    "155880 item 10% then order 10%": item_then_order,
    "120 -30 additional, -20% partner": nebula,
    "4.4556 x 10.625": chargebee,
    "1300 gross incl tax, 100% discount": all_given_away,
    "yearly 2025-06-01 change 2025-08-13": lambda _: polar_year(date(2025, 6, 1), date(2025, 8, 13)),
    "yearly leap 2024-02-18 change 2024-04-19": lambda _: polar_year(date(2024, 2, 18), date(2024, 4, 19)),
    "3950/month, start 8 Apr, 3 months": erpnext_from_the_eighth,
    "20/month 2026-08-03..2027-08-02 = 12 months prorate on": erpnext_year,
    "$50 / 12 months, term 15": fifteen_months,
    "39-month term yearly segments": yearly_segments,
    "2025-03-28..2026-02-04 list 90 DayOfPeriod 5": day_of_period,
}


def reckoner(case: dict) -> Callable[[dict], object] | None:
    """How the case is put to the pricer; none for what a decision excludes."""
    if (case["group"], case["case"]) in EXCLUDED:
        return None
    if case["group"] == "discount" and "price" in case["input"]:
        return line_discount
    if case["group"] == "proration" and "change" in case["input"]:
        return polar
    return BY_GROUP.get(case["group"]) or BY_CASE[case["case"]]


TAKEN = [case for case in CASES if reckoner(case)]


@pytest.mark.parametrize("case", TAKEN, ids=lambda case: f"{case['group']}: {case['case']}")
def test_a_published_case_comes_out_as_published(case: dict):
    expected = case["expected"]
    reckon = reckoner(case)
    assert reckon is not None
    exact = [Decimal(str(value)) for value in expected] if isinstance(expected, list) else Decimal(str(expected))
    assert reckon(case) == exact


def test_only_named_cases_are_excluded_each_for_a_reason():
    known = {(case["group"], case["case"]) for case in CASES}
    taken = {(case["group"], case["case"]) for case in TAKEN}
    assert known - taken == set(EXCLUDED)
    assert len(CASES) == len(TAKEN) + len(EXCLUDED)
    assert all(EXCLUDED.values())


def test_whole_anniversary_months_are_never_reduced_where_another_system_counts_92_days_of_31():
    assert terms.factor("actual_days", date(2012, 3, 2), date(2012, 6, 2), 1) == 3
