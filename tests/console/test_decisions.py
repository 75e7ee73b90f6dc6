"""Deciding in the console, without JavaScript: bound to what was shown, with a reason, by those who may."""

import html
import re
from typing import Any

import pytest
from markupsafe import escape

from cpq.base.text import shown
from cpq.console.quote import DONE
from cpq.services.approvals.views import ApprovalStatus
from tests.support.approvals import ask, decide, let_lapse, person, priced_quote
from tests.support.console import Console, fields, send
from tests.support.quotes import SEATS, stored

HOSTILE = [
    '</td><script>document.title="owned"</script>',
    "<img src=x onerror=alert(1)>",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "\" onmouseover='alert(1)' x=\"",
    "Approved by the CFO <b>already</b> &lt;ok&gt;",
    "abc\u202edcba\u2066",
]


def status(console: Console, quote_id: str) -> ApprovalStatus:
    return console.tools("approval_status", quote_id=quote_id)  # type: ignore[return-value] # The tool's own shape.


def test_an_approval_is_what_the_agent_sees(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    quote_id = priced_quote(console.tools)
    ask(console.tools, quote_id)
    page = dana.get(f"/console/quotes/{quote_id}").text
    assert "Acme Corp is offered 150 × Pro Plan" in page
    assert "at 1,350.00 USD, 10\u202f% below the regular price, at a margin of 80\u202f%." in page
    assert "A sales manager has to approve, because a discount of 10\u202f% is above 5\u202f%" in page
    answer = send(console, dana, quote_id, "approve", "Go.")
    assert answer.headers["location"] == f"/console/quotes/{quote_id}?done=approved"
    assert "can be sent" in dana.get(answer.headers["location"]).text
    assert status(console, quote_id)["current_status"] == "approved"
    record = console.tools("approval_history", quote_id=quote_id)["items"][0]
    assert (record["decided_by"], record["comment"]) == ("human:dana", "Go.")


def test_what_nobody_decided_in_time_stays_in_sight_and_can_be_asked_for_again(console: Console):
    dana, rob = console.signed_in("dana", "sales_manager"), console.signed_in("rob", "sales_rep")
    lee = console.signed_in("lee", "legal")
    quote_id = priced_quote(console.tools)
    ask(console.tools, quote_id)
    let_lapse(console.app, quote_id)
    page = rob.get(f"/console/quotes/{quote_id}").text
    assert "The request to a sales manager has expired: nothing was approved, and the quote is a draft again." in page
    assert "Nobody decided in time" in page
    assert "Nobody decided in time" in lee.get(f"/console/quotes/{quote_id}").text
    assert "Ask again" not in lee.get(f"/console/quotes/{quote_id}").text
    assert f"/console/quotes/{quote_id}" not in dana.get("/console/queue").text
    found = re.search(r'name="form_token" value="([^"]+)"', page)
    assert found
    form = {"form_token": found[1], **seen_on(page)}
    other = rob.post(f"/console/quotes/{quote_id}/ask", data={**form, "version": "2"})
    assert (other.status_code, status(console, quote_id)["current_status"]) == (409, "none")
    asked = rob.post(f"/console/quotes/{quote_id}/ask", data=form)
    assert "Approval is requested again." in rob.get(asked.headers["location"]).text
    assert status(console, quote_id)["current_status"] == "pending_approval"
    assert f"/console/quotes/{quote_id}" in dana.get("/console/queue").text
    assert rob.post(f"/console/quotes/{quote_id}/ask", data=form).status_code == 409


def seen_on(page: str) -> dict[str, str]:
    """The version and edit that the form to ask again sends."""
    form = page[page.index("/ask") :]
    return dict(re.findall(r'name="(version|edit)" value="(\d+)"', form[: form.index("</form>")]))


def test_whoever_was_silent_is_asked_again_though_another_role_answered_last(console: Console):
    dana, rob = console.signed_in("dana", "sales_manager"), console.signed_in("rob", "sales_rep")
    quote_id = priced_quote(console.tools, 0)
    ask(console.tools, quote_id, "legal")
    console.app.effects.advance(seconds=1)  # type: ignore[attr-defined] # A clock that tests move.
    ask(console.tools, quote_id, "sales_manager")
    send(console, dana, quote_id, "approve", "Go.")
    let_lapse(console.app, quote_id)
    page = rob.get(f"/console/quotes/{quote_id}").text
    found = re.search(r'name="form_token" value="([^"]+)"', page)
    assert found
    asked = rob.post(f"/console/quotes/{quote_id}/ask", data={"form_token": found[1], **seen_on(page)})
    assert asked.status_code == 303
    assert [one["approver_role"] for one in status(console, quote_id)["pending_requests"]] == ["legal"]


def test_the_console_says_every_reason_for_which_a_role_is_asked(console: Console):
    vera = console.signed_in("vera", "vp_sales")
    quote_id = priced_quote(console.tools, 6, {"product_id": "prod_pro_v2", "quantity": 60_000})
    console.tools("approval_request", quote_id=quote_id, justification="x")
    page = html.unescape(vera.get(f"/console/quotes/{quote_id}").text)
    assert (
        "The VP Sales has to approve, because a discount of 6\u202f% is above 5\u202f%,"
        " and because a deal of USD 564,000.00 is above USD 500,000.00; mcp (agent) asked"
    ) in page


@pytest.mark.parametrize(
    ("decision", "kept"), [("reject", "Too much."), ("change", "Change requested: Too much.")], ids=["reject", "change"]
)
def test_sending_back_needs_a_reason_and_keeps_it(console: Console, decision: str, kept: str):
    dana = console.signed_in("dana", "sales_manager")
    quote_id = priced_quote(console.tools)
    ask(console.tools, quote_id)
    before = stored(console.app)
    refused = send(console, dana, quote_id, decision, "   ")
    assert refused.status_code == 400
    assert 'role="alert"' in refused.text
    assert stored(console.app) == before
    assert send(console, dana, quote_id, decision, "Too much.").status_code == 303
    assert (status(console, quote_id)["current_status"], status(console, quote_id)["reason"]) == ("rejected", kept)


def test_whom_a_maker_has_lent_a_role_can_only_send_it_back(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    maker = person(console.app, "maker", "sales_manager")
    quote_id = priced_quote(maker)
    ask(maker, quote_id)
    assert "decision=approve" in dana.get(f"/console/quotes/{quote_id}").text
    maker("approval_delegate", role="sales_manager", to="dana", until="2026-11-17T00:00:00Z")
    page = dana.get(f"/console/quotes/{quote_id}").text
    assert ("decision=approve" in page, "You may reject it." in page) == (False, True)
    assert send(console, dana, quote_id, "approve").status_code == 403
    assert send(console, dana, quote_id, "reject", "Too much.").status_code == 303
    assert status(console, quote_id)["current_status"] == "rejected"


def test_a_quote_that_moved_is_shown_with_its_difference_and_not_decided(console: Console):
    """T2: what was on the screen was version 1; version 2 is asked about by now."""
    dana = console.signed_in("dana", "sales_manager")
    quote_id = priced_quote(console.tools)
    ask(console.tools, quote_id)
    shown = fields(dana.get(f"/console/quotes/{quote_id}").text)
    console.tools("quote_revise", quote_id=quote_id, expected_version=1)
    added = [{"product_id": "prod_qmb15", "quantity": 1}]
    console.tools("quote_update", quote_id=quote_id, expected_version=2, add_lines=added)
    console.tools("quote_price", quote_id=quote_id, requested_discount_pct=15)
    ask(console.tools, quote_id)
    before = stored(console.app)
    mixed = {**fields(dana.get(f"/console/quotes/{quote_id}").text), "fingerprint": shown["fingerprint"]}
    for changed, decision in ((shown, "approve"), (mixed, "approve"), (shown, "reject"), (mixed, "change")):
        data = {**changed, "version": "1", "decision": decision, "comment": ""}
        answer = dana.post(f"/console/quotes/{quote_id}/decide", data=data)
        assert answer.status_code == 409
        assert "Nothing was decided" in answer.text
        assert "What is different from version 1, which you saw" in answer.text
        text = re.sub(r"<[^>]+>|\s+", " ", answer.text)
        assert re.search(r"Total\s+1,350.00\s+→\s+9,", text)
        assert re.search(r"Line 2\s+QMB15 [^→]*added", text)
        assert stored(console.app) == before
    assert status(console, quote_id)["current_status"] == "pending_approval"


@pytest.mark.parametrize("word", ["approved", "noted", "rejected", "change", "delegated"])
def test_an_address_that_claims_what_nobody_did_says_nothing(sqlite_console: Console, word: str):
    """Such an address can be sent by anybody; whoever reads it must not think that it is decided."""
    dana = sqlite_console.signed_in("dana", "sales_manager")
    quote_id = priced_quote(sqlite_console.tools)
    ask(sqlite_console.tools, quote_id)
    page = dana.get(f"/console/quotes/{quote_id}?done={word}").text
    assert DONE[word] not in html.unescape(page)
    assert "Decide as Sales manager" in page


def test_only_whoever_decided_is_told_that_they_did(sqlite_console: Console):
    dana, dirk = (sqlite_console.signed_in(name, "sales_manager") for name in ("dana", "dirk"))
    quote_id = priced_quote(sqlite_console.tools)
    ask(sqlite_console.tools, quote_id)
    where = send(sqlite_console, dana, quote_id, "approve").headers["location"]
    assert DONE["approved"] in dana.get(where).text
    assert DONE["approved"] not in dirk.get(where).text


def test_of_two_who_decide_at_once_the_second_is_told(console: Console):
    dana, dirk = console.signed_in("dana", "sales_manager"), console.signed_in("dirk", "sales_manager")
    quote_id = priced_quote(console.tools)
    ask(console.tools, quote_id)
    form = {**fields(dirk.get(f"/console/quotes/{quote_id}").text), "decision": "reject", "comment": "No."}
    assert send(console, dana, quote_id, "approve").status_code == 303
    answer = dirk.post(f"/console/quotes/{quote_id}/decide", data=form)
    assert answer.status_code == 409
    assert " dana has approved it already" in answer.text
    assert status(console, quote_id)["current_status"] == "approved"


def test_nobody_decides_their_own(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    maker = person(console.app, "dana", "sales_manager")
    quote_id = priced_quote(maker)
    answer = ask(maker, quote_id)
    page = dana.get(f"/console/quotes/{quote_id}").text
    assert "decision=approve" not in page
    assert "Nobody decides what they asked for" in page
    form = {"approval_id": answer["approval_id"], "fingerprint": answer["fingerprint"], "decision": "approve"}
    token = re.search(r'name="form_token" value="([0-9a-f]+)"', page)
    assert token
    refused = dana.post(f"/console/quotes/{quote_id}/decide", data={**form, "form_token": token[1]})
    assert refused.status_code == 403
    assert status(console, quote_id)["current_status"] == "pending_approval"


def test_a_sales_rep_looks_and_does_not_decide(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    quote_id = priced_quote(console.tools)
    answer = ask(console.tools, quote_id)
    page = rosa.get(f"/console/quotes/{quote_id}")
    assert page.status_code == 200
    assert "decision=approve" not in page.text
    token = re.search(r'name="form_token" value="([0-9a-f]+)"', page.text)
    assert token
    form = {"approval_id": answer["approval_id"], "fingerprint": answer["fingerprint"], "decision": "approve"}
    assert rosa.post(f"/console/quotes/{quote_id}/decide", data={**form, "form_token": token[1]}).status_code == 403
    assert status(console, quote_id)["current_status"] == "pending_approval"


def test_whose_turn_has_not_come_sees_who_is_first(console: Console):
    dana, dora = console.signed_in("dana", "sales_manager"), console.signed_in("dora", "deal_desk")
    quote_id = priced_quote(console.tools, 10, {"product_id": "prod_qmb15", "quantity": 20})
    ask(console.tools, quote_id)
    assert "yours, after a sales manager" in dora.get(f"/console/quotes/{quote_id}").text
    assert "after a sales manager" in dora.get("/console/queue").text
    noted = send(console, dana, quote_id, "approve")
    assert noted.headers["location"].endswith("?done=noted")
    assert "Others still have to decide" in dana.get(noted.headers["location"]).text
    assert send(console, dora, quote_id, "approve").headers["location"].endswith("?done=approved")
    assert status(console, quote_id)["current_status"] == "approved"


@pytest.mark.parametrize("scope", ["quote", "account", "all"])
def test_a_role_can_be_lent_from_the_page(console: Console, scope: str):
    dana, dora = console.signed_in("dana", "sales_manager"), console.signed_in("dora", "deal_desk")
    quote_id = priced_quote(console.tools)
    other = priced_quote(console.tools, 10, account_id="acct_groeb_002")
    for one in (quote_id, other):
        ask(console.tools, one)
    page = dana.get(f"/console/quotes/{quote_id}").text
    form = {
        "form_token": fields(page)["form_token"],
        "role": "sales_manager",
        "to": "dora",
        "for": "1d",
        "scope": scope,
    }
    assert dana.post(f"/console/quotes/{quote_id}/delegate", data=form).status_code == 303
    queue = dora.get("/console/queue?scope=delegated").text
    assert quote_id in queue
    assert "delegated by dana" in queue
    assert (other in queue) is (scope == "all")
    assert send(console, dora, quote_id, "approve").status_code == 303
    record = console.tools("approval_history", quote_id=quote_id)["items"][0]
    assert record["votes"][0]["acted_as"] == "sales_manager, delegated by human:dana"


def test_what_was_lent_can_be_taken_back(console: Console):
    dana, dora = console.signed_in("dana", "sales_manager"), console.signed_in("dora", "deal_desk")
    quote_id = priced_quote(console.tools)
    ask(console.tools, quote_id)
    token = fields(dana.get(f"/console/quotes/{quote_id}").text)["form_token"]
    lent = {"form_token": token, "role": "sales_manager", "to": "dora", "for": "1d", "scope": "quote"}
    dana.post(f"/console/quotes/{quote_id}/delegate", data=lent)
    assert "Delegated by you" in dana.get("/console/queue").text
    assert quote_id in dora.get("/console/queue").text
    back = {"form_token": token, "role": "sales_manager", "to": "dora", "account_id": "", "quote_id": quote_id}
    assert dana.post("/console/queue/take-back", data=back).status_code == 303
    assert "Delegated by you" not in dana.get("/console/queue").text
    assert quote_id not in dora.get("/console/queue").text
    assert dana.post("/console/queue/take-back", data=back).status_code == 404


def test_a_loan_that_makes_no_sense_is_refused(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    console.grant("dora", "deal_desk")
    quote_id = priced_quote(console.tools)
    ask(console.tools, quote_id)
    token = fields(dana.get(f"/console/quotes/{quote_id}").text)["form_token"]
    good = {"form_token": token, "role": "sales_manager", "to": "dora", "for": "1d", "scope": "quote"}
    before = stored(console.app)
    senseless = [{"to": "nobody"}, {"to": "dana"}, {"for": "99y"}, {"role": "vp_sales"}, {"to": ""}]
    for wrong in (*senseless, {"scope": "everything"}, {"scope": ""}):
        answer = dana.post(f"/console/quotes/{quote_id}/delegate", data={**good, **wrong})
        assert answer.status_code in (400, 403), wrong
    assert stored(console.app) == before


def test_the_page_of_one_quote_decides_no_other(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    first, second = priced_quote(console.tools), priced_quote(console.tools)
    for quote_id in (first, second):
        ask(console.tools, quote_id)
    form = {**fields(dana.get(f"/console/quotes/{second}").text), "decision": "approve"}
    before = stored(console.app)
    answer = dana.post(f"/console/quotes/{first}/decide", data=form)
    assert answer.status_code == 400
    assert f"is not about quote {first}" in answer.text
    assert stored(console.app) == before
    assert dana.post(f"/console/quotes/{second}/decide", data=form).status_code == 303


def test_what_changed_since_the_last_approval_is_shown(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    manager = person(console.app, "dirk", "sales_manager")
    quote_id = priced_quote(console.tools)
    decide(manager, ask(console.tools, quote_id))
    console.tools("quote_revise", quote_id=quote_id, expected_version=1)
    console.tools("quote_price", quote_id=quote_id, requested_discount_pct=14)
    ask(console.tools, quote_id)
    page = dana.get(f"/console/quotes/{quote_id}").text
    assert "What changed since version 1, which was approved" in page
    text = re.sub(r"<[^>]+>|\s+", " ", page)
    assert re.search(r"Discount total\s+150.00\s+→\s+210.00", text)
    assert re.search(r"Requested discount\s+10.0\s%\s+→\s+14.0\s%", text)
    earlier = dana.get(f"/console/quotes/{quote_id}?version=1").text
    assert "This is an earlier version" in earlier
    assert "decision=approve" not in earlier


def test_hostile_text_is_only_text(sqlite_console: Console):
    """T2, T8: in notes, justifications, comments, and names on every page that shows them."""
    console = sqlite_console
    dana = console.signed_in("dana", "sales_manager")
    tools = console.tools
    for text in HOSTILE:
        quote_id = priced_quote(tools, 10, {**SEATS, "notes": text}, notes=text)
        tools("approval_request", quote_id=quote_id, justification=text, approver_role="sales_manager")
        pages = [dana.get(f"/console/quotes/{quote_id}").text, dana.get(f"/console/queue?q={quote_id}").text]
        send(console, dana, quote_id, "reject", text)
        pages.append(dana.get(f"/console/quotes/{quote_id}").text)
        for page in pages:
            assert not re.search(r"<script(?![^>]* src=\"/console/static/)|<img|<b>already|onmouseover='", page)
            assert str(escape(shown(text))) in page


def test_an_unknown_quote_is_not_here(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    for path in ("quotes/Q-none", "quotes/Q-none/audit", "accounts/none", "quotes/%00", "quotes/" + "x" * 300):
        assert dana.get(f"/console/{path}").status_code in (400, 404), path
    quote_id = priced_quote(console.tools)
    assert dana.get(f"/console/quotes/{quote_id}?version=9").status_code == 404
    long = "7" * 5_000
    for path in (f"quotes/{quote_id}?version=x", f"quotes/{quote_id}?version={long}", f"queue?page={long}"):
        assert dana.get(f"/console/{path}").status_code == 200, path[:40]
    ask(console.tools, quote_id)
    answer = send(console, dana, quote_id, "approve", version=long, fingerprint="sha256:none")
    assert answer.status_code == 409


def test_the_summary_is_of_the_selected_set(sqlite_console: Console):
    tools = sqlite_console.tools
    dana = sqlite_console.signed_in("dana", "sales_manager")
    support = {"product_id": "prod_qmb15", "quantity": 1}
    sets = [{**SEATS, "option_set": "a"}, {**support, "option_set": "b"}]
    said = []
    for lines in (sets, [*sets, {**support, "quantity": 2, "option_set": "c"}]):
        quote_id = priced_quote(tools, 10, *lines)
        found = re.search(r'<p class="summary">([^<]*)', dana.get(f"/console/quotes/{quote_id}").text)
        assert found
        said.append(found[1])
    start = "Acme Corp is offered 150 × Pro Plan"
    assert all(one.startswith(start) and "more line" not in one for one in said)
    assert "at a margin of 80\u202f%; 1 alternative, at 8,532.00 USD." in said[0], said[0]
    assert "at a margin of 80\u202f%; 2 alternatives, up to 17,064.00 USD." in said[1], said[1]


def test_ten_decisions_about_alternatives_and_ramps_have_their_page(sqlite_console: Console):
    """Quotes of every kind can be shown: option sets, ramps, bundles, other currencies, a rejected draft."""
    console, tools = sqlite_console, sqlite_console.tools
    dana = console.signed_in("dana", "sales_manager")
    ramp = [{"months": 6, "quantity": 100}, {"months": 6, "uplift_pct": 5}]
    kinds: list[tuple[Any, dict[str, Any]]] = [
        (({**SEATS, "option_set": "a"}, {"product_id": "prod_qmb15", "quantity": 1, "option_set": "b"}), {}),
        (({**SEATS, "quantity": 150, "ramp": ramp},), {}),
        (({"product_id": "prod_bdl_qmb30", "quantity": 2},), {}),
        (({"product_id": "prod_hz200", "quantity": 1},), {"account_id": "acct_hikari_020", "currency": "JPY"}),
    ]
    for lines, terms in kinds:
        quote_id = priced_quote(tools, 10, *lines, **terms)
        page = dana.get(f"/console/quotes/{quote_id}")
        assert page.status_code == 200, page.text
        levels = re.findall(r'<text class="value level"[^>]*>([\d,.]+)</text>', page.text)
        total = tools("quote_get", quote_id=quote_id, include_pricing=True)["pricing"]["total"]
        assert float(levels[-1].replace(",", "")) == total
