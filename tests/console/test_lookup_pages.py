"""Quotes, accounts, policies, the record, figures and health: what the pages say is what is stored."""

import re
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.base.background import Loop
from cpq.base.settings import Settings, read_settings, shipped
from cpq.services import quotes
from cpq.services.reports.figures import figures
from cpq.storage.schema.tables import audit_entry, quote
from tests.support import engine
from tests.support.approvals import ask, decide, person, priced_quote
from tests.support.console import Console, form_token, serving
from tests.support.engine import Tools, open_app
from tests.support.quotes import SEATS, exact, new_quote, sent_quote


def figures_of(app: App, days: int = 90) -> dict[str, Any]:
    found: Any = app.read_unaudited(app.new_call(), lambda tx: figures(tx, days=days))
    return found


@pytest.fixture
def still(store: Settings, clock: engine.StillEffects) -> Iterator[App]:
    app = open_app(store, clock)
    yield app
    app.close()


def test_the_figures_add_up(still: App, clock: engine.StillEffects):
    tools, dana = Tools(still), person(still, "dana", "sales_manager")
    fiona, victor = person(still, "fiona", "finance"), person(still, "victor", "vp_sales")
    new_quote(tools)
    clock.advance(days=10)
    quote_ids = [priced_quote(tools, 10) for _ in range(3)]
    for minutes, one in zip((10, 20, 90), quote_ids, strict=True):
        answer = ask(tools, one)
        clock.advance(minutes=minutes)
        decide(dana, answer)
    quote_id = quote_ids[-1]
    tools("quote_send", quote_id=quote_id, expected_version=1)
    tools.seller("quote_accept", quote_id=quote_id, expected_version=1)
    high = priced_quote(tools, 35)
    answer = ask(tools, high, "vp_sales")
    decide(victor, answer)
    decide(fiona, answer, "finance", "reject")
    euro = new_quote(tools, account_id="acct_rheinstahl_010", currency="EUR")
    tools("quote_price", quote_id=euro)
    tools("quote_send", quote_id=euro, expected_version=1)
    tools("quote_decline", quote_id=euro, expected_version=1)
    found = figures_of(still)
    pipeline = {one["status"]: (one["count"], one["value"]) for one in found["pipeline"]}
    total = tools("quote_get", quote_id=euro, include_pricing=True)["pricing"]["total"]
    assert pipeline["draft"] == (2, 1500 + 975)
    assert pipeline["approved"] == (2, 2700)
    assert pipeline["accepted"] == (1, 1350)
    assert pipeline["declined"] == (1, exact(total) * exact(1.08))
    turnaround = {one["role"]: (one["count"], one["median_minutes"]) for one in found["turnaround"]}
    assert turnaround == {"sales_manager": (3, 20), "vp_sales": (1, 0), "finance": (1, 0)}
    discounts = [(one["above"], one["up_to"], one["role"], one["count"]) for one in found["discounts"]]
    assert discounts == [
        (None, 5, None, 2),
        (5, 20, "sales_manager", 3),
        (20, 30, "vp_sales", 0),
        (30, None, "finance", 1),
    ]
    outcomes = [(one["accepted"], one["declined"], one["expired"]) for one in found["outcomes"]]
    assert [sum(column) for column in zip(*outcomes, strict=True)] == [1, 1, 0]
    clock.advance(days=40)
    assert {one["status"]: one["count"] for one in figures_of(still)["pipeline"]}["expired"] == 2, (
        "approved, never sent"
    )
    assert figures_of(still, days=30)["pipeline"] == []


