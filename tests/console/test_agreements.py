"""What an account owns, on its page and on that of its agreement; amend and renew by form (A-10 to A-13)."""

import re
from typing import Any

import pytest

from cpq.services.reports.figures import figures
from tests.support.approvals import person
from tests.support.console import Console, form_token
from tests.support.quotes import sent_quote

PAGE = "/console/accounts/acct_acme_001"


@pytest.fixture
def sold(console: Console) -> str:
    seller = person(console.app, "rita", "sales_rep")
    return str(seller("quote_accept", quote_id=sent_quote(seller), expected_version=1)["agreement_id"])


def test_a10_the_page_of_an_account_shows_what_it_owns(console: Console, sold: str):
    dana = console.signed_in("dana", "sales_manager")
    page = dana.get(PAGE).text
    assert "Owns today" in page
    assert f"/console/agreements/{sold}" in page
    assert "1,500.00" in page
    assert 'class="chart timeline broad"' in page
    assert "SO-20" in page


def test_a10_the_page_of_an_account_compares_its_revenue_with_a_year_ago(console: Console, sold: str):
    dana = console.signed_in("dana", "sales_manager")
    page = dana.get(PAGE).text
    assert re.search(
        r'ARR against 12 months ago</dt><dd>\+1,500\.00 <span class="unit">USD</span><small>0\.00 USD', page
    )
    console.app.effects.advance(days=364)  # type: ignore[attr-defined] # A clock that tests move.
    seller = person(console.app, "rex", "sales_rep")
    small = {"product_id": "prod_pro_v2", "quantity": 10}
    seller("quote_accept", quote_id=sent_quote(seller, small), expected_version=1)
    console.app.effects.advance(days=2)  # type: ignore[attr-defined]
    dina = console.signed_in("dina", "sales_manager")  # The first session is over.
    page = dina.get(PAGE).text
    assert sold not in re.findall(r'<h3><a href="/console/agreements/([^"]+)"', page)
    assert re.search(r"ARR against 12 months ago</dt><dd>−1,400\.00 [^\n]*<small>1,500\.00 USD on 20", page), page


def test_a10_the_page_of_an_account_leads_to_the_forms_of_each_agreement(console: Console, sold: str):
    rita = console.signed_in("rita", "sales_rep")
    page = rita.get(PAGE).text
    form = rita.get(f"/console/agreements/{sold}").text
    for place in ("amend", "renew"):
        assert f'href="/console/agreements/{sold}#{place}"' in page
        assert f'id="{place}"' in form
    seen = console.signed_in("lee", "legal").get(PAGE)
    assert (seen.status_code, "#amend" in seen.text) == (200, False)


def test_a10_the_page_of_an_agreement_shows_any_day(console: Console, sold: str):
    dana = console.signed_in("dana", "sales_manager")
    assert "Owned on" in dana.get(f"/console/agreements/{sold}").text
    assert "Nothing of this agreement is owned" in dana.get(f"/console/agreements/{sold}?as_of=2099-01-01").text
    assert dana.get("/console/agreements/A-none").status_code == 404


def test_a12_a_form_makes_the_draft_and_its_page_shows_the_difference_first(console: Console, sold: str):
    rita = console.signed_in("rita", "sales_rep")
    address = f"/console/agreements/{sold}"
    page = rita.get(address).text
    line = re.search(r'<option value="(O-[^"]+)"', page)
    day = re.search(r'name="effective_date" type="date" value="([^"]+)"', page)
    assert line, page
    assert day, page
    form = {"form_token": form_token(page), "line_id": line[1], "effective_date": day[1], "quantity": "200"}
    answer = rita.post(f"{address}/amend", data=form)
    assert answer.status_code == 303, answer.text
    shown = rita.get(answer.headers["location"]).text
    assert "What it changes" in shown
    assert shown.index("What it changes") < shown.index("approval</h2>")
    refused = rita.post(f"{address}/amend", data={**form, "quantity": "150"})
    assert (refused.status_code, "Nothing would change" in refused.text) == (409, True)
    missing = rita.post(f"{address}/amend", data={**form, "line_id": "", "effective_date": ""})
    assert (missing.status_code, "Choose a line." in missing.text) == (400, True)


def test_a13_a_form_makes_a_renewal(console: Console, sold: str):
    rita = console.signed_in("rita", "sales_rep")
    address = f"/console/agreements/{sold}"
    token = form_token(rita.get(address).text)
    answer = rita.post(f"{address}/renew", data={"form_token": token, "term_months": "24", "price": "same"})
    assert answer.status_code == 303, answer.text
    assert "Renewal of agreement" in rita.get(answer.headers["location"]).text
    wrong = rita.post(f"{address}/renew", data={"form_token": token, "price": "free"})
    assert (wrong.status_code, "Choose one of the prices." in wrong.text) == (400, True)


