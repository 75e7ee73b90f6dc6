"""What cannot be priced is refused with a reason, and never comes out as 0."""

from typing import Any

import pytest

from cpq.base.errors import Code, CpqError
from cpq.domain.pricing import price, refusals
from cpq.domain.pricing.request import Component, Line, PriceRow, Product, Request, Segment

MILLION = 10**6


def row(unit_price: int = 10 * MILLION, **fields: Any) -> PriceRow:
    return PriceRow("row", unit_price, **{"price_book_id": "list", **fields})


def request(line: Line | None = None, **products: Product | PriceRow) -> Request:
    known = {id_: Product((one,)) if isinstance(one, PriceRow) else one for id_, one in products.items()}
    return Request("USD", "2026-01-01", (line or Line("l", "p", 1),), known, ("list",), {"standard": 19 * MILLION})


def bundle(*components: str, **fields: Any) -> Product:
    return Product((row(0, **fields),), tuple(Component(id_, 1) for id_ in components))


def included(**fields: Any) -> PriceRow:
    return row(tax_included=True, **fields)


def agreed(listed: PriceRow, unit_price: int, **fields: Any) -> Product:
    """A list price, and another one that the account agreed on."""
    return Product((listed, row(unit_price, price_book_id=None, account_id="acme", **fields)))


GOLD = {"seat": {"gold": 60 * MILLION}}
SEAT = Line("l", "p", 1, choices={"seat": "gold"})
YEARLY = row(120 * MILLION, billing_period="yearly", surcharges=GOLD, cost=60 * MILLION)
RAMP = Line("l", "p", 1, ramp=(Segment(12), Segment(12, unit_price=MILLION)))
MANY = Line("l", "p", 1_000_000)
REDUCED = {"standard": 19 * MILLION, "reduced": 7 * MILLION}


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (request(p=Product(())), Code.CURRENCY_MISMATCH, "p has no price in USD"),
        (request(p=row(valid_to="2025-12-31")), Code.CURRENCY_MISMATCH, "p has no price in USD"),
        (request(p=row(valid_from="2026-01-02")), Code.CURRENCY_MISMATCH, "p has no price in USD"),
        (request(p=row(price_book_id="other")), Code.CURRENCY_MISMATCH, "p has no price in USD"),
        (request(p=bundle("a"), a=Product(())), Code.CURRENCY_MISMATCH, "a has no price in USD"),
        (request(p=row(tax_category="books")), Code.CONFLICT, "tax category books, which has no rate"),
        (request(RAMP, p=row()), Code.VALIDATION_ERROR, "a ramp is for prices that recur"),
        (request(RAMP, p=bundle("a"), a=row()), Code.VALIDATION_ERROR, "a ramp is for prices that recur"),
        (request(p=bundle("a", "b"), a=row(), b=included()), Code.VALIDATION_ERROR, "do not all treat tax alike"),
        (
            request(p=bundle("a", "b"), a=included(), b=included(tax_category="reduced"))._replace(tax_rates=REDUCED),
            Code.VALIDATION_ERROR,
            "do not all treat tax alike",
        ),
        (request(p=bundle("a"), a=bundle("b"), b=row()), Code.CONFLICT, "itself priced by its components"),
        (request(MANY, p=row(10**18)), Code.VALIDATION_ERROR, "amount is larger than the maximum"),
        (
            request(MANY, p=Product((row(10**18), row(1, price_book_id=None, account_id="acme")))),
            Code.VALIDATION_ERROR,
            "amount is larger than the maximum",
        ),
        (
            request(SEAT, p=agreed(YEARLY, 9, billing_period="monthly")),
            Code.CONFLICT,
            "surcharges of options do not fit",
        ),
        (request(SEAT, p=agreed(row(surcharges=GOLD), 9, tax_included=True)), Code.CONFLICT, "do not fit"),
        (
            request(SEAT, p=agreed(YEARLY, 9, billing_period="monthly", surcharges={"seat": {"gold": -10}})),
            Code.VALIDATION_ERROR,
            "of p is below zero with the chosen options",
        ),
        (request(MANY, p=row(1, cost=10**18)), Code.VALIDATION_ERROR, "amount is larger than the maximum"),
    ],
)
def test_what_cannot_be_priced_is_refused(asked: Request, code: Code, message: str):
    with pytest.raises(CpqError, match=message) as refused:
        price(asked)
    assert refused.value.code is code


