"""Lists and the chain as people read them: states, order, files for a spreadsheet, times in the reader's zone."""

import csv
import io
import re
from typing import Any

from cpq.console.csv_export import csv_response
from cpq.console.formats import a_role
from tests.support import engine
from tests.support.approvals import ask, decide, person, priced_quote
from tests.support.console import Console, form_token, send
from tests.support.engine import StillEffects
from tests.support.quotes import new_quote, sent_quote


def rows_of(answer: Any) -> list[dict[str, str]]:
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


def shown(page: str) -> list[str]:
    """The ids of the quotes of a list, in order."""
    return re.findall(r'data-open>\s*<td class="main"><a href="/console/quotes/(Q-[a-z0-9]+)"', page)


def test_a_rejected_quote_and_one_to_change_are_seen_in_lists_and_filters(console: Console):
    dana, tools = console.signed_in("dana", "sales_manager"), console.tools
    rejected, changed, draft = priced_quote(tools), priced_quote(tools), new_quote(tools)
    for quote_id, word in ((rejected, "reject"), (changed, "change")):
        ask(tools, quote_id)
        send(console, dana, quote_id, word, "Too much.")
    for state, quote_id in (("rejected", rejected), ("change_requested", changed), ("draft", draft)):
        page = dana.get(f"/console/quotes?status={state}").text
        assert shown(page) == [quote_id], state
        assert f'<span class="chip {state}">' in page
        assert f'<span class="chip {state}">' in dana.get(f"/console/quotes/{quote_id}").text
        assert shown(dana.get(f"/console/accounts/acct_acme_001?status={state}").text) == [quote_id]
    assert {one["state"] for one in rows_of(dana.get("/console/quotes?format=csv"))} == {
        "rejected",
        "change_requested",
        "draft",
    }


def test_quotes_are_sorted_by_value_and_time_and_account(console: Console, clock: StillEffects):
    dana, tools = console.signed_in("dana", "sales_manager"), console.tools
    made = []
    for quantity, account in ((10, "acct_groeb_002"), (150, "acct_acme_001"), (50, "acct_acme_001")):
        made.append(new_quote(tools, {"product_id": "prod_pro_v2", "quantity": quantity}, account_id=account))
        clock.advance(seconds=1)
    small, large, middle = made
    orders = {
        "newest": [middle, large, small],
        "oldest": [small, large, middle],
        "biggest": [large, middle, small],
        "smallest": [small, middle, large],
        "account": [middle, large, small],
        "nonsense": [middle, large, small],
    }
    for sort, expected in orders.items():
        assert shown(dana.get(f"/console/quotes?sort={sort}").text) == expected, sort
        assert [one["id"] for one in rows_of(dana.get(f"/console/quotes?sort={sort}&format=csv"))] == expected


def test_every_list_is_exported_with_its_filter(console: Console):
    dana, tools = console.signed_in("dana", "sales_manager"), console.tools
    quote_id = priced_quote(tools)
    new_quote(tools, account_id="acct_groeb_002")
    ask(tools, quote_id)
    console.app.flush_audit()
    for address in ("/console/queue", "/console/quotes?q=acme", "/console/accounts?q=acme"):
        page = dana.get(address).text
        link = re.search(r'id="export" href="([^"]+)"', page)
        assert link, address
        rows = rows_of(dana.get(link[1].replace("&amp;", "&")))
        assert len(rows) == 1, address
    assert rows_of(dana.get("/console/queue?format=csv"))[0]["quote_total"] == "1350"
    assert rows_of(dana.get("/console/accounts/acct_acme_001?format=csv"))[0]["id"] == quote_id
    record = rows_of(dana.get(f"/console/quotes/{quote_id}/audit?format=csv&q=quote_price&sort=oldest"))
    assert [one["operation"] for one in record] == ["quote_price"]


def test_a_file_runs_no_formula_in_a_spreadsheet(sqlite_console: Console):
    dana = sqlite_console.signed_in("dana", "sales_manager")
    name = '=HYPERLINK("http://evil.example","Acme")'
    account = {"id": "acct_evil", "name": name, "segment": "smb", "region": "americas", "country": "US"}
    terms = {"tax_zone": "US-OH", "locale": "en_US", "time_zone": "America/New_York", "currency": "USD"}
    engine.import_dicts(sqlite_console.app, "accounts", {**account, **terms, "price_book": "list"})
    quote_id = new_quote(sqlite_console.tools, account_id="acct_evil", deal_id="@SUM(1+1)")
    row = next(one for one in rows_of(dana.get("/console/quotes?format=csv")) if one["id"] == quote_id)
    assert row["account_name"] == f"'{name}"
    assert row["deal_id"] == "'@SUM(1+1)"
    cells = ["+1", "-1", "\t=1", " =1", "=1", "@x", "plain", -5]
    written = csv_response("x", ["a"], [[cell] for cell in cells], total=9).body
    lines = list(csv.reader(io.StringIO(bytes(written).decode("utf-8-sig"))))
    assert [line[0] for line in lines[1:-1]] == ["'+1", "'-1", "'\t=1", "' =1", "'=1", "'@x", "plain", "-5"]
    assert lines[-1] == ["The first 8 of 9; filter the list to get the others."]


