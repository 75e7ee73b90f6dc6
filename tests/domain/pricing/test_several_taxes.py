"""G-09: several taxes on a line, side by side or on top of one another; the group is the tax, the code and the rate."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.money import from_micro
from cpq.base.rounding import MinorUnit
from cpq.base.text import plain_json, read_json
from cpq.domain.pricing import PricedQuote, price, result
from cpq.domain.pricing import request as pricing_request
from cpq.domain.pricing.request import EDITION, Component, Line, PriceRow, Product, Request, Tax
from cpq.domain.pricing.tax import shares

CENT = 10_000
PERCENT = 10**6
GST, QST = Tax("GST", "S", 5 * PERCENT), Tax("QST", "S", 9_975_000)
QST_ON_GST = Tax("QST", "S", 9_500_000, ("GST",))
TWO = {"standard": (GST, QST), "food": (Tax("GST", "Z", 0),), "book": (GST,)}


def quote(*lines: tuple[int, str], is_included: bool = False, **fields: Any) -> PricedQuote:
    """One unit of each line, of so many cents and of that tax category."""
    return price(asked(*lines, is_included=is_included, **fields))


def asked(*lines: tuple[int, str], is_included: bool = False, **fields: Any) -> Request:
    products = {
        f"p{number}": Product((PriceRow("row", cents * CENT, "list", tax_category=name, tax_included=is_included),))
        for number, (cents, name) in enumerate(lines)
    }
    wanted = tuple(Line(str(number + 1), f"p{number}", 1) for number in range(len(lines)))
    taxes = fields.pop("taxes", TWO)
    rates = {name: round(sum(shares(parts).values()) * 100 * PERCENT) for name, parts in taxes.items()}
    codes = {name: "S" if rate else "Z" for name, rate in rates.items()}
    request = Request("CAD", "2026-01-31", wanted, products, ("list",), rates, tax_codes=codes, edition=EDITION)
    return request._replace(taxes=taxes, **fields)


def told(priced: PricedQuote) -> list[tuple[Any, ...]]:
    return [
        (one.name, one.code, from_micro(one.rate), one.category, from_micro(one.base), from_micro(one.tax))
        for one in priced.tax_groups
    ]


def test_g09_each_tax_is_a_group_in_the_order_of_the_zone():
    priced = quote((10_000, "book"), (10_000, "standard"), (5_000, "food"))
    assert told(priced) == [
        ("GST", "S", 5, "book, standard", 200, 10),
        ("GST", "Z", 0, "food", 50, 0),
        ("QST", "S", Decimal("9.975"), "standard", 100, Decimal("9.98")),
    ]
    assert from_micro(priced.total) == Decimal("269.98")


def test_g09_a_tax_on_top_of_another_has_it_in_its_base():
    """As it was in Quebec until 2012: 9.5 % of 105.00."""
    priced = quote((10_000, "standard"), taxes={"standard": (GST, QST_ON_GST)})
    assert [one[4:] for one in told(priced)] == [(100, 5), (105, Decimal("9.98"))]
    assert quote((10_000, "standard"), taxes={"standard": (GST, QST)}).total == priced.total


@pytest.mark.parametrize(
    ("rounding", "expected"), [("group", ("0.18", "0.36")), ("line", ("0.18", "0.36")), ("document", ("0.18", "0.36"))]
)
def test_g09_groups_are_rounded_once_lines_each(rounding: str, expected: tuple[str, str]):
    priced = quote(*[(33, "standard")] * 11, tax_rounding=rounding)
    if rounding == "line":
        expected = ("0.22", "0.33")  # Eleven times 0.02 and 0.03.
    assert [str(from_micro(one.tax)) for one in priced.tax_groups] == list(expected)


def test_g09_a_price_that_includes_several_taxes_keeps_its_gross():
    priced = quote((11_498, "standard"), is_included=True)
    assert told(priced) == [
        ("GST", "S", 5, "standard", 100, 5),
        ("QST", "S", Decimal("9.975"), "standard", 100, Decimal("9.98")),
    ]
    on_top = quote((11_498, "standard"), is_included=True, taxes={"standard": (GST, QST_ON_GST)})
    assert [one[4:] for one in told(on_top)] == [(100, 5), (105, Decimal("9.98"))]


def test_g09_an_account_that_pays_no_tax_has_its_own_code_for_all():
    codes, reasons = dict.fromkeys(TWO, "E"), dict.fromkeys(TWO, "Reseller")
    account: dict[str, Any] = {"tax_status": "exempt", "tax_codes": codes, "tax_reasons": reasons}
    priced = quote((10_000, "standard"), (5_000, "food"), **account)
    assert told(priced) == [(None, "E", 0, "food, standard", 150, 0)]
    assert (priced.tax_note, priced.tax_total) == ("Reseller", 0)
    inside = quote((11_498, "standard"), is_included=True, **account)
    assert from_micro(inside.total) == 100, "what the price includes is taken out all the same"


def test_g09_a_bundle_of_several_categories_shares_its_amount_between_them():
    parts = {
        "box": Product((PriceRow("own", 0, "list"),), (Component("a", 1), Component("b", 1))),
        "a": Product((PriceRow("a", 3000 * CENT, "list"),)),
        "b": Product((PriceRow("b", 1000 * CENT, "list", tax_category="food"),)),
    }
    priced = price(asked((1, "standard"))._replace(lines=(Line("1", "box", 1),), products=parts))
    assert told(priced) == [
        ("GST", "S", 5, "standard", 30, Decimal("1.5")),
        ("GST", "Z", 0, "food", 10, 0),
        ("QST", "S", Decimal("9.975"), "standard", 30, Decimal("2.99")),
    ]


amounts = st.integers(1, 10**7)
rates = st.integers(0, 30 * PERCENT)
names = st.sampled_from(["standard", "food", "book"])


@st.composite
def zones(draw: Any) -> dict[str, tuple[Tax, ...]]:
    """Up to three taxes for each category, each on top of some of those before it."""
    found = {}
    order = ["GST", "PST", "city"]
    by_name = {name: draw(rates) for name in order}
    for category in ("standard", "food", "book"):
        chosen = [name for name in order if draw(st.booleans())] or order[:1]
        taxes: list[Tax] = []
        for name in chosen:
            below = tuple(tax.name for tax in taxes if draw(st.booleans()))
            taxes.append(Tax(name, "S" if by_name[name] else "Z", by_name[name], below))
        found[category] = tuple(taxes)
    return found


quotes = st.lists(st.tuples(amounts, names), min_size=1, max_size=8)


@given(quotes, zones(), st.randoms())
def test_g09_groups_are_what_their_lines_come_to_in_any_order(
    lines: list[tuple[int, str]], zone: dict[str, tuple[Tax, ...]], luck: Any
):
    priced = quote(*lines, taxes=zone)
    minor = MinorUnit("CAD")
    wanted: dict[tuple[str, str, int], Fraction] = {}
    for cents, category in lines:
        found = shares(zone[category])
        for tax in zone[category]:
            base = cents * CENT * (1 + sum((found[name] for name in tax.on_top_of), Fraction(0)))
            key = tax.name, tax.code, tax.rate
            wanted[key] = wanted.get(key, Fraction(0)) + base
    for one in priced.tax_groups:
        rounded = minor.round(wanted.pop((one.name or "", one.code or "", one.rate)))
        assert (one.base, one.tax) == (rounded, minor.round(rounded, one.rate, 100 * PERCENT))
    assert not wanted
    assert priced.total == sum(cents for cents, _ in lines) * CENT + sum(one.tax for one in priced.tax_groups)
    again = lines[:]
    luck.shuffle(again)
    assert quote(*again, taxes=zone).tax_groups == priced.tax_groups


@given(quotes, zones(), st.sampled_from(["group", "line", "document"]))
def test_g09_what_is_included_is_taken_out_and_no_cent_is_lost(
    lines: list[tuple[int, str]], zone: dict[str, tuple[Tax, ...]], rounding: str
):
    priced = quote(*lines, taxes=zone, is_included=True, tax_rounding=rounding)
    assert priced.total == sum(cents for cents, _ in lines) * CENT
    assert priced.net + sum(one.tax for one in priced.tax_groups) == priced.total
    for (cents, category), line in zip(lines, priced.lines, strict=True):
        exact = Fraction(cents * CENT) / (1 + sum(shares(zone[category]).values()))
        assert line.net == MinorUnit("CAD").round(exact)
    assert all(one.tax >= 0 for one in priced.tax_groups)


@given(quotes, zones(), st.sampled_from(["group", "line", "document"]))
def test_g09_a_stored_request_replays_to_the_same_bytes(
    lines: list[tuple[int, str]], zone: dict[str, tuple[Tax, ...]], rounding: str
):
    request = asked(*lines, taxes=zone, tax_rounding=rounding)
    stored = plain_json(pricing_request.dump(request))
    again = pricing_request.load(read_json(stored))
    assert again == request
    written = plain_json(result.dump(price(request)))
    assert plain_json(result.dump(price(again))) == written
    assert result.load(read_json(written)) == price(request)


@given(quotes, rates, st.sampled_from(["group", "line", "document"]), st.booleans())
def test_g09_a_single_tax_with_a_name_comes_to_what_it_does_without(
    lines: list[tuple[int, str]], rate: int, rounding: str, is_included: bool
):
    """So a zone that begins to name its tax changes no amount; one that names none keeps its bytes."""
    zone = dict.fromkeys(("standard", "food", "book"), (Tax("VAT", "S" if rate else "Z", rate),))
    named = quote(*lines, taxes=zone, tax_rounding=rounding, is_included=is_included)
    request = asked(*lines, taxes=zone, tax_rounding=rounding, is_included=is_included)._replace(taxes={})
    plain = price(request)
    assert [(one.base, one.tax) for one in named.tax_groups] == [(one.base, one.tax) for one in plain.tax_groups]
    assert named.total == plain.total
    assert "taxes" not in pricing_request.dump(request)
    assert all(len(group) == 6 for group in result.dump(plain)["tax_groups"])
