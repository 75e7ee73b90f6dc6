"""Hostile names and notes on every page, in files for a spreadsheet, in messages and in a document."""

import csv
import io
from typing import Any

import pypdfium2

from cpq.app import App
from cpq.app.access import OPERATOR
from cpq.console.csv_export import csv_response
from cpq.services import documents
from cpq.services.documents import DocumentRequest, exporter, order_exporter
from tests.console.test_accept import link_for
from tests.support import engine
from tests.support.approvals import person
from tests.support.console import Console
from tests.support.papers import Paper
from tests.support.quotes import SEATS, new_quote

NAME = "Pump \u200bstation\U000e0041 \ufeffش 👩\u200d💻"
NOTES = "Pay 10\u202e00 now\u2066, not\u2069 la\u200dter"
HIDDEN = set("\u200b\U000e0041\ufeff\u202e\u2066\u2069")
READABLE_NAME = "Pump \\u200bstation\\U000e0041 \\ufeffش 👩\u200d💻"
READABLE_NOTES = "Pay 10\\u202e00 now\\u2066, not\\u2069 la\\u200dter"


def hostile_quote(console: Console) -> str:
    app = console.app
    place = {"segment": "smb", "region": "americas", "country": "US", "tax_zone": "US-OH", "currency": "USD"}
    engine.import_dicts(app, "accounts", {"id": "acct_odd", "name": f"Acme {NAME}", **place})
    engine.import_dicts(app, "products", engine.product_row(id="prod_odd", sku="ODD", name=NAME, description=NOTES))
    price = {"id": "p_odd", "product_id": "prod_odd", "price_book": "list", "currency": "USD", "unit_price": "9"}
    engine.import_dicts(app, "prices", price)
    line = {"product_id": "prod_odd", "quantity": 2, "discount_pct": 10, "notes": NOTES}
    quote_id = new_quote(console.tools, line, SEATS, account_id="acct_odd", notes=NOTES)
    console.tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    return quote_id


def test_pages_and_spreadsheets_show_what_a_text_hides(sqlite_console: Console):
    quote_id = hostile_quote(sqlite_console)
    dana = sqlite_console.signed_in("dana", "sales_manager")
    own = hostile_quote_copy(sqlite_console, quote_id)
    sqlite_console.tools("approval_request", quote_id=quote_id, justification=NOTES)
    pages = [
        "/queue",
        "/quotes",
        f"/quotes/{quote_id}",
        "/accounts",
        "/accounts/acct_odd",
        f"/quotes/{quote_id}/audit",
        "/figures",
    ]
    texts = {path: dana.get(f"/console{path}") for path in [*pages, "/quotes?format=csv", "/queue?format=csv"]}
    for path, answer in texts.items():
        assert answer.status_code == 200, path
        assert not HIDDEN & set(answer.text.removeprefix("\ufeff")), path
    page = texts[f"/quotes/{quote_id}"].text
    assert READABLE_NAME in page
    assert page.count(READABLE_NOTES) >= 3
    assert f"Acme {READABLE_NAME}" in texts["/quotes?format=csv"].text
    # The field of a form holds the text itself, which is stored again as it was.
    assert NOTES in dana.get(f"/console/quotes/{own}/terms").text


