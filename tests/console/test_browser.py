"""The console as people use it: a real Chromium, with keys, on a phone, in the dark, without JavaScript."""

import json
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import anyio
import pytest
from mcp import Client
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from cpq.base.settings import read_settings
from cpq.cli import sample_quotes
from cpq.services import approvals
from cpq.services.approvals.held_decisions import UNDO_SECONDS
from tests.console.test_decisions import HOSTILE
from tests.support import engine
from tests.support.approvals import ask, priced_quote
from tests.support.console import WAIT_SECONDS, Console, serving
from tests.support.quotes import SEATS, new_quote

AXE = Path(__file__).with_name("axe.min.js")
PHONE = {"width": 390, "height": 844}
PATIENCE = 1_000 * WAIT_SECONDS
"""Milliseconds; a busy machine is slow, and only what never comes is wrong."""

expect.set_options(timeout=PATIENCE)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with_errors = browser.new_context()
    yield opened(with_errors)
    with_errors.close()


def opened(context: BrowserContext) -> Page:
    """A new page on which any error of a script, or anything the content policy stops, fails the test."""
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.on("console", lambda said: _no_violation(said.text))
    return page


def _no_violation(text: str) -> None:
    assert "Content Security Policy" not in text, text


def sign_in(console: Console, page: Page, name: str = "dana") -> None:
    page.goto(console.link(name))
    page.get_by_role("button", name="Sign in").click()
    expect_page(page, "Queue")


def expect_page(page: Page, heading: str) -> None:
    """The page with this heading is there, and its scripts are ready for keys."""
    expect(page.get_by_role("heading", name=heading)).to_be_visible()
    page.wait_for_load_state("load")


def waiting(console: Console, *people: str) -> str:
    """The id of a quote that waits, and people who may decide it."""
    for name in people or ("dana",):
        console.grant(name, "sales_manager")
    quote_id = priced_quote(console.tools)
    ask(console.tools, quote_id)
    return quote_id


def approve(console: Console, page: Page, comment: str = "") -> None:
    """Approve in the dialog, and let the time to undo it go by."""
    page.get_by_role("link", name="Approve…").click()
    if comment:
        page.get_by_label("Comment").fill(comment)
    page.get_by_role("button", name="Approve", exact=True).click()
    settle(console, page)


def settle(console: Console, page: Page) -> None:
    """The ten seconds are over, and the page is loaded again."""
    expect(page.get_by_role("status")).to_contain_text("takes effect in")
    console.app.effects.advance(seconds=UNDO_SECONDS)  # type: ignore[attr-defined] # The clock of the tests.
    page.reload()


def status_seen_by_an_agent(console: Console, quote_id: str) -> str:
    """Through a real MCP client, over the same server; in a thread, because the browser's loop runs in this one."""

    async def ask_status() -> str:
        async with Client(f"{console.url}/mcp") as client:
            answer = await client.call_tool("approval_status", {"quote_id": quote_id})
            return str((answer.structured_content or {})["current_status"])

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(anyio.run, ask_status).result()


def test_a_machine_is_configured_with_the_keyboard_and_updates_at_once(live_console: Console, page: Page):
    """A choice updates the page and keeps the focus, so that the next arrow key goes on from there."""
    live_console.grant("rosa", "sales_rep")
    sign_in(live_console, page, "rosa")
    page.goto(f"{live_console.url}/console/products/prod_qvs60/configure?account_id=acct_acme_001")
    expect(page.get_by_role("status")).to_contain_text("Valid.")
    water = page.get_by_role("group", name="Cooling").get_by_role("radio", name="water")
    voltage = page.get_by_role("group", name="Supply voltage").get_by_role("radio", name="208")
    voltage.focus()
    page.keyboard.press("Space")
    expect(page.locator("label.pick.out", has_text="water")).to_have_attribute("title", re.compile("On 208 V"))
    expect(voltage).to_be_focused()
    water.focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("status")).to_contain_text("These choices cannot stand together.")
    page.get_by_role("link", name="Use this one").first.click()
    expect(page.get_by_role("status")).to_contain_text("Valid.")


