"""The public page `/accept`: a customer accepts what was sent to them, once, and nothing else; no agent gets there."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
import sqlalchemy as sa
from playwright.sync_api import Browser, expect

from cpq.app import Command, sessions
from cpq.app.access import LOCAL_AGENT, Permission
from cpq.app.reconciliation import reconcile
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.console.accept import LOOKS_PER_MINUTE, TRIES_PER_MINUTE
from cpq.services.quotes import acceptance_links
from cpq.storage.schema import tables
from tests.support.console import WAIT_SECONDS, Console, form_token, serving
from tests.support.engine import StillEffects
from tests.support.quotes import sent_quote, status_of, stored

OVER, UNKNOWN = "This offer is no longer current", "This link is not valid"


def link_for(console: Console, seller: httpx2.Client, quote_id: str) -> str:
    """The path of the link that a seller makes in the console."""
    path = f"/console/quotes/{quote_id}/customer-link"
    page = seller.get(path).text
    version = re.search(r'name="version" value="(\d+)"', page)
    assert version, page
    made = seller.post(path, data={"form_token": form_token(page), "version": version[1]})
    found = re.search(rf"{console.url}(/accept/main\.[\w-]{{43}})", made.text)
    assert found, made.text
    return found[1]


def code_of(link: str) -> str:
    """The stored hash of the code in a link."""
    return sessions.derived("accept", link.rpartition("/")[2])


def answer_of(page: str, **changed: str | None) -> dict[str, str]:
    """What the form of the page sends when it is filled in; None leaves a field out."""
    seen = re.search(r'name="fingerprint" value="([0-9a-f]{64})"', page)
    assert seen, page
    said = {"form_token": form_token(page), "fingerprint": seen[1], "name": "Jo Buyer", "agree": "yes", **changed}
    return {name: value for name, value in said.items() if value is not None}


def title(page: str) -> str:
    found = re.search(r"<h1[^>]*>(.*)</h1>", page)
    assert found, page
    return found[1]


def entries(console: Console, operation: str) -> list[Any]:
    console.app.flush_audit()
    entry = tables.audit_entry.c
    with console.app.database.reading() as connection:
        query = sa.select(entry.caller, entry.subject, entry.outcome).where(entry.operation == operation)
        return [tuple(row) for row in connection.execute(query)]


def links(console: Console) -> list[Any]:
    with console.app.database.reading() as connection:
        return list(connection.execute(sa.select(tables.acceptance_link)))


def test_a_customer_accepts_the_sent_version_by_a_link_without_an_account(console: Console):
    quote_id = sent_quote(console.tools)
    link = link_for(console, console.signed_in("rita", "sales_rep"), quote_id)
    customer = console.visitor()
    page = customer.get(link)
    assert (page.status_code, title(page.text)) == (200, "Our offer to you")
    assert "1,500.00" in page.text
    assert "Pro Plan" in page.text
    assert not [word for word in ("margin", "cost", "/console", "<script") if word in page.text.partition("<main")[2]]
    assert page.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    said = customer.post(link, data=answer_of(page.text))
    assert (said.status_code, said.headers["location"]) == (303, link)
    shown = customer.get(link).text
    assert title(shown) == "You have accepted this offer"
    assert "Accepted by <bdi>Jo Buyer</bdi>" in shown
    assert status_of(console.tools, quote_id) == "accepted"
    [row] = links(console)
    assert (row.used_by, row.created_by, len(row.address_hash)) == ("Jo Buyer", "human:rita", 64)
    assert "127.0.0.1" not in repr(row)
    assert link.rpartition(".")[2] not in repr(row)
    assert entries(console, "quote_accept") == [(f"customer:{row.id}", quote_id, "OK")]
    version = console.tools("quote_get", quote_id=quote_id)
    assert f"Jo Buyer accepted by link {row.id}" in repr(version)


def test_accepting_twice_or_at_once_is_done_once(console: Console):
    quote_id = sent_quote(console.tools)
    link = link_for(console, console.signed_in("rita", "sales_rep"), quote_id)
    form = answer_of(console.visitor().get(link).text)

    def send(place: int) -> int:
        with httpx2.Client(base_url=console.url, headers={"Origin": console.url}, timeout=WAIT_SECONDS) as customer:
            return customer.post(link, data={**form, "name": f"Buyer {place}"}).status_code

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(send, range(4))) == {303}
    [row] = links(console)
    before = stored(console.app)
    assert send(9) == 303
    assert stored(console.app) == before
    assert links(console) == [row]
    assert {outcome for _, _, outcome in entries(console, "quote_accept")} == {"OK"}
    assert status_of(console.tools, quote_id) == "accepted"


def test_a_form_that_is_not_filled_in_or_not_ours_accepts_nothing(console: Console):
    quote_id = sent_quote(console.tools)
    link = link_for(console, console.signed_in("rita", "sales_rep"), quote_id)
    customer = console.visitor()
    page = customer.get(link).text
    before = (stored(console.app), links(console))
    wrong: tuple[tuple[dict[str, str | None], int], ...] = (
        ({"agree": None}, 400),
        ({"name": ""}, 400),
        ({"name": "x" * 101}, 400),
        ({"name": "two\nlines"}, 400),
        ({"form_token": None}, 403),
        ({"form_token": "0" * 64}, 403),
        ({"fingerprint": "0" * 64}, 409),
    )
    for changed, status in wrong:
        assert customer.post(link, data=answer_of(page, **changed)).status_code == status, changed
    foreign = httpx2.post(f"{console.url}{link}", data=answer_of(page), headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403
    assert (stored(console.app), links(console)) == before


@pytest.mark.parametrize("end", ["superseded", "expired", "declined", "changed"])
def test_a_link_ends_with_the_version_it_is_for(console: Console, clock: StillEffects, end: str):
    tools = console.tools
    quote_id = sent_quote(tools)
    link = link_for(console, console.signed_in("rita", "sales_rep"), quote_id)
    customer = console.visitor()
    form = answer_of(customer.get(link).text)
    if end == "superseded":
        tools("quote_revise", quote_id=quote_id, expected_version=1)
        assert title(customer.get(link).text) == "Our offer to you", "the customer has it while the next one is made"
        tools("quote_price", quote_id=quote_id)
        tools("quote_send", quote_id=quote_id, expected_version=2)
    elif end == "expired":
        clock.advance(days=31)
    elif end == "declined":
        tools("quote_decline", quote_id=quote_id, expected_version=1)
    else:
        change = sa.update(tables.quote_version).values(fingerprint="0" * 64)
        with console.app.database.writing(console.app.effects.monotonic() + 30) as connection:
            connection.execute(change.where(tables.quote_version.c.quote_id == quote_id))
    assert title(customer.get(link).text) == OVER
    before = stored(console.app)
    assert customer.post(link, data=form).headers.get("location") == link
    after = stored(console.app)
    if end == "expired":  # The server may forget old keys meanwhile.
        before["idempotency"] = after["idempotency"] = []
    assert after == before
    assert links(console)[0].used_at is None
    with pytest.raises(CpqError):
        console.app.upkeep(
            console.app.new_call(acceptance_links.customer("main", "LNK-1")),
            lambda tx: acceptance_links.accept(
                tx,
                link.rpartition("/")[2],
                name="Jo",
                fingerprint=form["fingerprint"],
                option_set=None,
                address="",
            ),
        )
    assert links(console)[0].used_at is None, "the version is judged again in the transaction"


def test_a_revoked_link_is_dead_and_another_one_is_not(console: Console):
    quote_id = sent_quote(console.tools)
    rita = console.signed_in("rita", "sales_rep")
    link, other = (link_for(console, rita, quote_id) for _ in range(2))
    customer = console.visitor()
    form = answer_of(customer.get(link).text)
    path = f"/console/quotes/{quote_id}/customer-link"
    page = rita.get(path).text
    [first, second] = sorted(links(console), key=lambda row: row.created_at)
    assert all(f'value="{row.id}"' in page for row in (first, second))
    assert "made by <bdi>rita</bdi>" in page
    revoked = first.id if code_of(link) == first.code_hash else second.id
    data = {"form_token": form_token(page), "link_id": revoked}
    assert rita.post(f"{path}/revoke", data=data).headers["location"] == path
    assert f'value="{revoked}"' not in rita.get(path).text
    before = stored(console.app)
    assert (customer.get(link).status_code, title(customer.get(link).text)) == (404, UNKNOWN)
    assert customer.get(f"{link}/document").status_code == 404
    assert customer.post(link, data=form).status_code == 404
    assert stored(console.app) == before
    assert entries(console, "quote_unlink") == [("human:rita", quote_id, "OK")]
    assert rita.post(f"{path}/revoke", data=data).status_code == 303, "revoking twice changes nothing"
    assert customer.post(other, data=answer_of(customer.get(other).text)).status_code == 303
    assert status_of(console.tools, quote_id) == "accepted"
    used = next(row.id for row in links(console) if row.used_at)
    assert rita.post(f"{path}/revoke", data={**data, "link_id": used}).status_code == 409
    assert rita.post(f"{path}/revoke", data={**data, "link_id": "LNK-none"}).status_code == 404
    states = {row.id: (row.revoked_by, row.used_by) for row in links(console)}
    assert states == {revoked: ("human:rita", None), used: (None, "Jo Buyer")}


def test_a_link_that_is_revoked_while_the_customer_accepts_it_accepts_nothing(console: Console):
    """The link is looked at again once the quote is locked."""
    quote_id = sent_quote(console.tools)
    rita = console.signed_in("rita", "sales_rep")
    link = link_for(console, rita, quote_id)
    page = console.visitor().get(link).text
    person = console.app.read_unaudited(console.app.new_call(), lambda tx: sessions.person(tx, "rita"))

    def revoke_all(tx: Tx) -> dict[str, Any]:
        return {"quote_id": quote_id, "revoked": acceptance_links.revoke(tx, quote_id)}

    command = Command("quote_unlink", Permission.QUOTE, {"quote_id": quote_id}, subject=quote_id)
    assert len(console.app.write(console.app.new_call(person), command, revoke_all).answer["revoked"]) == 1
    with pytest.raises(CpqError, match="There is no such link"):
        console.app.upkeep(
            console.app.new_call(acceptance_links.customer("main", "LNK-1")),
            lambda tx: acceptance_links.accept(
                tx,
                link.rpartition("/")[2],
                name="Jo",
                fingerprint=answer_of(page)["fingerprint"],
                option_set=None,
                address="",
            ),
        )
    assert status_of(console.tools, quote_id) == "sent"
    with pytest.raises(CpqError, match="A person revokes"):
        console.app.upkeep(console.app.new_call(LOCAL_AGENT), lambda tx: acceptance_links.revoke(tx, quote_id))
    report = console.app.read_unaudited(console.app.new_call(), lambda tx: reconcile(tx, lambda _done, _total: None))
    assert report.findings == []


def test_the_customer_chooses_among_alternatives(console: Console):
    lines = [
        {"product_id": "prod_pro_v2", "quantity": 10, "option_set": "small"},
        {"product_id": "prod_pro_v2", "quantity": 20, "option_set": "large"},
    ]
    quote_id = sent_quote(console.tools, *lines)
    link = link_for(console, console.signed_in("rita", "sales_rep"), quote_id)
    customer = console.visitor()
    page = customer.get(link).text
    assert "100.00 USD" in page
    assert "200.00 USD" in page
    assert customer.post(link, data=answer_of(page)).status_code == 400
    assert customer.post(link, data=answer_of(page, option_set="huge")).status_code == 400
    assert customer.post(link, data=answer_of(page, option_set="large")).status_code == 303
    assert "Accepted alternative: <bdi>large</bdi>, 200.00 USD" in customer.get(link).text
    accepted = console.tools("quote_get", quote_id=quote_id)
    assert (accepted["quote"]["status"], accepted["pricing"]["total"]) == ("accepted", 200)


def test_no_agent_gets_a_link(console: Console):
    quote_id = sent_quote(console.tools)
    with pytest.raises(CpqError, match="A person makes the link"):
        console.app.upkeep(
            console.app.new_call(LOCAL_AGENT), lambda tx: acceptance_links.make(tx, quote_id, expected_version=1)
        )
    assert not links(console)
    finance = console.signed_in("fiona", "finance")
    assert finance.get(f"/console/quotes/{quote_id}/customer-link").status_code == 403
    for code in ("main.guess", "other.guess", "main.", "x" * 300, "%00", "main.%C3%A9", "..%2Fverify"):
        answer = console.visitor().get(f"/accept/{code}")
        assert answer.status_code == 404
    assert title(console.visitor().get("/accept/main.guess").text) == UNKNOWN


def test_guessing_links_without_end_is_limited(sqlite_console: Console):
    console = sqlite_console
    quote_id = sent_quote(console.tools)
    link = link_for(console, console.signed_in("rita", "sales_rep"), quote_id)
    customer = console.visitor()
    page = customer.get(link).text
    tries = [customer.post(link, data=answer_of(page, agree=None)).status_code for _ in range(TRIES_PER_MINUTE + 1)]
    assert tries == [400] * TRIES_PER_MINUTE + [429]
    looks = [customer.get("/accept/main.guess") for _ in range(LOOKS_PER_MINUTE)]
    assert looks[-1].status_code == 429
    assert int(looks[-1].headers["retry-after"]) >= 1
    assert "Nothing was accepted" in looks[-1].text


def test_the_document_is_that_of_the_version_and_read_in_the_customers_name(console: Console):
    asked: list[Any] = []

    def document(call: Any, quote_id: str, version: int) -> bytes:
        asked.append((call.principal.signature, quote_id, version))
        return b"%PDF-1.7 of a test"

    quote_id = sent_quote(console.tools)
    link = link_for(console, console.signed_in("rita", "sales_rep"), quote_id)
    assert console.visitor().get(f"{link}/document").status_code == 404, "without a renderer"
    with serving(console.app.settings, console.app.effects, document=document) as with_papers:
        customer = with_papers.visitor()
        assert f"{link}/document" in customer.get(link).text
        paper = customer.get(f"{link}/document")
        assert (paper.status_code, paper.content) == (200, b"%PDF-1.7 of a test")
    assert asked == [(f"customer:{links(console)[0].id} acting for agent:engine", quote_id, 1)]


def test_in_a_real_browser_the_offer_is_accepted_by_name_and_tick(live_console: Console, browser: Browser):
    console = live_console
    quote_id = sent_quote(console.tools)
    link = link_for(console, console.signed_in("rita", "sales_rep"), quote_id)
    page = browser.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=True).new_page()
    page.goto(f"{console.url}{link}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it fits a phone"
    page.get_by_role("button", name="Accept the offer").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Our offer to you")
    page.get_by_label("Your name").fill("Jo <b>Buyer</b>")
    page.get_by_label("I accept this offer").check()
    page.get_by_role("button", name="Accept the offer").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You have accepted this offer")
    expect(page.locator("main")).to_contain_text("Accepted by Jo <b>Buyer</b>")
    assert status_of(console.tools, quote_id) == "accepted"
    page.context.close()
