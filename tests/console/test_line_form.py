"""The form of a line: which way the product is sold, and quantities that are not whole; without JavaScript."""

import html
import re

import pytest

from tests.console.test_whole_deal import created, done, fill
from tests.support.console import Console
from tests.support.quotes import ACME, new_quote, stored
from tests.tools.test_fine_quantities import hours
from tests.tools.test_selling_models import MONTHLY, YEARLY, made_product


def choices(page: str) -> list[str]:
    """What the field of the selling model offers, the chosen one with a star."""
    found = re.search(r'<select id="selling_model"[^>]*>(.*?)</select>', page, re.DOTALL)
    if not found:
        return []
    options = re.findall(r"<option value=\"[^\"]*\"( selected)?>([^<]*)", found[1])
    return [html.unescape(text) + ("*" if chosen else "") for chosen, text in options]


def test_a_line_of_a_product_sold_in_several_ways_is_chosen_in_the_form(console: Console):
    """What the user saw: the form refused the product and had no field to say which price is meant."""
    rosa = console.signed_in("rosa", "sales_rep")
    product = made_product(console.app, MONTHLY, YEARLY)
    address = f"/console/quotes/new?account_id={ACME}&product_id={product}"
    assert choices(rosa.get(address).text) == ["choose", "Monthly: 12.00 USD", "Yearly: 100.00 USD"]
    refused = fill(rosa, address, quantity="2", term_months="12")
    assert refused.status_code == 400
    assert re.search(r'id="problem-selling_model"[^>]*>[^<]*is sold in several ways', refused.text)
    quote_id = created(fill(rosa, address, quantity="2", term_months="12", selling_model="yearly"))
    line = f"/console/quotes/{quote_id}/lines/{quote_id}-ql-1"
    assert choices(rosa.get(line).text) == ["choose", "Monthly: 12.00 USD", "Yearly: 100.00 USD*"]
    done(rosa, line, quantity="2", selling_model="monthly")
    done(rosa, f"/console/quotes/{quote_id}/lines/new?product_id={product}", quantity="1", selling_model="yearly")
    lines = console.tools("quote_get", quote_id=quote_id)["line_items"]
    assert [(one["selling_model"], one["quantity"]) for one in lines] == [("monthly", 2), ("yearly", 1)]


def test_the_form_names_the_usual_way_and_asks_nothing_where_there_is_one(sqlite_console: Console):
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    quote_id = new_quote(sqlite_console.tools)
    usual = made_product(sqlite_console.app, MONTHLY, YEARLY, default_selling_model="yearly")
    address = f"/console/quotes/{quote_id}/lines/new?product_id="
    assert choices(rosa.get(address + usual).text)[0] == "as usual: Yearly"
    done(rosa, address + usual, quantity="1")
    assert sqlite_console.tools("quote_get", quote_id=quote_id)["line_items"][1]["selling_model"] == "yearly"
    assert choices(rosa.get(address + made_product(sqlite_console.app, MONTHLY)).text) == []


def test_two_and_a_half_hours_are_typed_and_shown(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    product = hours(console.app)
    address = f"/console/quotes/new?account_id={ACME}&product_id={product}"
    assert "(hour, up to 3 decimals)" in rosa.get(address).text
    quote_id = created(fill(rosa, address, quantity="2.5"))
    line = f"/console/quotes/{quote_id}/lines/{quote_id}-ql-1"
    assert 'name="quantity" type="text" value="2.5"' in rosa.get(line).text
    assert '<td class="n">0.125</td>' in done(rosa, line, quantity="0,125")
    assert console.tools("quote_get", quote_id=quote_id)["line_items"][0]["quantity"] == 0.125


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("2.5", "must be whole"),
        ("1,5", "must be whole"),
        ("nan", "A whole number from 1 to 1,000,000."),
        ("-1", "A whole number from 1 to 1,000,000."),
        ("1000001", "A whole number from 1 to 1,000,000."),
    ],
)
def test_a_quantity_that_the_product_does_not_take_is_refused(sqlite_console: Console, typed: str, said: str):
    """A decimal comma is never read as a separator of thousands: 1,5 was 15."""
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    quote_id = new_quote(sqlite_console.tools)
    before = stored(sqlite_console.app)["quote_line"]
    refused = fill(rosa, f"/console/quotes/{quote_id}/lines/new?product_id=prod_qvs40", quantity=typed)
    assert refused.status_code == 400
    assert re.search(rf'id="problem-quantity"[^>]*>[^<]*{re.escape(said)}', refused.text), refused.text
    assert stored(sqlite_console.app)["quote_line"] == before