def test_from_the_link_to_the_agents_answer(live_console: Console, page: Page):
    console = live_console
    quote_id = waiting(console)
    sign_in(console, page)
    page.get_by_role("link", name="Acme Corp").click()
    expect(page.locator(".summary")).to_contain_text("Acme Corp is offered 150 × Pro Plan")
    expect(page.locator(".summary")).to_contain_text("A sales manager has to approve, because a discount of 10\u202f%")
    expect(page.get_by_role("img", name=re.compile("List 1,500.00. Regular 1,500.00"))).to_be_visible()
    approve(console, page, "Good customer.")
    expect(page.get_by_role("status")).to_contain_text("can be sent")
    assert status_seen_by_an_agent(console, quote_id) == "approved"
    page.get_by_role("button", name="Sign out").click()
    expect_page(page, "Sign in")
    page.goto(f"{console.url}/console/quotes/{quote_id}")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_the_same_quote_in_two_browsers(live_console: Console, browser: Browser):
    console = live_console
    quote_id = waiting(console, "dana", "dirk")
    contexts = [browser.new_context() for _ in range(2)]
    dana, dirk = (opened(context) for context in contexts)
    for page, name in ((dana, "dana"), (dirk, "dirk")):
        sign_in(console, page, name)
        page.goto(f"{console.url}/console/quotes/{quote_id}")
    dirk.get_by_role("link", name="Reject…").click()
    approve(console, dana)
    expect(dana.get_by_role("status")).to_contain_text("You approved it")
    dirk.get_by_label("Comment").fill("No.")
    dirk.get_by_role("button", name="Reject", exact=True).click()
    expect(dirk.get_by_role("alert")).to_contain_text(" dana has approved it already")
    assert console.tools("approval_status", quote_id=quote_id)["current_status"] == "approved"
    for context in contexts:
        context.close()


def test_what_comes_in_shows_without_reload(live_console: Console, page: Page):
    console = live_console
    waiting(console)
    sign_in(console, page)
    rows = page.locator("tr[data-open]")
    expect(rows).to_have_count(1)
    page.keyboard.press("j")
    expect(rows.first.get_by_role("link")).to_be_focused()
    page.evaluate("window.isSame = true")
    waiting(console, "dirk")
    expect(rows).to_have_count(2)
    expect(page.locator("#lead")).to_contain_text("2 wait for you")
    assert page.evaluate("window.isSame") is True
    expect(rows.first.get_by_role("link")).to_be_focused()


def test_going_back_after_a_search_brings_the_whole_page(live_console: Console, page: Page):
    console = live_console
    waiting(console)
    new_quote(console.tools, account_id="acct_groeb_002")
    sign_in(console, page)
    page.goto(f"{console.url}/console/quotes")
    lead, rows = page.locator("#lead"), page.locator("tr[data-open]")
    expect(lead).to_have_text("2")
    for words, count in (("acme", 1), ("nothing", 0)):
        page.locator("#q").fill(words)
        expect(page).to_have_url(re.compile(f"q={words}"))
        expect(rows).to_have_count(count)
        expect(lead).to_have_text(f"{count} that match")
    for words, told in (("acme", "1 that match"), ("", "2")):
        page.go_back()
        expect(lead).to_have_text(told)
        expect(page.locator("#q")).to_have_value(words)
        expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    page.goto(f"{console.url}/console/queue")
    page.get_by_text("Everybody's").click()
    expect(page).to_have_url(re.compile("scope=all"))
    page.go_back()
    expect(page.get_by_role("radio", name="For me")).to_be_checked()
    expect_page(page, "Queue")


