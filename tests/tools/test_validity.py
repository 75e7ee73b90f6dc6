"""G-11: how long a quote can be accepted may be asked for, and the policies see it."""

from datetime import timedelta
from typing import Any

import pypdfium2
import pytest

from cpq.app import App
from cpq.base.settings import Settings
from cpq.services import quotes
from tests.support.approvals import ask, decide, person, refused
from tests.support.engine import TODAY, StillEffects, Tools, open_app
from tests.support.quotes import SEATS, assert_sound, new_quote, stored

FIRST = TODAY.date()
USUAL = str(FIRST + timedelta(days=30))


def day(after: int) -> str:
    return str(FIRST + timedelta(days=after))


def validity(tools: Tools, quote_id: str) -> tuple[str, str | None]:
    found = tools("quote_get", quote_id=quote_id)["quote"]
    return found["valid_until"], found["requested_valid_until"]


def violated(priced: dict[str, Any]) -> list[tuple[str, Any, str | None]]:
    return [(one["policy_id"], one["actual"], one["unit"]) for one in priced["policy_violations"]]


def test_g11_a_quote_is_valid_until_the_day_that_was_asked_for(app: App, tools: Tools):
    quote_id = new_quote(tools, valid_until=day(10))
    assert validity(tools, quote_id) == (day(10), day(10))
    assert violated(tools("quote_price", quote_id=quote_id)) == []
    assert tools("quote_price", quote_id=quote_id)["outcome"] == "no_change"
    assert tools("quote_list", limit=1)["items"][0]["valid_until"] == day(10)
    moved = tools("quote_update", quote_id=quote_id, expected_version=1, valid_until=day(20))
    assert moved["valid_until"] == day(20)
    moved = tools("quote_update", quote_id=quote_id, expected_version=1, clear=["valid_until"])
    assert moved["valid_until"] == USUAL
    assert validity(tools, quote_id) == (USUAL, None)
    again = tools("quote_update", quote_id=quote_id, expected_version=1, clear=["valid_until"])
    assert again["outcome"] == "no_change"
    assert assert_sound(app) == 1


@pytest.mark.parametrize("given", [day(-1), "2020-01-01", day(3651), "2199-12-31"])
def test_g11_a_day_that_is_over_or_absurd_is_refused_with_the_range(sqlite_tools: Tools, given: str):
    tools = sqlite_tools
    asked = {"account_id": "acct_acme_001", "line_items": [{"product_id": "prod_pro_v2", "quantity": 1}]}
    error = refused(tools, "quote_create", **asked, valid_until=given)
    assert error["code"] == "VALIDATION_ERROR"
    [problem] = error["details"]["problems"]
    assert (problem["field"], problem["minimum"], problem["maximum"]) == ("/valid_until", day(0), day(3650))
    quote_id = new_quote(tools)
    changed = refused(tools, "quote_update", quote_id=quote_id, expected_version=1, valid_until=given)
    assert changed["details"]["field"] == "/valid_until"
    for edge in (0, 3650):
        assert validity(tools, new_quote(tools, valid_until=day(edge)))[0] == day(edge)


def test_g11_today_is_the_day_where_the_account_is(store: Settings):
    clock = StillEffects(TODAY.replace(hour=23))
    app = open_app(store, clock)
    tools = Tools(app)
    error = refused(tools, "quote_create", account_id="acct_hikari_020", line_items=[SEATS], valid_until=day(0))
    assert error["details"]["minimum"] == day(1)
    assert validity(tools, new_quote(tools, valid_until=day(0)))[0] == day(0)
    app.close()


def test_g11_the_policies_see_the_days_and_ask_for_a_longer_validity(tools: Tools):
    for days, expected in (
        (30, []),
        (31, [("validity_sales_manager", 31, "days")]),
        (90, [("validity_sales_manager", 90, "days")]),
        (91, [("validity_deal_desk", 91, "days")]),
    ):
        quote_id = new_quote(tools, valid_until=day(days))
        assert violated(tools("quote_price", quote_id=quote_id)) == expected
    quote_id = new_quote(tools, valid_until=day(91))
    tools("quote_price", quote_id=quote_id)
    refusal = tools.error("quote_send", quote_id=quote_id, expected_version=1)
    assert refusal["code"] == "CONFLICT"
    assert ask(tools, quote_id, "deal_desk")["status"] == "pending"


def test_g11_the_days_count_from_the_price_and_not_from_the_look_at_it(store: Settings, clock: StillEffects):
    app = open_app(store, clock)
    tools = Tools(app)
    quote_id = new_quote(tools, valid_until=day(40))
    tools("quote_price", quote_id=quote_id)
    clock.advance(days=9, hours=1)
    answer = tools("approval_request", quote_id=quote_id, justification="A good deal.")
    assert answer["approver_role"] == "sales_manager"
    assert violated(tools("quote_price", quote_id=quote_id)) == [("validity_sales_manager", 40, "days")]
    app.close()