def test_each_tile_is_what_its_title_says(still: App, clock: engine.StillEffects):
    """Nine of ten of all decisions, not of the slowest role; expired only what a customer had."""
    tools, dana = Tools(still), person(still, "dana", "sales_manager")
    victor = person(still, "victor", "vp_sales")
    for number in range(10):
        answer = ask(tools, priced_quote(tools, 10))
        clock.advance(minutes=number)
        decide(dana, answer)
    slow = ask(tools, priced_quote(tools, 25), "vp_sales")
    clock.advance(minutes=100)
    decide(victor, slow, "vp_sales")
    assert figures_of(still)["slow_minutes"] == 9
    sent_quote(tools)
    clock.advance(days=40)
    outcomes = figures_of(still)["outcomes"]
    assert sum(one["expired"] for one in outcomes) == 1, "sent; the others were only approved"
    swept = quotes.sweep(still)
    assert (swept, figures_of(still)["outcomes"]) == (12, outcomes)


def test_what_waits_now_is_what_can_be_decided(console: Console, clock: engine.StillEffects):
    tools, dana = console.tools, console.signed_in("dana", "sales_manager")
    first, second = (priced_quote(tools, 10) for _ in range(2))
    for quote_id in (first, second):
        ask(tools, quote_id)
    with console.app.database.writing(clock.monotonic() + 60) as connection:
        changed = sa.update(quote).where(quote.c.id == first).values(status="draft")
        connection.execute(changed)
    assert tools("approval_pending")["total"] == 1
    assert re.search(r'Waiting now</h2><p class="figure">1</p>', dana.get("/console/figures").text)


def test_cents_are_counted_once(still: App):
    tools = Tools(still)
    totals = []
    for quantity in (1, 7):
        quote_id = priced_quote(tools, "3.33", {**SEATS, "quantity": quantity})
        totals.append(exact(tools("quote_get", quote_id=quote_id, include_pricing=True)["pricing"]["total"]))
    assert sum(total % 1 for total in totals) > 1
    assert figures_of(still)["pipeline"] == [{"status": "draft", "count": 2, "value": sum(totals)}]


def test_the_figures_of_an_empty_store_have_their_page(sqlite_console: Console):
    dana = sqlite_console.signed_in("dana", "sales_manager")
    for days in ("", "30", "365", "x"):
        page = dana.get(f"/console/figures?days={days}")
        assert page.status_code == 200
        assert "No quote was made" in page.text


def test_quotes_are_found_by_id_deal_and_account(console: Console):
    tools = console.tools
    dana = console.signed_in("dana", "sales_manager")
    first, second = new_quote(tools, deal_id="D-77"), new_quote(tools, account_id="acct_groeb_002")
    cases = {first[:12]: {first, second}, first: {first}, "honey groeb": {second}, "D-77": {first}, "nothing": set()}
    for words, expected in cases.items():
        page = dana.get("/console/quotes", params={"q": words}).text
        found = set(re.findall(r"/console/quotes/(Q-[a-z0-9]+)", page))
        assert found == (expected if words != first[:12] or first[:12] == second[:12] else {first}), words
    assert second not in dana.get("/console/quotes?status=sent").text
    assert first in dana.get("/console/quotes?status=draft").text


def test_a_page_beyond_the_end_leads_back_to_the_last(sqlite_console: Console):
    dana = sqlite_console.signed_in("dana", "sales_manager")
    ask(sqlite_console.tools, priced_quote(sqlite_console.tools))
    account = "/console/accounts/acct_acme_001"
    for address in ("/console/quotes", "/console/accounts", "/console/queue", account):
        page = dana.get(f"{address}?page=9").text
        assert "The list ends before page 9." in page, address
        back = re.search(r'href="([^"]+)">Show its last page', page)
        assert back, address
        assert "data-open" in dana.get(back[1].replace("&amp;", "&")).text
    page = dana.get("/console/quotes?q=nothing&page=9").text
    assert "No quote matches this." in page