def test_with_the_keyboard_alone(live_console: Console, page: Page):
    console = live_console
    quote_id = waiting(console)
    console.grant("dana", "sales_rep")
    page.goto(console.link("dana"))
    expect(page.get_by_role("button", name="Sign in")).to_be_focused()
    page.keyboard.press("Enter")
    expect_page(page, "Queue")
    page.keyboard.press("/")
    page.keyboard.type("acme")
    expect(page).to_have_url(re.compile("q=acme"))
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile("q=(&|$)"))  # The box is empty, and the list has come anew below the mark.
    expect(page.get_by_role("link", name="Acme Corp")).to_be_focused()
    page.keyboard.press("Enter")
    expect_page(page, "Acme Corp")
    page.keyboard.press("a")
    expect(page.get_by_label("Comment")).to_be_focused()
    page.keyboard.type("As agreed, a good deal")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    settle(console, page)
    expect(page.get_by_role("status")).to_contain_text("You approved it")
    assert console.tools("approval_history", quote_id=quote_id)["items"][0]["comment"] == "As agreed, a good deal"


def test_typing_a_sentence_decides_nothing(live_console: Console, page: Page):
    """ "Not a good idea" on the page of a quote once approved it: `a` focused the button, the next space pressed it."""
    console = live_console
    quote_id = waiting(console)
    sign_in(console, page)
    for sentence in ("Not a good idea", "a\n", "a ", "r ", "r\n", "aa", "a r ", " \n", "raar"):
        page.goto(f"{console.url}/console/quotes/{quote_id}")
        expect_page(page, "Acme Corp")
        for character in sentence:
            page.keyboard.press("Enter" if character == "\n" else character)
        console.app.effects.advance(seconds=UNDO_SECONDS)  # type: ignore[attr-defined] # The clock of the tests.
        approvals.take_due(console.app)
        assert status_seen_by_an_agent(console, quote_id) == "pending_approval", sentence
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).not_to_be_visible()
    page.get_by_role("link", name="Reject…").click()
    page.get_by_role("link", name="Back, decide nothing").click()
    expect(page.get_by_role("dialog")).not_to_be_visible()
    assert page.url.endswith(quote_id), "the dialog closes and the page stays"


def test_a_question_mark_shows_the_keys(live_console: Console, page: Page):
    waiting(live_console)
    sign_in(live_console, page)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("opens the confirmation")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Acme Corp")).not_to_be_focused()
    page.keyboard.press("Escape")
    expect(keys).not_to_be_visible()


def test_times_are_in_the_zone_of_the_browser(live_console: Console, browser: Browser):
    console = live_console
    quote_id = waiting(console)
    context = browser.new_context(timezone_id="Asia/Tokyo")
    page = opened(context)
    sign_in(console, page)
    page.goto(f"{console.url}/console/quotes/{quote_id}")
    expect(page.locator("time").last).to_contain_text("JST")
    context.close()


def test_ten_seconds_go_by_on_their_own(live_console: Console, page: Page):
    """Nothing is touched: the page counts down and shows the result. Undo works until then."""
    console = live_console
    quote_id = waiting(console)
    sign_in(console, page)
    page.goto(f"{console.url}/console/quotes/{quote_id}")
    page.get_by_role("link", name="Approve…").click()
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("Undone: nothing was decided.")
    page.get_by_role("link", name="Approve…").click()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("takes effect in")
    assert status_seen_by_an_agent(console, quote_id) == "pending_approval"
    expect(page.get_by_role("status")).to_contain_text("You approved it")
    assert status_seen_by_an_agent(console, quote_id) == "approved"


def test_with_tab_alone_and_no_script(live_console: Console, browser: Browser):
    """JavaScript is off: links and forms do everything."""
    console = live_console
    quote_id = waiting(console)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(console, page)
    page.get_by_role("link", name="Acme Corp").click()
    page.get_by_role("link", name="Ask for a change…").click()
    page.get_by_role("button", name="Ask for the change").click()
    expect(page.get_by_role("alert")).to_contain_text("Describe the change.")
    page.get_by_label("Comment").fill("Half of it.")
    page.get_by_label("Comment").press("Tab")
    page.keyboard.press("Enter")
    settle(console, page)
    expect(page.get_by_role("status")).to_contain_text("You asked for a change")
    status = console.tools("approval_status", quote_id=quote_id)
    assert (status["current_status"], status["reason"]) == ("rejected", "Change requested: Half of it.")
    page.goto(f"{console.url}/console/queue?scope=all")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("Nothing waits for anybody")).to_be_visible()
    context.close()