@pytest.mark.usefixtures("sold")
def test_a17_the_figures_show_what_ends_in_each_month(console: Console):
    console.app.effects.advance(days=40)  # type: ignore[attr-defined] # A clock that tests move.
    page = console.signed_in("dana", "sales_manager").get("/console/figures").text
    assert "Agreements that end, by month" in page
    assert "1 · 1,500 USD" in page


def test_a15_who_decides_sees_the_difference_and_the_amount_due_on_every_page(console: Console, sold: str):
    rita = person(console.app, "rex", "sales_rep")
    line_id = rita("agreement_get", agreement_id=sold)["lines"][0]["line_id"]
    day = rita("agreement_get", agreement_id=sold)["as_of"]
    change = {"action": "set_quantity", "line_id": line_id, "quantity": 100}
    made = rita("agreement_amend", agreement_id=sold, effective_date=day, changes=[change])
    rita("quote_price", quote_id=made["quote_id"])
    asked = rita("approval_request", quote_id=made["quote_id"], justification="They need less.")
    dana = console.signed_in("dana", "sales_manager")
    address = f"/console/quotes/{made['quote_id']}"
    query = {"approval_id": asked["approval_id"], "fingerprint": asked["fingerprint"], "decision": "approve"}
    confirmation = dana.get(f"{address}/decide", params=query)
    assert confirmation.status_code == 200, confirmation.text
    form = {**query, "form_token": form_token(confirmation.text), "version": "1"}
    held = dana.post(f"{address}/decide", data=form)
    decision = dana.get(held.headers["location"])
    for page in (dana.get(address).text, confirmation.text, decision.text):
        assert "Given back" in page
        assert re.search(r'data-label="Before">150</td><td class="n" data-label="After">100<', page)
        assert f"{-made['total']:,.2f}" in page
        assert page.index('data-label="Before"') < page.index("<dt>Account" if "<dt>Account" in page else "</main>")


def test_a15_a_change_offers_no_step_that_is_refused(console: Console, sold: str):
    rita = console.signed_in("rita", "sales_rep")
    page = rita.get(f"/console/agreements/{sold}").text
    form = {"form_token": form_token(page), "term_months": "24", "price": "same"}
    address = rita.post(f"/console/agreements/{sold}/renew", data=form).headers["location"].partition("?")[0]
    shown = rita.get(address).text
    assert "Copy it" not in shown
    assert f"{address}/lines" not in shown
    terms = rita.get(f"{address}/terms").text
    assert 'name="notes"' in terms
    assert 'name="term_months"' not in terms
    hidden = dict(re.findall(r'name="(form_token|form_key|version|edit)" value="([^"]*)"', terms))
    changed = rita.post(f"{address}/terms", data={**hidden, "payment_terms": "net_30", "notes": "As we spoke."})
    assert changed.status_code == 303, changed.text
    assert "As we spoke." in rita.get(address).text


@pytest.mark.usefixtures("sold")
def test_the_figures_show_recurring_revenue_and_what_stays(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    page = dana.get("/console/figures").text
    assert "1,500 USD" in page
    assert "Net retention is" not in page, "nobody brought anything a year ago"
    console.app.effects.advance(days=365)  # type: ignore[attr-defined] # A clock that tests move.
    dana = console.signed_in("dina", "sales_manager")  # The first session is over.
    page = dana.get("/console/figures").text
    assert re.search(r"Net retention, USD: <strong>[0-9.]+ %", page)
    file = dana.get("/console/figures?format=csv").text
    assert file.splitlines()[0].endswith("day,currency,arr")
    assert ",USD,1500" in file


def test_the_figures_compare_no_credit_with_a_discount(console: Console, sold: str):
    rita = person(console.app, "rex", "sales_rep")
    dana = console.signed_in("dana", "sales_manager")
    before = discounts_of(console)
    assert "change an agreement" not in dana.get("/console/figures").text
    owned = rita("agreement_get", agreement_id=sold)
    for quantity in (100, 200):
        change = {"action": "set_quantity", "line_id": owned["lines"][0]["line_id"], "quantity": quantity}
        made = rita("agreement_amend", agreement_id=sold, effective_date=owned["as_of"], changes=[change])
        rita("quote_price", quote_id=made["quote_id"])
    assert discounts_of(console) == before
    page = dana.get("/console/figures").text
    assert "2 of the quotes change an agreement and count with the amount due." in page
    assert "Quotes that change an agreement are not counted here." in page


def discounts_of(console: Console) -> list[int]:
    found: Any = console.app.read_unaudited(console.app.new_call(), lambda tx: figures(tx, days=90))
    return [one["count"] for one in found["discounts"]]
