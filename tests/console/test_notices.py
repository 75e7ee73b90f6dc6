"""Warnings of an action: shown after the redirect, once, and only to the person who did it."""

import html
import re
from typing import Any

from tests.console.test_whole_deal import created, fill
from tests.support.approvals import ask, priced_quote
from tests.support.console import Console
from tests.support.engine import import_dicts
from tests.support.quotes import ACME, new_quote


def notices(page: str) -> list[str]:
    found = re.search(r'<div class="note notices"[^>]*>(.*?)</div>', page, re.DOTALL)
    return [html.unescape(one) for one in re.findall(r"<p>(.*?)</p>", found[1])] if found else []


def after(visitor: Any, address: str, **typed: str) -> list[list[str]]:
    """The notices of the page after a form, and those of the same page opened once more."""
    answer = fill(visitor, address, **typed)
    assert answer.status_code == 303, answer.text
    return [notices(visitor.get(answer.headers["location"]).text) for _ in range(2)]


def test_messages_name_people_and_programs_and_not_their_ids(sqlite_console: Console):
    console = sqlite_console
    quote_id = priced_quote(console.tools)
    made = ask(console.tools, quote_id)
    console.tools("approval_withdraw", approval_id=made["approval_id"])
    fiona = console.signed_in("fiona", "finance")
    page = fiona.get(f"/console/quotes/{quote_id}").text
    assert "Withdrawn by mcp (agent)." in page
    refused = fiona.get(f"/console/quotes/{quote_id}/customer-link").text
    assert "which fiona lacks" in refused
    assert not re.search(r"\b(human|agent):[a-z]", page + refused)


def test_a_request_that_no_policy_needs_says_so_once(console: Console):
    """What the user saw: "Approval is requested.", and not that nobody had asked for it."""
    rosa = console.signed_in("rosa", "sales_rep")
    quote_id = priced_quote(console.tools, 0)
    first, again = after(rosa, f"/console/quotes/{quote_id}/steps/request", justification="To be safe.")
    assert first[0] == "No policy requires an approval of this version; sales_manager was asked anyway."
    assert "sales_manager" in first[1], "nobody holds the role"
    assert again == []


def test_another_currency_than_the_account_s_is_named_after_creating(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    address = f"/console/quotes/new?account_id={ACME}&product_id=prod_pro_v2"
    first, again = after(rosa, address, quantity="5", currency="EUR")
    assert len(first) == 1
    assert "EUR" in first[0]
    assert "USD" in first[0]
    assert again == []


def test_a_warning_of_the_version_stays_on_its_page(sqlite_console: Console):
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    address = f"/console/quotes/new?account_id={ACME}&product_id=prod_pro_v2"
    quote_id = created(fill(rosa, address, quantity="5", currency="EUR"))
    [warning] = sqlite_console.tools("quote_get", quote_id=quote_id)["warnings"]
    for _ in range(2):
        assert html.unescape(rosa.get(f"/console/quotes/{quote_id}").text).count(warning) == 1


def test_a_total_that_changed_is_named_after_pricing(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    quote_id = new_quote(console.tools)
    address = f"/console/quotes/{quote_id}/steps/price"
    first, again = after(rosa, address, requested_discount_pct="10")
    assert first == ["The total is 1,350.00 USD now; it was 1,500.00 USD."]
    assert again == []
    assert after(rosa, address, requested_discount_pct="10") == [[], []]


def test_notices_are_for_one_quote_and_one_session(sqlite_console: Console):
    rosa, dirk = (sqlite_console.signed_in(name, "sales_rep") for name in ("rosa", "dirk"))
    first, other = new_quote(sqlite_console.tools), new_quote(sqlite_console.tools)
    answer = fill(rosa, f"/console/quotes/{first}/steps/price", requested_discount_pct="10")
    cookie = re.search(r"cpq_notices=(\S+);", answer.headers["set-cookie"])
    assert cookie
    assert f"Path=/console/quotes/{first}" in answer.headers["set-cookie"]
    assert "HttpOnly" in answer.headers["set-cookie"]
    for visitor, quote_id in ((dirk, first), (rosa, other)):
        sent = {"Cookie": f"cpq_session={visitor.cookies['cpq_session']}; cpq_notices={cookie[1]}"}
        page = visitor.get(f"/console/quotes/{quote_id}", headers=sent)
        assert page.status_code == 200
        assert notices(page.text) == []


def test_many_long_warnings_do_not_lose_the_page(sqlite_console: Console):
    """A browser drops a cookie that is too large; the rest is counted."""
    rosa, app = sqlite_console.signed_in("rosa", "sales_rep"), sqlite_console.app
    names = [f"prod_ending_{number}" for number in range(30)]
    product = {"category": "services", "product_type": "service", "active": True}
    long = "A product with quite a long name for a warning, number"
    import_dicts(app, "products", *({**product, "id": one, "sku": one, "name": f"{long} {one}"} for one in names))
    price = {"price_book": "list", "currency": "USD", "unit_price": "5", "valid_to": "2026-11-20"}
    import_dicts(app, "prices", *({**price, "product_id": one} for one in names))
    quote_id = new_quote(sqlite_console.tools, *({"product_id": one, "quantity": 1} for one in names))
    assert len(sqlite_console.tools("quote_get", quote_id=quote_id)["warnings"]) == 30
    answer = fill(rosa, f"/console/quotes/{quote_id}/steps/price", requested_discount_pct="10")
    assert len(answer.headers["set-cookie"]) < 4_000
    shown = notices(rosa.get(answer.headers["location"]).text)
    assert re.fullmatch(r"And \d+ more\.", shown[-1])
    assert len(shown) > 5