def test_on_a_phone(live_console: Console, browser: Browser):
    console = live_console
    waiting(console)
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)  # type: ignore[arg-type] # Two numbers.
    page = opened(context)
    sign_in(console, page)
    assert_fits(page)
    last = size(page.get_by_role("link", name="Health"))
    assert last["x"] + last["width"] <= PHONE["width"]
    page.goto(f"{console.url}/console/quotes")
    assert_fits(page)
    name = page.get_by_role("link", name="Acme Corp")
    assert size(name)["height"] < 30, "the name of an account stands in one line"
    name.tap()
    expect(page.get_by_role("heading", name="Acme Corp")).to_be_visible()
    assert_fits(page)
    expect(page.locator(".lines .price").first).to_be_visible()
    expect(page.locator(".lines .price").first).to_contain_text("10.00 a year × 1 year")
    sizes = page.locator("svg.chart:visible text").evaluate_all(PIXELS)
    assert sizes
    assert min(sizes) >= 11
    link = page.get_by_role("link", name="Approve…")
    assert size(link)["height"] >= 44
    link.tap()
    button = page.get_by_role("button", name="Approve", exact=True)
    assert size(button)["height"] >= 44
    button.tap()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert_fits(page)
    assert size(page.get_by_role("button", name="Undo"))["height"] >= 44
    settle(console, page)
    expect(page.get_by_role("status")).to_contain_text("You approved it")
    context.close()


def test_a_deal_on_a_phone_and_with_the_keyboard(live_console: Console, browser: Browser):
    """A seller on the way: from the account to the sent quote, with fingers and a keyboard."""
    console = live_console
    console.grant("rosa", "sales_rep")
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)  # type: ignore[arg-type] # Two numbers.
    page = opened(context)
    sign_in(console, page, "rosa")
    page.goto(f"{console.url}/console/quotes")
    page.get_by_role("link", name="New quote").tap()
    expect_page(page, "New quote: for which account?")
    page.keyboard.type("acme")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Acme Corp").tap()
    expect_page(page, "New quote for Acme Corp")
    page.keyboard.type("pro plan")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Pro Plan", exact=True).tap()
    expect(page.get_by_role("button", name="Create the draft")).to_be_visible()
    assert_fits(page)
    page.get_by_label("Quantity").fill("25")
    page.get_by_label("Term (months)").fill("12")
    page.get_by_role("button", name="Create the draft").tap()
    expect(page.get_by_role("status")).to_contain_text("The draft is created.")
    page.get_by_role("link", name="Price it…").tap()
    expect(page.get_by_label("Discount on the whole quote")).to_be_focused()
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("The draft is priced.")
    expect(page.locator(".notices")).to_contain_text("The total is 242.50 USD now; it was 250.00 USD.")
    page.get_by_role("link", name="Mark as sent…").tap()
    expect(page.get_by_role("button", name="Mark as sent")).to_be_visible()
    assert_fits(page)
    page.get_by_role("button", name="Mark as sent").tap()
    expect(page.get_by_role("status")).to_contain_text("marked as sent")
    context.close()


def test_hostile_names_and_notes_do_nothing_in_a_real_browser(live_console: Console, page: Page):
    console = live_console
    console.grant("dana", "sales_manager")
    name = '<img src=x onerror="document.title=1">Acme'
    account = {"id": "acct_evil", "name": name, "segment": "smb", "region": "americas", "country": "US"}
    terms = {
        "tax_zone": "US-OH",
        "locale": "en_US",
        "time_zone": "America/New_York",
        "currency": "USD",
        "price_book": "list",
    }
    engine.import_dicts(console.app, "accounts", {**account, **terms})
    first, *_ = (hostile_quote(console, text) for text in HOSTILE)
    page.on("dialog", lambda _dialog: pytest.fail("a script ran"))
    sign_in(console, page)
    for path in ("queue", f"quotes/{first}", "quotes", "accounts", "accounts/acct_evil", f"quotes/{first}/audit"):
        page.goto(f"{console.url}/console/{path}")
        assert "Quotewright" in page.title()
        assert page.locator("main img, main script, main iframe").count() == 0
    page.goto(f"{console.url}/console/quotes/{first}")
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)
    expect(page.locator(".decide blockquote p")).to_have_text(HOSTILE[0])


