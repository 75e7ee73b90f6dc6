"""Tax groups: one for each category code and rate, rounded once, as EN 16931 has them; old requests keep theirs."""

import json
from typing import Any

import pytest

from cpq.domain.pricing import PricedQuote, price, result
from cpq.domain.pricing.request import EDITION, Component, Line, PriceRow, Product, Request
from cpq.domain.pricing.result import TaxGroup

CENT = 10_000
PERCENT = 10**6
RATES = {"standard": 19 * PERCENT, "service": 19 * PERCENT, "saas": 19 * PERCENT, "food": 7 * PERCENT, "book": 0}
CODES = {"standard": "S", "service": "S", "saas": "S", "food": "S", "book": "Z"}


def quote(*lines: tuple[int, str], is_included: bool = False, **fields: Any) -> PricedQuote:
    """One unit of each line, of so many cents and of that tax category."""
    products = {
        f"p{number}": Product((PriceRow("row", cents * CENT, "list", tax_category=name, tax_included=is_included),))
        for number, (cents, name) in enumerate(lines)
    }
    asked = tuple(Line(str(number + 1), f"p{number}", 1) for number in range(len(lines)))
    request = Request("EUR", "2026-01-31", asked, products, ("list",), RATES, tax_codes=CODES, edition=EDITION)
    return price(request._replace(**fields))


def group(code: str, categories: str, rate: int, base: int, tax: int, reason: str | None = None) -> TaxGroup:
    return TaxGroup(categories, rate * PERCENT, base * CENT, tax * CENT, code, reason)


def test_q27b_three_categories_at_19_percent_are_one_group_rounded_once():
    """Apart they would come to a cent each, 0.03; together 19 % of 0.09 is 0.0171."""
    priced = quote((3, "standard"), (3, "service"), (3, "saas"))
    assert priced.tax_groups == (group("S", "saas, service, standard", 19, 9, 2),)
    apart = quote((3, "standard"), (3, "service"), (3, "saas"), tax_codes={})
    assert [one[3] for one in apart.tax_groups] == [CENT, CENT, CENT]


def test_q27b_groups_stand_by_rate_and_code():
    priced = quote((100, "book"), (100, "food"), (100, "saas"), (50, "book"))
    assert priced.tax_groups == (
        group("S", "saas", 19, 100, 19),
        group("S", "food", 7, 100, 7),
        group("Z", "book", 0, 150, 0),
    )


def test_q27b_groups_of_one_rate_and_two_codes_stay_apart_and_say_why():
    codes = {"book": "E", "food": "G"}
    rates = {"book": 0, "food": 0}
    reasons = {"book": "Article 132", "food": "Export"}
    priced = quote((5, "book"), (7, "food"), tax_codes=codes, tax_rates=rates, tax_reasons=reasons)
    assert priced.tax_groups == (group("E", "book", 0, 5, 0, "Article 132"), group("G", "food", 0, 7, 0, "Export"))
    assert priced.tax_note == "Article 132; Export"


def test_q27b_an_account_that_declares_the_tax_itself_has_one_group():
    codes, reasons = dict.fromkeys(RATES, "AE"), dict.fromkeys(RATES, "Reverse charge")
    account: dict[str, Any] = {"tax_status": "reverse_charge", "tax_codes": codes, "tax_reasons": reasons}
    priced = quote((5, "book"), (7, "food"), (9, "saas"), **account)
    assert priced.tax_groups == (group("AE", "book, food, saas", 0, 21, 0, "Reverse charge"),)
    assert (priced.tax_total, priced.tax_note) == (0, "Reverse charge")


