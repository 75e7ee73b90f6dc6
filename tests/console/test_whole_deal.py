"""People do a whole deal in the console alone: create, edit, price, ask, decide, send, accept; without JavaScript."""

import html
import re
from typing import Any

import pytest

from tests.support.approvals import ask, let_lapse, person, priced_quote
from tests.support.console import Console, form_token, send
from tests.support.engine import StillEffects
from tests.support.quotes import assert_sound, new_quote, sent_quote, status_of, stored


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of the form in the middle of a page, which is the last one that is sent."""
    form = page[page.rindex('<form method="post"') :]
    return {
        name: html.unescape(value) for name, value in re.findall(r'type="hidden" name="([\w.]+)" value="([^"]*)"', form)
    }


def fill(visitor: Any, address: str, **typed: str) -> Any:
    """Open a form, fill it in and send it."""
    page = visitor.get(address)
    assert page.status_code == 200, page.text
    data = {**hidden(page.text), **{name.replace("__", "."): value for name, value in typed.items()}}
    return visitor.post(address, data=data)


def done(visitor: Any, address: str, **typed: str) -> str:
    """As `fill`, and what the next page says."""
    answer = fill(visitor, address, **typed)
    assert answer.status_code == 303, answer.text
    return str(visitor.get(answer.headers["location"]).text)


def step(visitor: Any, quote_id: str, name: str, **typed: str) -> str:
    return done(visitor, f"/console/quotes/{quote_id}/steps/{name}", **typed)


def created(answer: Any) -> str:
    found = re.fullmatch(r"/console/quotes/(Q-[a-z0-9]+)\?done=created", answer.headers["location"])
    assert found, answer.headers["location"]
    return found[1]


def test_19_4_a_seller_reads_what_is_not_for_the_customer_and_closes_the_marks(console: Console):
    source = {"quote_id": "P21-1001", "line": 1, "score": 0.79, "customer": "Thornton Castings"}
    noted = {"internal_notes": "Ask for the crane.", "sources": [source], "review": ["Is 460 V right?"]}
    quote_id = new_quote(console.tools, {"product_id": "prod_tk240v", "quantity": 1, **noted}, review=["And the date?"])
    console.tools("quote_price", quote_id=quote_id)
    rosa = console.signed_in("rosa", "sales_rep")
    page = rosa.get(f"/console/quotes/{quote_id}").text
    for text in (
        "For the seller only",
        "Ask for the crane.",
        "P21-1001",
        "Thornton Castings",
        "0.79",
        "2 marks for review",
    ):
        assert text in page
    assert "Mark as sent" not in page
    assert "Open the PDF" not in page
    form = rosa.get(f"/console/quotes/{quote_id}/steps/review").text
    assert "Is 460 V right?" in form
    assert "And the date?" in form
    page = step(rosa, quote_id, "review")
    assert "closed by rosa" in page
    assert "marks for review" not in page.replace("Close the marks for review", "")
    assert "Mark as sent" in page


def test_a_person_finishes_a_deal_in_the_console_alone(console: Console):
    """Nothing but pages: from the account to the acceptance, with an approval by somebody else in between."""
    rosa, dana = console.signed_in("rosa", "sales_rep"), console.signed_in("dana", "sales_manager")
    start = rosa.get("/console/quotes/new?q=acme").text
    assert "account_id=acct_acme_001" in start
    products = rosa.get("/console/quotes/new?account_id=acct_acme_001&q=pro+plan").text
    assert "product_id=prod_pro_v2" in products
    address = "/console/quotes/new?account_id=acct_acme_001&product_id=prod_pro_v2"
    quote_id = created(fill(rosa, address, quantity="100", term_months="12"))
    assert console.tools("quote_get", quote_id=quote_id)["quote"]["created_by"] == "human:rosa"
    line = f"/console/quotes/{quote_id}/lines/{quote_id}-ql-1"
    assert "The draft is changed." in done(rosa, line, quantity="150")
    assert "prod_qvs40" in rosa.get(f"/console/quotes/{quote_id}/lines/new?q=qvs40").text
    done(rosa, f"/console/quotes/{quote_id}/lines/new?product_id=prod_qvs40", quantity="1", option__psi="150")
    second = f"/console/quotes/{quote_id}/lines/{quote_id}-ql-2"
    page = rosa.get(second).text
    assert re.search(r'name="option\.psi".*?<option value="150" selected>', page, re.DOTALL)
    done(rosa, second, remove="yes")
    done(rosa, f"/console/quotes/{quote_id}/terms", term_months="12", notes="Thank you.", payment_terms="net_30")
    assert "The draft is priced." in step(rosa, quote_id, "price", requested_discount_pct="10")
    assert "steps/send" not in rosa.get(f"/console/quotes/{quote_id}").text, "it needs an approval"
    asked = rosa.get(f"/console/quotes/{quote_id}/steps/request").text
    assert "Sales manager" in asked
    assert "dana" in asked
    assert "Approval is requested." in step(rosa, quote_id, "request", justification="A good customer.")
    assert send(console, dana, quote_id, "approve", "Go.").headers["location"].endswith("done=approved")
    assert "marked as sent" in step(rosa, quote_id, "send")
    assert "The customer has accepted." in step(rosa, quote_id, "accept")
    stored_quote = console.tools("quote_get", quote_id=quote_id, include_pricing=True)
    assert (stored_quote["quote"]["status"], stored_quote["pricing"]["total"]) == ("accepted", 1350)
    assert [line["quantity"] for line in stored_quote["line_items"]] == [150]
    assert assert_sound(console.app) == 1


def test_a_deal_is_started_from_a_template_and_from_any_quote(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    assert "There is no template yet." in rosa.get("/console/quotes/new").text
    template = new_quote(console.tools, deal_id="template")
    other = new_quote(console.tools, account_id="acct_groeb_002")
    start = rosa.get("/console/quotes/new").text
    assert f"from={template}" in start
    assert f"from={other}" not in start
    assert f"from={other}" in rosa.get(f"/console/quotes/{other}").text
    for source, account in ((template, "acct_groeb_002"), (other, "acct_groeb_002")):
        assert f"from={source}&amp;account_id={account}" in rosa.get(f"/console/quotes/new?from={source}&q=groeb").text
        copy = created(fill(rosa, f"/console/quotes/new?from={source}&account_id={account}"))
        found = console.tools("quote_get", quote_id=copy)
        assert found["quote"]["account_id"] == account
        assert [line["product_id"] for line in found["line_items"]] == ["prod_pro_v2"]


def test_requests_are_withdrawn_and_quotes_declined_revised_and_cancelled(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    maker = person(console.app, "rosa", "sales_rep")
    quote_id = priced_quote(maker)
    ask(maker, quote_id)
    assert "The request is withdrawn." in step(rosa, quote_id, "withdraw", reason="A typo.")
    assert console.tools("approval_status", quote_id=quote_id)["pending_requests"] == []
    assert "next version is open" in step(rosa, quote_id, "revise")
    assert "The version is cancelled." in step(rosa, quote_id, "cancel", reason="Not wanted.")
    assert status_of(console.tools, quote_id) == "cancelled"
    declined = sent_quote(console.tools)
    assert "The customer has declined." in step(rosa, declined, "decline", reason="Too expensive.")
    assert status_of(console.tools, declined) == "declined"


def test_a_sent_version_is_accepted_while_its_revision_is_open(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    quote_id = sent_quote(console.tools)
    step(rosa, quote_id, "revise")
    page = rosa.get(f"/console/quotes/{quote_id}/steps/accept").text
    assert hidden(page)["version"] == "1"
    step(rosa, quote_id, "accept")
    found = console.tools("quote_get", quote_id=quote_id)["quote"]
    assert (found["status"], found["version"]) == ("accepted", 1)


def test_of_several_alternatives_one_is_accepted(sqlite_console: Console):
    tools, rosa = sqlite_console.tools, sqlite_console.signed_in("rosa", "sales_rep")
    seats = {"product_id": "prod_pro_v2", "quantity": 100}
    quote_id = sent_quote(tools, {**seats, "option_set": "a"}, {**seats, "quantity": 150, "option_set": "b"})
    address = f"/console/quotes/{quote_id}/steps/accept"
    refused = fill(rosa, address)
    assert refused.status_code == 400
    assert re.search(r'id="problem-option_set"[^>]*>Name the option set', refused.text)
    step(rosa, quote_id, "accept", option_set="b", evidence="PO 4711")
    assert tools("quote_get", quote_id=quote_id)["quote"]["option_set"] == "b"
    (order,) = tools("order_list")["items"]
    assert tools("order_get", order_id=order["id"])["evidence"] == "PO 4711"


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"quantity": "0"}, "quantity"),
        ({"quantity": "many"}, "quantity"),
        ({"quantity": ""}, "quantity"),
        ({"quantity": "1", "discount_pct": "101"}, "discount_pct"),
        ({"quantity": "1", "discount_pct": "ten"}, "discount_pct"),
        ({"quantity": "1", "option.psi": "9"}, "option.psi"),
        ({"quantity": "1", "option.cooling": "water", "option.outdoor": "true"}, ""),
    ],
)
def test_what_is_wrong_stands_beside_its_field_and_nothing_changes(
    sqlite_console: Console, typed: dict[str, str], field: str
):
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    quote_id = new_quote(sqlite_console.tools)
    before = stored(sqlite_console.app)
    address = f"/console/quotes/{quote_id}/lines/new?product_id=prod_qvs40"
    answer = fill(rosa, address, **{name.replace(".", "__"): value for name, value in typed.items()})
    assert answer.status_code == 400
    assert "Nothing was changed." in answer.text
    if field:
        assert re.search(rf'name="{re.escape(field)}"[^>]*aria-invalid="true"', answer.text)
        assert f'id="problem-{field}"' in answer.text
    for name, value in typed.items():
        if name in ("quantity", "discount_pct"):
            assert f'value="{value}"' in answer.text, "what was typed is still there"
    assert {**stored(sqlite_console.app), "idempotency": []} == {**before, "idempotency": []}


def test_wrong_terms_are_named(sqlite_console: Console):
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    quote_id = new_quote(sqlite_console.tools)
    address = f"/console/quotes/{quote_id}/terms"
    for typed, field in (
        ({"term_months": "x"}, "term_months"),
        ({"start_date": "tomorrow"}, "start_date"),
        ({"term_months": "12", "end_date": "2027-01-31"}, "end_date"),
        ({"term_months": "", "end_date": "2027-01-31"}, "end_date"),
        ({"valid_until": "2020-01-31"}, "valid_until"),
    ):
        answer = fill(rosa, address, **typed)
        assert answer.status_code == 400, typed
        assert f'id="problem-{field}"' in answer.text, (typed, answer.text)
    done(rosa, address, term_months="24", start_date="2026-12-01", end_date="", deal_id="D-1", notes="")
    found = sqlite_console.tools("quote_get", quote_id=quote_id)["quote"]
    assert (found["term_months"], found["start_date"], found["deal_id"]) == (24, "2026-12-01", "D-1")


def test_g09_the_page_of_a_quote_names_each_tax(sqlite_console: Console):
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    quote_id = new_quote(sqlite_console.tools, account_id="acct_laurentide_009")
    sqlite_console.tools("quote_price", quote_id=quote_id)
    page = rosa.get(f"/console/quotes/{quote_id}").text
    for text in ("GST on saas (S): 5 % of 1,500.00 is 75.00.", "QST on saas (S): 9.975 % of 1,500.00 is 149.63."):
        assert text in page


def test_g11_the_last_valid_day_is_typed_shown_and_cleared_among_the_terms(sqlite_console: Console):
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    quote_id = new_quote(sqlite_console.tools)
    address = f"/console/quotes/{quote_id}/terms"
    field = re.compile(r'name="valid_until" type="date" value="([^"]*)"')
    for typed in ("2026-12-24", ""):
        done(rosa, address, valid_until=typed)
        found = sqlite_console.tools("quote_get", quote_id=quote_id)["quote"]
        assert (found["valid_until"], found["requested_valid_until"]) == (typed or "2026-12-16", typed or None)
        shown = field.search(rosa.get(address).text)
        assert shown is not None
        assert shown[1] == typed


def test_a_form_that_was_made_for_another_edit_changes_nothing(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    quote_id = new_quote(console.tools)
    address = f"/console/quotes/{quote_id}/lines/{quote_id}-ql-1"
    old = {name: hidden(rosa.get(where).text) for name, where in (("line", address), ("price", price_of(quote_id)))}
    done(rosa, address, quantity="7")
    for data, where in (({**old["line"], "quantity": "9"}, address), (old["price"], price_of(quote_id))):
        answer = rosa.post(where, data=data)
        assert answer.status_code == 409
        assert "The quote has changed" in answer.text
    assert console.tools("quote_get", quote_id=quote_id)["line_items"][0]["quantity"] == 7
    assert console.tools("quote_get", quote_id=quote_id, include_pricing=True)["pricing"]["priced_at"] is None


def price_of(quote_id: str) -> str:
    return f"/console/quotes/{quote_id}/steps/price"


def test_a_form_sent_twice_does_its_work_once(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    address = "/console/quotes/new?account_id=acct_acme_001&product_id=prod_pro_v2"
    data = {**hidden(rosa.get(address).text), "quantity": "5"}
    first, again = (created(rosa.post(address, data=data)) for _ in range(2))
    assert first == again
    assert console.tools("quote_list")["pagination"]["total"] == 1
    line = f"/console/quotes/{first}/lines/new?product_id=prod_pro_v2"
    data = {**hidden(rosa.get(line).text), "quantity": "5"}
    assert [rosa.post(line, data=data).status_code for _ in range(2)] == [303, 303]
    assert len(console.tools("quote_get", quote_id=first)["line_items"]) == 2


def test_who_may_not_quote_has_no_step_and_no_form(sqlite_console: Console):
    finn = sqlite_console.signed_in("finn", "finance")
    quote_id = priced_quote(sqlite_console.tools, 0)
    page = finn.get(f"/console/quotes/{quote_id}").text
    assert "/steps/" not in page
    assert "/lines/" not in page
    assert (
        "/quotes/new" not in page + finn.get("/console/quotes").text + finn.get("/console/accounts/acct_acme_001").text
    )
    token = form_token(page)
    before = stored(sqlite_console.app)
    for path in ("new", f"{quote_id}/lines/new", f"{quote_id}/lines/{quote_id}-ql-1", f"{quote_id}/terms"):
        assert finn.get(f"/console/quotes/{path}").status_code == 403, path
    for name in ("price", "request", "withdraw", "send", "accept", "decline", "revise", "cancel"):
        address = f"/console/quotes/{quote_id}/steps/{name}"
        data = {"form_token": token, "version": "1", "edit": "2", "justification": "x"}
        assert finn.post(address, data=data).status_code == 403, name
        assert finn.post(address, data={**data, "form_token": "0" * 64}).status_code == 403
    assert stored(sqlite_console.app) == before


def offered(page: str) -> list[str]:
    """The steps that the page of a quote offers, in order."""
    return re.findall(r"/steps/(\w+)", page)


def test_a_draft_whose_price_is_out_of_date_is_priced_and_not_sent(console: Console, clock: StillEffects):
    """What the user saw: "Mark as sent" on a draft of last month, which was then refused."""
    rosa = console.signed_in("rosa", "sales_rep")
    quote_id = priced_quote(console.tools, 0)
    address = f"/console/quotes/{quote_id}"
    assert offered(rosa.get(address).text) == ["send", "cancel", "price", "request"]
    clock.advance(days=40)
    rosa = console.signed_in("rosa")
    assert offered(rosa.get(address).text) == ["price", "cancel"]
    for name in ("send", "request"):
        assert rosa.get(f"{address}/steps/{name}").status_code == 409
    step(rosa, quote_id, "price")
    assert "marked as sent" in step(rosa, quote_id, "send")


def test_a_request_that_expired_is_withdrawn_where_nobody_needs_it(console: Console):
    """The draft is held by a request that no policy requires: it is withdrawn, and the version can be sent."""
    rosa, other = console.signed_in("rosa", "sales_rep"), console.signed_in("ole", "sales_rep")
    maker = person(console.app, "rosa", "sales_rep")
    quote_id = priced_quote(maker, 0)
    ask(maker, quote_id)
    let_lapse(console.app, quote_id)
    address = f"/console/quotes/{quote_id}"
    assert offered(rosa.get(address).text) == ["withdraw", "cancel", "price", "request"]
    assert "withdraw" not in offered(other.get(address).text), "it is not theirs"
    assert other.get(f"{address}/steps/withdraw").status_code == 409
    assert "The request is withdrawn." in step(rosa, quote_id, "withdraw", reason="Not needed.")
    assert status_of(console.tools, quote_id) == "approved"
    assert "marked as sent" in step(rosa, quote_id, "send")


def test_a_request_that_expired_and_is_required_is_asked_again_and_not_withdrawn(console: Console, clock: StillEffects):
    rosa = console.signed_in("rosa", "sales_rep")
    maker = person(console.app, "rosa", "sales_rep")
    quote_id = priced_quote(maker)
    ask(maker, quote_id)
    let_lapse(console.app, quote_id)
    address = f"/console/quotes/{quote_id}"
    page = rosa.get(address).text
    assert offered(page) == ["request", "cancel", "price"]
    assert "Ask again" in page
    clock.advance(days=40)
    rosa = console.signed_in("rosa")
    page = rosa.get(address).text
    assert offered(page) == ["price", "cancel"]
    assert "Ask again" not in page
    assert "Price it again before somebody is asked." in page


def test_a_step_that_does_not_fit_says_so(sqlite_console: Console):
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    quote_id = sent_quote(sqlite_console.tools)
    for name in ("price", "send", "request", "withdraw"):
        page = rosa.get(f"/console/quotes/{quote_id}/steps/{name}")
        assert page.status_code == 409, name
        assert "this step does not fit" in page.text
    assert rosa.get(f"/console/quotes/{quote_id}/steps/fly").status_code == 404
    assert rosa.get(f"/console/quotes/{quote_id}/lines/{quote_id}-ql-9").status_code == 404