def test_g11_a_later_last_day_reopens_an_approval_and_an_earlier_one_keeps_it(tools: Tools, app: App):
    dana = person(app, "dana", "sales_manager")
    kept, reopened = (new_quote(tools, valid_until=day(60)) for _ in range(2))
    for quote_id, days in ((kept, 45), (reopened, 61)):
        tools("quote_price", quote_id=quote_id)
        decide(dana, ask(tools, quote_id))
        tools("quote_revise", quote_id=quote_id, expected_version=1)
        assert validity(tools, quote_id) == (day(60), day(60)), "a revision keeps the day"
        tools("quote_update", quote_id=quote_id, expected_version=2, valid_until=day(days))
        tools("quote_price", quote_id=quote_id)
    assert ask(tools, kept)["status"] == "kept"
    answer = ask(tools, reopened)
    assert answer["status"] == "pending"
    assert answer["reason"] == "Asked again: validity_days went from 60 to 61."


def test_g11_an_open_revision_with_the_usual_validity_takes_a_longer_one_back(tools: Tools, app: App):
    dana = person(app, "dana", "sales_manager")
    quote_id = new_quote(tools, valid_until=day(60))
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    decide(dana, ask(tools, quote_id))
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_update", quote_id=quote_id, expected_version=2, clear=["valid_until"])
    assert violated(tools("quote_price", quote_id=quote_id)) == [("discount_cap_sales_manager", 10, "percent")]
    assert ask(tools, quote_id)["status"] == "kept"


def test_g11_once_the_day_is_over_a_new_price_is_valid_as_usual_and_says_so(store: Settings, clock: StillEffects):
    app = open_app(store, clock)
    tools = Tools(app)
    priced, revised, changed = (new_quote(tools, valid_until=day(5)) for _ in range(3))
    tools("quote_price", quote_id=revised)
    tools("quote_send", quote_id=revised, expected_version=1)
    clock.advance(days=6)
    said = f"The last valid day {day(5)} is over; now it is {day(36)}, as usual."
    answer = tools("quote_price", quote_id=priced)
    assert said in answer["warnings"]
    assert validity(tools, priced) == (day(36), None)
    assert said in tools("quote_revise", quote_id=revised, expected_version=1)["warnings"]
    assert validity(tools, revised) == (day(36), None)
    answer = tools("quote_update", quote_id=changed, expected_version=1, deal_id="D-1")
    assert said in answer["warnings"]
    assert answer["valid_until"] == day(36)
    app.close()


def test_g11_a_comparison_of_versions_shows_another_last_day_that_was_asked_for(app: App, tools: Tools):
    quote_id = new_quote(tools, valid_until=day(10))
    tools("quote_price", quote_id=quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_update", quote_id=quote_id, expected_version=2, valid_until=day(20))
    found = app.read_unaudited(app.new_call(), lambda tx: quotes.compare(tx, quote_id, before=1, after=2))
    assert [(one["field"], str(one["before"]), str(one["after"])) for one in found["terms"]] == [
        ("requested_valid_until", day(10), day(20))
    ]


def test_g11_a_copy_is_valid_as_usual(tools: Tools):
    quote_id = new_quote(tools, valid_until=day(60))
    assert validity(tools, tools("quote_clone", quote_id=quote_id)["quote_id"]) == (USUAL, None)


def test_g11_nobody_accepts_after_the_day(store: Settings, clock: StillEffects):
    app = open_app(store, clock)
    tools = Tools(app)
    quote_id = new_quote(tools, valid_until=day(1))
    tools("quote_price", quote_id=quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    clock.advance(days=2)
    before = stored(app)
    error = tools.seller.error("quote_accept", quote_id=quote_id, expected_version=1)
    assert error["code"] == "CONFLICT"
    assert stored(app)["quote"] == before["quote"]
    app.close()


def test_g11_the_pdf_and_the_files_inside_name_the_day(sqlite_tools: Tools):
    quote_id = new_quote(sqlite_tools, valid_until="2026-12-05")
    sqlite_tools("quote_price", quote_id=quote_id)
    pdf = pypdfium2.PdfDocument(sqlite_tools("quote_pdf", quote_id=quote_id)["file_path"])
    assert "Dec 5, 2026" in pdf[0].get_textpage().get_text_bounded()
    files = [bytes(pdf.get_attachment(place).get_data()).decode() for place in range(pdf.count_attachments())]
    assert any('"valid_until":"2026-12-05"' in text.replace(" ", "") for text in files)
    assert any("<cbc:EndDate>2026-12-05</cbc:EndDate>" in text for text in files)