def test_pages_and_files_of_a_sale_show_what_its_texts_hide_and_run_no_formula(sqlite_console: Console):
    """The customer's page, the agreement and every file for a spreadsheet, once a quote with such texts is accepted."""
    app, dana = sqlite_console.app, sqlite_console.signed_in("dana", "sales_manager", "admin")
    draft, rita = hostile_quote(sqlite_console), person(app, "rita", "sales_rep")
    engine.import_dicts(app, "products", engine.product_row(id="prod_sum", sku="@SUM", name=f"={NAME}"))
    terms = {"price_book": "list", "currency": "USD", "unit_price": "9", "cost": "3", "billing_period": "monthly"}
    engine.import_dicts(app, "prices", {"id": "p_sum", "product_id": "prod_sum", **terms})
    line = {"product_id": "prod_sum", "quantity": 2, "notes": f"={NOTES}"}
    quote_id = new_quote(rita, line, account_id="acct_odd", notes=f"={NOTES}", term_months=12, deal_id="=1+1")
    rita("quote_price", quote_id=quote_id)
    rita("quote_send", quote_id=quote_id, expected_version=1)
    rita("catalog_search", query=f"={NAME}")
    offer = link_for(sqlite_console, dana, quote_id)
    seen = {offer: sqlite_console.visitor().get(offer)}
    accepted = rita("quote_accept", quote_id=quote_id, expected_version=1)
    seen |= {offer + " again": sqlite_console.visitor().get(offer)}
    agreement = f"/agreements/{accepted['agreement_id']}"
    pages = [agreement, "/accounts/acct_odd", f"/quotes/{quote_id}", f"/quotes/{draft}/steps/cancel", "/searches"]
    files = [f"/{name}?format=csv" for name in ("quotes", "accounts", "queue", "searches", "figures")]
    files.append(f"/quotes/{quote_id}/audit?format=csv")
    seen |= {path: dana.get(f"/console{path}") for path in [*pages, *files]}
    for path, answer in seen.items():
        assert answer.status_code == 200, (path, answer.text)
        assert not HIDDEN & set(answer.text.removeprefix("\ufeff")), path
    assert READABLE_NAME in seen[offer].text
    assert READABLE_NAME in seen[agreement].text
    written = {path: seen[path].text.removeprefix("\ufeff") for path in files}
    for form, number in ((csv_of_quote, quote_id), (csv_of_order, accepted["order_number"])):
        written[form.__name__] = text = form(app, number)
        assert not HIDDEN & set(text), form
        assert f"'={READABLE_NAME}" in text
    for path, text in written.items():
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert not [cell for cell in cells if cell.lstrip()[:1] in ("=", "+", "@") or cell[:1] in ("\t", "\r")], path


def csv_of_quote(app: App, number: str) -> str:
    design, call = documents.design_of(app.settings), app.new_call(OPERATOR)
    return app.read_unaudited(call, lambda tx: exporter.export(tx, DocumentRequest(number), "csv", design))


def csv_of_order(app: App, number: str) -> str:
    design, call = documents.design_of(app.settings), app.new_call(OPERATOR)
    return app.read_unaudited(call, lambda tx: order_exporter.export(tx, number, "csv", design))


def hostile_quote_copy(console: Console, quote_id: str) -> str:
    """A draft that may still be edited."""
    return str(console.tools("quote_clone", quote_id=quote_id)["quote_id"])


def test_a_document_prints_nothing_that_hides_or_turns_text_around(sqlite_console: Console):
    made = sqlite_console.tools("quote_pdf", quote_id=hostile_quote(sqlite_console))
    paper = Paper.of(made)
    document = pypdfium2.PdfDocument(paper.pdf)
    raw = "".join(page.get_textpage().get_text_range() for page in document)
    document.close()
    assert HIDDEN & set(raw) <= {"\u200b"}  # With which we let long words break.
    assert "Pump station" in paper.text
    assert "Pay 1000 now, not later" in paper.text
    # The data inside the document is what was stored.
    assert paper.content["quote"]["notes"] == NOTES


def test_q03_sentences_show_what_a_text_hides_and_fields_keep_it(sqlite_console: Console):
    quote_id = hostile_quote(sqlite_console)
    got = sqlite_console.tools("quote_get", quote_id=quote_id)
    assert got["quote"]["notes"] == NOTES
    assert got["line_items"][0]["product_name"] == NAME
    error = sqlite_console.tools.error("quote_create", account_id=NOTES, line_items=[SEATS])
    assert not HIDDEN & set(error["message"])
    error = sqlite_console.tools.error("quote_get", quote_id="Q-1", **{NOTES: 1})
    assert not HIDDEN & set(error["message"] + error["details"].get("hint", ""))
    reviewer = person(sqlite_console.app, "dana", "sales_manager")
    assert not HIDDEN & set(str(reviewer("approval_status", quote_id=quote_id).get("message", "")))


def test_a_cell_of_hidden_text_is_shown_and_is_no_formula():
    rows: list[list[Any]] = [["\u202e=1+1"], ["=1\u200b"], [-5]]
    body = bytes(csv_response("x", ["a"], rows, total=3).body).decode()
    assert body.split("\r\n")[1:4] == ["\\u202e=1+1", "'=1\\u200b", "-5"]