def test_no_page_has_a_serious_finding_of_the_accessibility_checker(
    sqlite_template: Path, tmp_path: Path, browser: Browser
):
    """axe, on every page, in light and dark and at a phone's width; and every page fits its window."""
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    settings = read_settings({}, home=tmp_path)
    sample_quotes.fill(settings, engine.TODAY)
    with serving(settings) as console:
        quote_id = changed_quote(console)
        paths = ["queue?scope=all", "queue?q=nothing", "quotes", f"quotes/{quote_id}", "accounts"]
        paths += [
            "accounts/acct_acme_001",
            f"agreements/{owned_agreement(console)}",
            "policies",
            "time-zone",
            f"quotes/{quote_id}/audit",
            "products/prod_qvs60/configure?option.voltage=208&option.cooling=water&account_id=acct_acme_001",
            "figures",
            "figures?days=365",
            "guide",
            "guide/commands",
        ]
        for query in ("quiet oilless compressor", "zxqv wkjh", "ergonomic office chairs"):
            console.tools("search_equipment", query=query)
        console.grant("dana", "deal_desk")
        paths += ["searches", "searches?failed=yes", "health", "nowhere", f"quotes/{quote_id}?version=1"]
        draft = new_quote(console.tools)
        console.grant("dana", "sales_rep")
        paths += ["quotes/new", "quotes/new?account_id=acct_acme_001&q=compressor", f"quotes/{draft}"]
        paths += ["quotes/new?account_id=acct_acme_001&product_id=prod_qvs40", f"quotes/new?from={draft}"]
        paths += [f"quotes/{draft}/lines/{draft}-ql-1", f"quotes/{draft}/terms", f"quotes/{draft}/steps/price"]
        looks: list[dict[str, Any]] = [
            {"color_scheme": "light"},
            {"color_scheme": "dark"},
            {"color_scheme": "light", "viewport": PHONE},
        ]
        for look in looks:
            # The checker is put into the page by the test, which the page's own content policy would stop.
            context = browser.new_context(bypass_csp=True, **look)
            page = context.new_page()
            page.goto(f"{console.url}/console/sign-in")
            assert_accessible(page, f"sign-in {look}")
            page.goto(console.link("dana"))
            assert_accessible(page, "enter")
            page.get_by_role("button", name="Sign in").click()
            expect_page(page, "Queue")
            for path in paths:
                page.goto(f"{console.url}/console/{path}")
                assert_accessible(page, f"{path} {look}")
                assert_fits(page)
            for state in (open_the_loan, open_the_confirmation, reject_without_a_word, approve_what_was_before):
                page.goto(f"{console.url}/console/quotes/{quote_id}")
                state(page)
                assert_accessible(page, f"{state.__name__} {look}")
                assert_fits(page)
            context.close()


def open_the_loan(page: Page) -> None:
    page.get_by_text("Delegate the decision").click()
    expect(page.get_by_role("button", name="Delegate my role")).to_be_visible()


def reject_without_a_word(page: Page) -> None:
    page.get_by_role("link", name="Reject…").click()
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Give a reason")
    expect(page.get_by_label("Comment")).to_be_focused()