@pytest.mark.parametrize(("rounding", "taxes"), [("group", [2]), ("line", [3]), ("document", [2])])
def test_the_other_ways_of_rounding_have_the_same_groups(rounding: str, taxes: list[int]):
    priced = quote((3, "standard"), (3, "service"), (3, "saas"), tax_rounding=rounding)
    assert [(one.code, one.base // CENT, one.tax // CENT) for one in priced.tax_groups] == [("S", 9, taxes[0])]


def test_prices_that_include_tax_are_in_the_group_of_their_rate():
    """Taken out line by line: 3 cents are 3 without tax, and nothing is left for the tax."""
    priced = quote((119, "standard"), (3, "service"), (3, "saas"), is_included=True)
    assert priced.tax_groups == (group("S", "saas, service, standard", 19, 106, 19),)
    assert priced.total == 125 * CENT


def test_a_bundle_of_one_group_is_not_split_between_its_categories():
    rows = [PriceRow("row", 33_333, "list", tax_category=name) for name in ("standard", "service", "food")]
    products = {f"p{number}": Product((row,)) for number, row in enumerate(rows)}
    inside = tuple(Component(id_, 1) for id_ in products)
    products["bundle"] = Product((PriceRow("own", 0, "list"),), inside)
    request = Request("EUR", "2026-01-31", (Line("1", "bundle", 1),), products, ("list",), RATES)
    together = price(request._replace(tax_codes=CODES, edition=EDITION))
    assert together.tax_groups == (group("S", "service, standard", 19, 7, 1), group("S", "food", 7, 3, 0))
    assert [one[:4] for one in price(request).tax_groups] == [
        ("food", 7 * PERCENT, 4 * CENT, 0),
        ("service", 19 * PERCENT, 3 * CENT, CENT),
        ("standard", 19 * PERCENT, 3 * CENT, CENT),
    ]


def test_a_result_without_codes_is_stored_as_before_and_one_with_codes_comes_back():
    old, new = quote((3, "saas"), tax_codes={}, edition=1), quote((3, "saas"))
    for priced, stored in ((old, ["saas", 19 * PERCENT, 30_000, 10_000]), (new, [*old.tax_groups[0][:4], "S", None])):
        text = json.dumps(result.dump(priced))
        assert json.loads(text)["tax_groups"] == [stored]
        assert result.load(json.loads(text)) == priced
        assert json.dumps(stored) in json.dumps(result.shown(priced))


def test_odd_cents_of_equal_lines_go_by_line_number():
    """Twelve equal lines share 5 cents: the first five get them, and 10 is not before 2."""
    products = {"p": Product((PriceRow("row", 10 * CENT, "list"),))}
    lines = tuple(Line(str(number), "p", 1) for number in range(1, 13))
    request = Request("EUR", "2026-01-31", lines, products, ("list",), {"standard": 0}, requested_discount=4_166_667)
    for edition, lucky in ((EDITION, ["1", "2", "3", "4", "5"]), (1, ["1", "10", "11", "12", "2"])):
        for asked in (lines, lines[::-1]):
            priced = price(request._replace(edition=edition, lines=asked))
            assert priced.discount_total == 5 * CENT
            assert sorted(line.id for line in priced.lines if line.discount_amount) == lucky


def test_halves_of_negative_amounts_round_away_from_zero_in_the_steps():
    """An option takes a millionth a year off a bundle, half of one in half a year; steps show whole ones."""
    frame = PriceRow("own", 0, "list", billing_period="yearly", surcharges={"color": {"red": -1}})
    inside = PriceRow("row", 12 * CENT, "list", billing_period="yearly")
    products = {"bundle": Product((frame,), (Component("p", 1),)), "p": Product((inside,))}
    line = Line("1", "bundle", 1, choices={"color": "red"})
    request = Request("EUR", "2026-01-31", (line,), products, ("list",), {"standard": 0}, term_months=6)
    shown = {}
    for edition in (1, EDITION):
        steps = price(request._replace(edition=edition)).lines[0].steps
        shown[edition] = [step.amount for step in steps if step.stage == "term" and step.amount <= 0]
    assert shown == {1: [0], EDITION: [-1]}