def test_all_lines_that_cannot_be_priced_are_told_with_their_ids():
    lines = (
        Line("fine", "a", 1),
        Line("ramp", "a", 1, ramp=(Segment(12),)),
        Line("mixed", "m", 1),
        Line("nested", "n", 1),
        Line("none", "z", 1),
        Line("untaxed", "u", 1),
    )
    untaxed = row(tax_category="books")
    asked = request(a=row(), g=included(), m=bundle("a", "g"), n=bundle("m"), u=untaxed, z=Product(()))
    asked = asked._replace(lines=lines)
    told = [(error.code, error.details["line"], error.details["field"]) for error in refusals(asked)]
    assert told == [
        (Code.VALIDATION_ERROR, "ramp", "/ramp"),
        (Code.VALIDATION_ERROR, "mixed", "/product_id"),
        (Code.CONFLICT, "nested", "/product_id"),
        (Code.CURRENCY_MISMATCH, "none", "/product_id"),
        (Code.CONFLICT, "untaxed", "/product_id"),
    ]
    with pytest.raises(CpqError) as refused:
        price(asked)
    assert refused.value.details["line"] == "ramp"


def test_what_is_wrong_with_the_term_is_not_told_of_every_line():
    asked = request(p=row(billing_period="yearly"))._replace(starts_on="2026-01-01", ends_on="2026-01-15")
    assert refusals(asked) == []
    with pytest.raises(CpqError, match="whole number of months") as refused:
        price(asked)
    assert "line" not in refused.value.details


def test_an_account_that_pays_no_tax_needs_no_rate_unless_tax_has_to_be_taken_out():
    asked = request(p=row(tax_category="books"))._replace(tax_status="exempt", tax_note="Exempt")
    assert price(asked).total == 10 * MILLION
    with pytest.raises(CpqError, match="has no rate"):
        price(asked._replace(products={"p": Product((included(tax_category="books"),))}))


def test_a_placeholder_price_of_a_bundle_says_nothing_about_tax_or_period():
    asked = request(p=bundle("a"), a=included(billing_period="yearly"))._replace(term_months=12)
    (line,) = price(asked).lines
    assert (line.billing_period, line.steps[-1].source) == ("yearly", "standard, included")
    assert price(asked).total == 10 * MILLION


def test_the_own_price_of_a_bundle_by_components_is_not_added_to_theirs():
    own = Product((row(500 * MILLION, cost=None),), (Component("a", 3),))
    priced = price(request(p=own, a=row(cost=4 * MILLION)))
    assert (priced.subtotal, priced.cost) == (30 * MILLION, 12 * MILLION)


def test_what_is_taken_off_a_bundle_is_taken_off_its_components():
    own = bundle("a", surcharges={"dryer": {"none": -4 * MILLION, "nothing": -99 * MILLION}})
    for choice, expected in (("none", 6 * MILLION), ("nothing", 0)):
        line = Line("l", "p", 1, choices={"dryer": choice})
        assert price(request(line, p=own, a=row())).subtotal == expected


def test_a_surcharge_on_a_price_of_nothing_has_an_unknown_cost():
    free = row(0, cost=0, surcharges={"color": {"red": MILLION}})
    (line,) = price(request(Line("l", "p", 1, choices={"color": "red"}), p=free)).lines
    assert (line.regular, line.cost, line.margin) == (MILLION, None, None)


def test_options_of_an_account_s_own_price_are_billed_as_often_as_it_is():
    """Beside a list price by the year: 12 times 9 and 4 here, 120 and 60 there, and half of that is our cost."""
    own = {"seat": {"gold": 4 * MILLION}}
    asked = request(SEAT, p=agreed(YEARLY, 9 * MILLION, billing_period="monthly", surcharges=own))
    (line,) = price(asked._replace(term_months=12)).lines
    assert (line.regular, line.list_amount, line.cost) == (156 * MILLION, 180 * MILLION, 90 * MILLION)


@pytest.mark.parametrize(("listed", "own"), [(row(100 * MILLION), 119), (included(), 100)])
def test_an_account_s_price_with_tax_is_compared_with_the_list_price_without(listed: PriceRow, own: int):
    is_included = not listed.tax_included
    listed = listed._replace(unit_price=(119 if listed.tax_included else 100) * MILLION)
    (line,) = price(request(p=agreed(listed, own * MILLION, tax_included=is_included))).lines
    assert (line.list_amount, line.net, line.discount_off_list) == (100 * MILLION, 100 * MILLION, 0)
