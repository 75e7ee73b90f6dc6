"""Selling models: a line picks one, never by the order of ids, and a price without an end is charged for one period."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.errors import Code, CpqError
from cpq.domain.pricing import PriceSelection, price
from cpq.domain.pricing import request as requests_
from cpq.domain.pricing.period_prices import in_words, period_prices
from cpq.domain.pricing.request import Component, Line, PriceRow, Product, Request, Segment
from cpq.domain.pricing.selling_models import fits, is_evergreen, pick, pick_part

MILLION = 10**6
MONTHLY = PriceRow("b", 12 * MILLION, "list", billing_period="monthly")
YEARLY = PriceRow("a", 100 * MILLION, "list", billing_period="yearly")
ENDLESS = PriceRow("c", 13 * MILLION, "list", billing_period="monthly", is_evergreen=True)
PREPAID = PriceRow("d", 90 * MILLION, "list", billing_period="yearly", name="prepaid")
AGREED = PriceRow("e", 80 * MILLION, account_id="acme", billing_period="yearly")


def request_of(*rows: PriceRow, term_months: int | None = 12, **line: object) -> Request:
    lines = (Line("1", "p", 2, **line),)  # type: ignore[arg-type]
    return Request(
        "USD", "2026-01-31", lines, {"p": Product(rows)}, ("list",), {"standard": 0}, term_months=term_months
    )


def picked(rows: Sequence[PriceRow], asked: str | None = None, default: str | None = None) -> str:
    return pick(PriceSelection(request_of(*rows)), "p", asked, default)


@pytest.mark.parametrize(
    ("asked", "model"),
    [
        ("monthly", "monthly"),
        ("Monthly ", "monthly"),
        ("yearly", "yearly"),
        ("monthly_evergreen", "monthly_evergreen"),
        ("evergreen", "monthly_evergreen"),
        ("prepaid", "yearly:prepaid"),
        ("Yearly:Prepaid", "yearly:prepaid"),
    ],
)
def test_g01_a_line_picks_by_period_kind_or_name(asked: str, model: str):
    assert picked([MONTHLY, YEARLY, ENDLESS, PREPAID], asked) == model


@pytest.mark.parametrize("asked", [None, "term"])
def test_g01_several_that_fit_are_refused_with_their_prices(asked: str | None):
    with pytest.raises(CpqError) as refused:
        picked([MONTHLY, YEARLY], asked)
    assert refused.value.code is Code.VALIDATION_ERROR
    assert refused.value.message == "p is sold in several ways: monthly at USD 12.00, yearly at USD 100.00."
    assert refused.value.details["allowed"] == ["monthly", "yearly"]
    assert refused.value.details["choices"] == [
        {"selling_model": "monthly", "billing_period": "monthly", "unit_price": 12, "currency": "USD"},
        {"selling_model": "yearly", "billing_period": "yearly", "unit_price": 100, "currency": "USD"},
    ]


def test_g01_a_model_that_the_product_does_not_have_is_refused_with_those_it_has():
    with pytest.raises(CpqError) as refused:
        picked([MONTHLY, YEARLY], "yaerly")
    assert refused.value.message == "p is not sold as 'yaerly': monthly at USD 12.00, yearly at USD 100.00."
    assert refused.value.details["nearest"] == ["yearly"]


def test_g01_the_default_decides_between_what_fits_and_never_against_the_line():
    assert picked([MONTHLY, YEARLY], default="yearly") == "yearly"
    assert picked([MONTHLY, YEARLY], "monthly", default="yearly") == "monthly"
    assert (
        picked([YEARLY._replace(id="z", name="x"), PREPAID, MONTHLY], "yearly", default="prepaid") == "yearly:prepaid"
    )


def test_g01_with_one_model_there_is_nothing_to_pick():
    assert picked([YEARLY]) == picked([YEARLY], "yearly") == picked([YEARLY], "term") == ""


def test_g01_a_contracted_price_follows_the_choice():
    selection = PriceSelection(request_of(MONTHLY, YEARLY, AGREED))
    assert selection.of("p", pick(selection, "p", "yearly", None)).charged is AGREED
    assert selection.of("p", pick(selection, "p", "monthly", None)).charged is MONTHLY


def test_a_contracted_price_that_bills_in_another_way_than_the_list_replaces_it_as_before():
    assert picked([MONTHLY, AGREED]) == picked([MONTHLY, AGREED], "yearly") == ""
    assert picked([MONTHLY, AGREED], "monthly") == "monthly"


@given(st.permutations(["a", "b", "c", "d"]), st.sampled_from([None, "monthly", "yearly", "prepaid", "evergreen"]))
def test_g01_the_choice_never_depends_on_the_ids_of_the_rows(ids: list[str], asked: str | None):
    rows = [row._replace(id=id_) for row, id_ in zip([MONTHLY, YEARLY, ENDLESS, PREPAID], ids, strict=True)]
    if asked is None:
        with pytest.raises(CpqError):
            picked(rows)
        return
    model = picked(rows, asked)
    amounts = [step.amount for step in price(request_of(*rows, selling_model=model)).lines[0].steps]
    same = request_of(MONTHLY, YEARLY, ENDLESS, PREPAID, selling_model=model)
    assert amounts == [step.amount for step in price(same).lines[0].steps]


def test_g01_a_price_without_an_end_is_charged_for_one_period_whatever_the_term():
    for months in (None, 1, 12, 36):
        request = request_of(ENDLESS, term_months=months)
        line = price(request).lines[0]
        assert line.regular == 2 * 13 * MILLION
        found = period_prices(request, [line])["1"]
        assert found.unit_price == 13 * MILLION
        assert found.periods.as_integer_ratio() == (1, 1)
    assert in_words("13.00", "monthly", 1, has_term=True, has_end=False) == "13.00 a month, until cancelled"


def test_g01_a_ramp_of_a_price_without_an_end_is_refused():
    with pytest.raises(CpqError) as refused:
        price(request_of(ENDLESS, ramp=(Segment(12, 2),)))
    assert refused.value.details["field"] == "/ramp"


def test_g01_a_component_follows_its_bundle_or_its_own_default():
    bundle = PriceRow("box", 0, "list", billing_period="yearly")
    products = {"p": Product((bundle,), (Component("part", 1),)), "part": Product((MONTHLY, YEARLY))}
    request = request_of(bundle)._replace(products=products)
    selection = PriceSelection(request)
    assert pick_part(selection, "part", "yearly", None) == "yearly"
    assert pick_part(selection, "part", "quarterly", "monthly") == "monthly"
    with pytest.raises(CpqError):
        pick_part(selection, "part", "quarterly", None)
    for model, regular in (("yearly", 200), ("monthly", 288)):
        line = request.lines[0]._replace(part_models={"part": model})
        assert price(request._replace(lines=(line,))).lines[0].regular == regular * MILLION


def test_the_chosen_model_is_in_the_stored_request_only_where_there_was_a_choice():
    plain, chosen = request_of(YEARLY), request_of(MONTHLY, YEARLY, selling_model="yearly")
    assert "selling_model" not in requests_.dump(plain)["lines"][0]
    assert requests_.load(requests_.dump(chosen)) == chosen
    assert price(chosen).total == price(plain).total == 200 * MILLION


@given(st.sampled_from(["monthly", "yearly", "one_time"]), st.booleans(), st.sampled_from(["", "prepaid", "Gold"]))
def test_every_model_fits_its_own_word(period: str, is_endless: bool, name: str):
    row = PriceRow("r", 1, "list", billing_period=period, is_evergreen=is_endless, name=name)
    assert fits(row.selling_model, row.selling_model)
    assert is_evergreen(row.selling_model) == is_endless