def test_an_account_shows_its_quotes(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    quote_id = new_quote(console.tools)
    assert "acct_acme_001" in dana.get("/console/accounts?q=acme").text
    page = dana.get("/console/accounts/acct_acme_001").text
    assert quote_id in page
    assert "Wanda Coyle" in page


def test_policies_are_ladders_with_the_result_of_their_cases(sqlite_template: Path, tmp_path: Path):
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    folder = tmp_path / "policies"
    shutil.copytree(shipped("policies"), folder)
    with serving(Settings(home=tmp_path, policies_dir=folder)) as console:
        dana = console.signed_in("dana", "sales_manager")
        page = dana.get("/console/policies").text
        assert "above 5\u202f% up to 20\u202f%" in page
        assert "above 100,000.00\N{NO-BREAK SPACE}USD up to 500,000.00\N{NO-BREAK SPACE}USD" in page
        assert "all 81 cases pass" in page
        cases = folder / "discounts_test.yaml"
        cases.write_text(cases.read_text().replace("discount_cap_sales_manager", "discount_cap_vp_sales"))
        assert "cases fail" in dana.get("/console/policies").text


def test_a_changed_entry_of_the_record_is_shown(console: Console):
    """The record of one quote proves itself, entry by entry; the whole chain is for administrators."""
    tools = console.tools
    dana, alex = console.signed_in("dana", "sales_manager"), console.signed_in("alex", "admin")
    quote_id = priced_quote(tools)
    ask(tools, quote_id)
    console.app.flush_audit()
    page = dana.get(f"/console/quotes/{quote_id}/audit").text
    assert "all as they were sealed" in page
    assert "quote_price" in page
    assert "Verify the whole chain" not in page
    token = form_token(alex.get("/console/queue").text)
    address = f"/console/quotes/{quote_id}/audit"
    assert "The whole chain is as it was sealed" in alex.post(address, data={"form_token": token}).text
    own = form_token(dana.get("/console/queue").text)
    assert dana.post(address, data={"form_token": own}).status_code == 403
    with console.app.database.writing(console.app.effects.monotonic() + 30) as connection:
        changed = (audit_entry.c.subject == quote_id) & (audit_entry.c.operation == "quote_price")
        connection.execute(sa.update(audit_entry).where(changed).values(caller="human:somebody"))
    assert "1 not as sealed" in dana.get(address).text
    assert "The chain is broken at entry" in alex.post(address, data={"form_token": token}).text


def test_health_names_what_is_wrong(sqlite_console: Console):
    console = sqlite_console
    dana = console.signed_in("dana", "sales_manager")
    console.tools.error("quote_get", quote_id="Q-none")
    ask(console.tools, priced_quote(console.tools))
    console.app.flush_audit()
    page = dana.get("/console/health").text
    assert "everything works" in page
    assert "1 wait" in page
    assert "Not found" in page
    with console.app.database.writing(console.app.effects.monotonic() + 30) as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001'"))
    assert "at 0001" in dana.get("/console/health").text


def test_health_names_work_beside_the_server_that_fails(sqlite_template: Path, tmp_path: Path):
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    has_failed = threading.Event()

    def fail() -> float:
        has_failed.set()
        raise OSError("no room")

    loop = Loop("sweep", fail)
    with serving(read_settings({}, home=tmp_path), loops=[loop]) as console:
        dana = console.signed_in("dana", "sales_manager")
        assert "everything works" in dana.get("/console/health").text
        loop.start()
        assert has_failed.wait(30)
        while loop.problem is None:
            time.sleep(0.01)
        page = dana.get("/console/health").text
        assert "1 of 6 parts need care" in page
        assert "sweep fails: OSError" in page


def test_a_fault_of_ours_shows_a_page_and_no_secret(sqlite_console: Console, monkeypatch: pytest.MonkeyPatch):
    dana = sqlite_console.signed_in("dana", "sales_manager")
    monkeypatch.setattr("cpq.services.approvals.queue_page", lambda *_, **__: 1 / 0)
    page = dana.get("/console/queue")
    assert page.status_code == 500
    assert "Something went wrong" in page.text
    assert "ZeroDivisionError" not in page.text
    assert re.search(r"In the log: tr-\w+", page.text)