def open_the_confirmation(page: Page) -> None:
    page.get_by_role("link", name="Approve…").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def approve_what_was_before(page: Page) -> None:
    """As a page does that was opened before the quote changed."""
    link = page.get_by_role("link", name="Approve…").get_attribute("href") or ""
    old = re.sub("fingerprint=[^&]*", "fingerprint=" + "0" * 64, re.sub("shown=[^&]*", "shown=1", link))
    page.goto(urljoin(page.url, old))
    expect(page.get_by_role("alert")).to_contain_text("What is different from version 1, which you saw")


def test_the_dark_is_dark(live_console: Console, browser: Browser):
    context = browser.new_context(color_scheme="dark")
    page = opened(context)
    page.goto(f"{live_console.url}/console/sign-in")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    shades = [int(part) for part in re.findall(r"\d+", background)]
    assert max(shades) < 60
    context.close()


def test_a_page_cannot_be_framed(live_console: Console, page: Page):
    console = live_console
    page = page.context.new_page()  # Here the content policy is meant to stop something.
    page.goto(f"{console.url}/healthz")
    page.set_content(f'<iframe src="{console.url}/console/sign-in"></iframe>')
    page.wait_for_load_state("networkidle")
    assert not page.frames[1].locator("text=Sign in").count()


def test_the_document_stands_beside_the_quote(sqlite_template: Path, tmp_path: Path, browser: Browser):
    """The seam for customers' PDFs: shown where there is one, and asked in the name of who looks."""
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    asked: list[Any] = []

    def document(call: Any, quote_id: str, version: int) -> bytes | None:
        asked.append((call.principal.name, quote_id, version))
        return b"%PDF-1.7 of a test"

    with serving(read_settings({}, home=tmp_path), document=document) as console:
        quote_id = waiting(console)
        visitor = console.signed_in("dana")
        assert "Open the PDF" in visitor.get(f"/console/quotes/{quote_id}").text
        answer = visitor.get(f"/console/quotes/{quote_id}/document")
        assert (answer.headers["content-type"], answer.content) == ("application/pdf", b"%PDF-1.7 of a test")
        assert answer.headers["x-frame-options"] == "SAMEORIGIN"
        assert asked == [("dana", quote_id, 1)]
        console.tools("quote_revise", quote_id=quote_id, expected_version=1)
        for version in (1, 2):
            page = visitor.get(f"/console/quotes/{quote_id}?version={version}").text
            assert page.count(f"/document?version={version}") == 2
            visitor.get(f"/console/quotes/{quote_id}/document?version={version}")
            assert asked[-1] == ("dana", quote_id, version)
        assert visitor.get(f"/console/quotes/{quote_id}/document?version=9").status_code == 404
        assert console.visitor().get(f"/console/quotes/{quote_id}/document").status_code == 303


def hostile_quote(console: Console, text: str) -> str:
    quote_id = priced_quote(console.tools, 10, {**SEATS, "notes": text}, notes=text, account_id="acct_evil")
    console.tools("approval_request", quote_id=quote_id, justification=text, approver_role="sales_manager")
    return quote_id


def changed_quote(console: Console) -> str:
    """A quote of the sample that has an earlier version and waits for dana."""
    found = console.tools("approval_pending", limit=100)["items"]
    return str(next(item["quote_id"] for item in found if item["version"] == 2))


def owned_agreement(console: Console) -> str:
    """An agreement of the sample."""
    return str(console.tools("agreement_list", limit=1)["items"][0]["id"])


def assert_fits(page: Page) -> None:
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width <= 0, page.url


PIXELS = """texts => texts.map(text => {
    const chart = text.ownerSVGElement;
    const scale = chart.getBoundingClientRect().width / chart.viewBox.baseVal.width;
    return parseFloat(getComputedStyle(text).fontSize) * scale;
})"""
"""How large the words of a chart are on the screen."""


def size(found: Locator) -> Any:
    box = found.bounding_box()
    assert box
    return box


def assert_accessible(page: Page, where: str) -> None:
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run({resultTypes: ['violations']}).then(result => JSON.stringify(result.violations))")
    serious = [one for one in json.loads(found) if one["impact"] in ("serious", "critical")]
    told = [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in serious]
    assert not told, f"{where}: {told}"