def test_thousands_are_typed_with_a_comma_unless_it_is_in_doubt(sqlite_console: Console):
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    quote_id = new_quote(sqlite_console.tools)
    line = f"/console/quotes/{quote_id}/lines/{quote_id}-ql-1"
    done(rosa, line, quantity="1,000")
    assert sqlite_console.tools("quote_get", quote_id=quote_id)["line_items"][0]["quantity"] == 1000
    address = f"/console/quotes/{quote_id}/lines/new?product_id={hours(sqlite_console.app)}"
    doubtful = fill(rosa, address, quantity="1,500")
    assert doubtful.status_code == 400
    assert "1,500 can mean 1500 or 1.500" in doubtful.text


def test_g02_an_item_of_no_catalogue_is_added_renamed_and_refused_in_the_form(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    quote_id = new_quote(console.tools)
    choice = rosa.get(f"/console/quotes/{quote_id}/lines/new").text
    address = f"/console/quotes/{quote_id}/lines/new?product_id=custom"
    assert address in html.unescape(choice)
    before = stored(console.app)
    refused = fill(rosa, address, quantity="2", item_name="", unit_price="")
    assert refused.status_code == 400
    assert 'id="problem-item_name"' in refused.text
    assert 'id="problem-unit_price"' in refused.text
    assert stored(console.app) == before
    done(rosa, address, quantity="2", item_name="Freight", unit_price="480", item_unit="trip", item_cost="400")
    line = f"/console/quotes/{quote_id}/lines/{quote_id}-ql-2"
    shown = rosa.get(line).text
    assert 'name="item_name" type="text" value="Freight"' in shown
    assert "item_cost" not in shown, "who may not see costs does not"
    done(rosa, line, quantity="2", item_name="Freight and crane", unit_price="500")
    fred = console.signed_in("fred", "finance", "sales_rep")
    assert 'name="item_cost" type="text" value="400"' in fred.get(line).text
    custom = console.tools("quote_get", quote_id=quote_id)["line_items"][1]["custom"]
    assert (custom["name"], custom["unit_price"], custom["unit"]) == ("Freight and crane", 500, "trip")


def test_g07_a_commitment_is_typed_shown_and_taken_back(sqlite_console: Console):
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    address = f"/console/quotes/new?account_id={ACME}&product_id=prod_use_api"
    assert "(API call, for each period of the rate card)" in rosa.get(address).text
    refused = fill(rosa, address, quantity="1", committed_quantity="5", committed_amount="5", term_months="12")
    assert re.search(r'id="problem-committed_quantity"[^>]*>[^<]*a quantity or an amount, not both', refused.text)
    quote_id = created(fill(rosa, address, quantity="1", committed_quantity="260,000", term_months="12"))
    page = html.unescape(rosa.get(f"/console/quotes/{quote_id}").text)
    assert "graduated per API call, monthly; to 100000 0.002" in page
    assert "The total includes the commitment of 260,000 × API call a month" in page
    line = f"/console/quotes/{quote_id}/lines/{quote_id}-ql-1"
    form = rosa.get(line).text
    assert 'name="committed_quantity" type="text" value="260000"' in form
    assert '<option value="monthly" selected>month' in form
    shown = done(rosa, line, quantity="1", committed_quantity="", committed_per="", expected_quantity="2000")
    assert "nothing for it is in the total" in shown
    assert sqlite_console.tools("quote_get", quote_id=quote_id)["line_items"][0]["expected_quantity"] == 2000
    assert "committed_quantity" not in rosa.get(f"/console/quotes/new?account_id={ACME}&product_id=prod_qvs40").text