def test_a_quote_that_asks_two_roles_has_one_row(console: Console):
    dana, dora = console.signed_in("dana", "sales_manager"), console.signed_in("dora", "deal_desk")
    both = console.signed_in("bea", "sales_manager", "deal_desk")
    quote_id = priced_quote(console.tools, 10, {"product_id": "prod_qmb15", "quantity": 20})
    assert len(ask(console.tools, quote_id)["also_requested"]) >= 1
    for visitor in (dana, dora, both):
        page = visitor.get("/console/queue?scope=all").text
        assert shown(page) == [quote_id]
        assert "1 in all" in page
    assert "asks a sales manager, also the deal desk" in both.get("/console/queue").text
    assert "1</strong> waits for you" in both.get("/console/queue").text


def test_the_chain_names_who_decided_who_is_asked_and_who_is_next(console: Console):
    dana, dora = console.signed_in("dana", "sales_manager"), console.signed_in("dora", "deal_desk")
    console.grant("dirk", "sales_manager")
    quote_id = priced_quote(console.tools, 10, {"product_id": "prod_qmb15", "quantity": 20})
    ask(console.tools, quote_id)

    def chain(visitor: Any) -> list[tuple[str, str]]:
        page = visitor.get(f"/console/quotes/{quote_id}").text
        drawn = page[page.index('<ol class="chain">') :].partition("</ol>")[0]
        found = re.findall(r'<li class="(\w+)"[^>]*>(.*?)</li>', drawn, re.DOTALL)
        return [(state, re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)).strip()) for state, text in found]

    first, second = chain(dana)[:2]
    assert first[0] == "asked"
    assert first[1] == "Sales manager asked now dana or dirk"
    assert second[0] == "next"
    assert second[1] == "Deal desk next dora , after a sales manager"
    send(console, dana, quote_id, "approve")
    first, second = chain(dora)[:2]
    assert first[0] == "approved"
    assert "dana" in first[1]
    assert second[0] == "asked"
    send(console, dora, quote_id, "reject", "No.")
    assert chain(dora)[1][0] == "rejected"


def test_a_margin_below_zero_is_marked(sqlite_console: Console):
    dana = sqlite_console.signed_in("dana", "sales_manager", "vp_sales", "finance")
    quote_id = priced_quote(sqlite_console.tools, 90)
    ask(sqlite_console.tools, quote_id)
    for page in (dana.get(f"/console/quotes/{quote_id}").text, dana.get("/console/queue?scope=all").text):
        assert re.search(r'class="negative">\N{MINUS SIGN}\d+\.\d\u202f% <span class="chip broken">below cost', page)


def test_times_are_in_the_readers_zone_and_utc_is_named(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    quote_id = new_quote(console.tools)
    address = f"/console/quotes/{quote_id}"
    at = console.tools("quote_get", quote_id=quote_id)["quote"]["created_at"]
    hour = int(at[11:13])
    assert f"{hour:02d}:{at[14:16]} UTC</time>" in dana.get(address).text
    page = dana.get("/console/time-zone").text
    form = {"form_token": form_token(page), "zone": "Europe/Berlin"}
    assert dana.post("/console/time-zone", data=form).status_code == 303
    assert f"{hour + 1:02d}:{at[14:16]} CET</time>" in dana.get(address).text
    assert 'href="/console/time-zone">Europe/Berlin</a>' in dana.get(address).text
    assert dana.post("/console/time-zone", data={**form, "zone": "Mars/Base"}).status_code == 400
    for hostile in ("Mars/Base", "../../etc/passwd", "x" * 500, "Europe%2FBerlin"):
        dana.cookies.set("cpq_zone", hostile, domain="127.0.0.1", path="/console")
        assert dana.get(address).status_code == 200


def test_a_recurring_line_says_what_a_period_costs(sqlite_console: Console):
    dana = sqlite_console.signed_in("dana", "sales_manager")
    pages = {months: dana.get(f"/console/quotes/{quote_of(sqlite_console, months)}").text for months in (24, None)}
    assert "10.00 a year × 2 years" in pages[24]
    assert "10.00 a year, for one year" in pages[None]


def quote_of(console: Console, months: int | None) -> str:
    return new_quote(console.tools, term_months=months)


def test_roles_in_sentences_have_their_article():
    roles = ("sales_manager", "deal_desk", "legal", "auditor", "vp_sales")
    assert [a_role(role) for role in roles] == [
        "a sales manager",
        "the deal desk",
        "legal",
        "an auditor",
        "the VP Sales",
    ]


def test_who_made_a_quote_is_in_every_list(sqlite_console: Console):
    dana = sqlite_console.signed_in("dana", "sales_manager")
    rosa = person(sqlite_console.app, "rosa", "sales_rep")
    quote_id = sent_quote(rosa)
    assert "rosa" in dana.get("/console/quotes").text
    assert shown(dana.get("/console/quotes?q=rosa").text) == [quote_id]
    approved = priced_quote(rosa)
    decide(person(sqlite_console.app, "dirk", "sales_manager"), ask(rosa, approved))
    assert len(shown(dana.get("/console/quotes?q=rosa").text)) == 2
