"""Draft and customer text are apart: internal notes, sources and marks for review never reach the customer."""

import json
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from mcp import Client

from cpq.app import App
from mcp_facade.server import Facade
from mcp_facade.toolsets import ALL_TOOLS
from tests.support.approvals import decide, person, refused
from tests.support.engine import Tools, import_dicts, import_history
from tests.support.quotes import ACME, SEATS

SOURCE = {"quote_id": "P25-1257", "line": 1, "score": 0.79, "customer": "Groeb Honey Packing"}
ASIDE = {"internal_notes": "Ask for the crane.", "sources": [SOURCE], "review": ["Is the voltage right?"]}
SECRETS = ("crane", "P25-1257", "Groeb", "voltage")


def made(tools: Tools, **changes: Any) -> str:
    asked = {"account_id": ACME, "line_items": [{**SEATS, **ASIDE}], "internal_notes": "Hot lead.", **changes}
    quote_id: str = tools("quote_create", **asked)["quote_id"]
    tools("quote_price", quote_id=quote_id)
    return quote_id


def printed(answer: dict[str, Any]) -> tuple[str, str]:
    """The text of the pages with what the document says of itself, and of the files inside."""
    pdf = pypdfium2.PdfDocument(answer["file_path"])
    pages = [page.get_textpage().get_text_bounded() for page in pdf]
    text = "\n".join([*pages, *pdf.get_metadata_dict().values()])
    files = (bytes(pdf.get_attachment(place).get_data()) for place in range(pdf.count_attachments()))
    return text, "\n".join(data.decode() for data in files)


def test_19_4_the_seller_reads_internal_notes_sources_and_marks(tools: Tools):
    found = tools("quote_get", quote_id=made(tools))
    assert found["quote"]["internal_notes"] == "Hot lead."
    assert "review" not in found["quote"]
    line = found["line_items"][0]
    assert (line["internal_notes"], line["sources"]) == ("Ask for the crane.", [SOURCE])
    assert line["review"] == [{"text": "Is the voltage right?", "state": "open", "closed_by": None, "closed_at": None}]
    assert "internal_notes" not in tools("quote_get", quote_id=made(tools, internal_notes=None))["quote"]


def test_19_4_an_open_mark_stops_the_pdf_and_sending_until_a_person_closes_it(app: App, tools: Tools):
    quote_id = made(tools)
    for name, more in (("quote_pdf", {}), ("quote_send", {"expected_version": 1})):
        error = refused(tools, name, quote_id=quote_id, **more)
        assert error["code"] == "CONFLICT"
        assert error["details"]["review"] == [{"line_id": f"{quote_id}-ql-1", "text": "Is the voltage right?"}]
        assert "cpq quote review" in error["details"]["hint"]
    assert refused(tools, "quote_review", quote_id=quote_id, expected_version=1)["code"] == "FORBIDDEN"
    assert tools("approval_status", quote_id=quote_id)["can_proceed"] is False
    rita = person(app, "rita", "sales_rep")
    assert rita("quote_review", quote_id=quote_id, expected_version=1)["message"] == "Reviewed. No mark is open."
    assert rita("quote_review", quote_id=quote_id, expected_version=1)["outcome"] == "no_change"
    [mark] = tools("quote_get", quote_id=quote_id)["line_items"][0]["review"]
    assert (mark["state"], mark["closed_by"]) == ("closed", "human:rita")
    assert tools("quote_pdf", quote_id=quote_id)["stamp"] is None
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"


def test_19_4_no_secret_is_in_the_customers_document(app: App, tools: Tools):
    quote_id = made(tools)
    person(app, "rita", "sales_rep")("quote_review", quote_id=quote_id, expected_version=1)
    answer = tools("quote_pdf", quote_id=quote_id)
    text, attached = printed(answer)
    assert "Pro Plan" in text
    assert quote_id in attached
    for secret in SECRETS:
        assert secret not in text
        assert secret not in attached


def test_19_4_a_change_of_internal_notes_alone_keeps_the_price(tools: Tools):
    quote_id = made(tools)
    priced_at = tools("quote_get", quote_id=quote_id)["pricing"]["priced_at"]
    change = {"line_id": f"{quote_id}-ql-1", "internal_notes": "", "review": ["And the colour?"]}
    moved = tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=[change], sources=[SOURCE])
    assert (moved["outcome"], moved["edit"]) == ("changed", 3)
    found = tools("quote_get", quote_id=quote_id)
    assert found["pricing"]["priced_at"] == priced_at
    assert found["quote"]["sources"] == [SOURCE]
    line = found["line_items"][0]
    assert "internal_notes" not in line
    assert [mark["text"] for mark in line["review"]] == ["Is the voltage right?", "And the colour?"]


def test_19_4_a_changed_line_and_a_copy_must_be_looked_at_again(app: App, tools: Tools):
    quote_id = made(tools)
    rita = person(app, "rita", "sales_rep")
    rita("quote_review", quote_id=quote_id, expected_version=1)
    copy = tools("quote_clone", quote_id=quote_id)["quote_id"]
    tools(
        "quote_update",
        quote_id=quote_id,
        expected_version=1,
        change_lines=[{"line_id": f"{quote_id}-ql-1", "quantity": 9}],
    )
    for id_ in (copy, quote_id):
        tools("quote_price", quote_id=id_)
        assert refused(tools, "quote_send", quote_id=id_, expected_version=1)["details"]["review_total"] == 1
    assert rita("quote_review", quote_id=copy, expected_version=1, line_id=f"{copy}-ql-1")["outcome"] == "changed"
    assert (
        refused(rita, "quote_review", quote_id=copy, expected_version=1, line_id="x")["details"]["field"] == "/line_id"
    )


def test_19_4_a_program_cannot_get_past_a_mark(app: App, tools: Tools):
    rita = person(app, "rita", "sales_rep")
    quote_id = made(tools)
    rita("quote_review", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=3)
    assert refused(tools, "quote_send", quote_id=quote_id, expected_version=1)["details"]["review_total"] == 1
    line = f"{quote_id}-ql-1"
    tools("quote_update", quote_id=quote_id, expected_version=1, add_lines=[SEATS], remove_lines=[line])
    tools("quote_price", quote_id=quote_id)
    assert refused(tools, "quote_send", quote_id=quote_id, expected_version=1)["details"]["review_total"] == 1
    rita("quote_cancel", quote_id=quote_id, expected_version=1)
    assert refused(rita, "quote_review", quote_id=quote_id, expected_version=1)["code"] == "CONFLICT"


def test_19_4_a_word_that_may_be_a_customers_name_needs_a_person(app: App, tools: Tools):
    quote_id = made(tools, notes="Deliver it like the one for Thornton.", line_items=[SEATS])
    for _ in range(2):
        [mark] = tools("quote_get", quote_id=quote_id)["quote"]["review"]
        assert "'Thornton'" in mark["text"]
        tools("quote_update", quote_id=quote_id, expected_version=1, deal_id="D-1")
    tools("quote_price", quote_id=quote_id)
    assert refused(tools, "quote_send", quote_id=quote_id, expected_version=1)["details"]["review_total"] == 1


def test_19_4_a_name_that_became_a_customers_is_no_dead_end(app: App, tools: Tools):
    quote_id = made(tools, notes="Next to the Quokka Dental tower.", line_items=[SEATS])
    sent = made(tools, notes="Next to the Quokka Dental tower.", line_items=[SEATS])
    tools("quote_send", quote_id=sent, expected_version=1)
    account = {"id": "acct_quokka", "name": "Quokka Dental", "segment": "smb", "region": "emea", "country": "DE"}
    import_dicts(app, "accounts", {**account, "tax_zone": "eu", "currency": "EUR", "price_book": "standard"})
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert (error["code"], error["details"]["problems"][0]["found"]) == ("CONFLICT", "Quokka Dental")
    assert tools("quote_price", quote_id=quote_id)["stored"] is True
    assert tools("quote_clone", quote_id=sent)["status"] == "draft"
    tools("quote_revise", quote_id=sent, expected_version=1)
    for id_, version in ((quote_id, 1), (sent, 2)):
        tools("quote_update", quote_id=id_, expected_version=version, notes="Next to the tower.")
        tools("quote_price", quote_id=id_)
        assert tools("quote_send", quote_id=id_, expected_version=version)["status"] == "sent"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("> SALESPERSON REVIEW: which voltage?", "SALESPERSON REVIEW"),
        ("> From quote P25-1257 (score 0.79)", "> From quote P25-1257"),
        ("The same skid as for Thornton Castings.", "Thornton Castings"),
    ],
)
@pytest.mark.parametrize("where", ["notes", "line", "attribute", "option set"])
def test_19_4_a_text_for_the_customer_with_a_secret_is_refused(tools: Tools, text: str, found: str, where: str):
    tank = {"product_id": "prod_tk240v", "quantity": 1}
    asked: dict[str, tuple[dict[str, Any], str]] = {
        "notes": ({"notes": text}, "/notes"),
        "line": ({"line_items": [SEATS, {**tank, "notes": text}]}, "/line_items/1/notes"),
        "attribute": ({"line_items": [{**tank, "attributes": {"remark": text}}]}, "/line_items/0/attributes/remark"),
        "option set": ({"line_items": [{**tank, "option_set": text}]}, "/line_items/0/option_set"),
    }
    arguments, field = asked[where]
    error = refused(tools, "quote_create", **{"account_id": ACME, "line_items": [tank], **arguments})
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", field)
    assert error["details"]["found"] == found


def test_c2_23_the_golden_scenario_from_search_to_the_sent_pdf_leaks_nothing(sqlite_app: App):
    """A 100 HP oilless compressor for a food plant, drafted from past quotes by an agent."""
    tools, rita = Tools(sqlite_app), person(sqlite_app, "rita", "sales_rep")
    found = tools("search_line_items", query="100HP oilless food grade", top_k=5)["results"]
    [machine] = tools(
        "search_equipment", query="oilless food grade", hp_min=100, hp_max=100, lubrication="oilless", top_k=1
    )["results"]
    best = next(hit for hit in found if hit["confidence"] == "likely_good")
    source, line = best["source_quote"], best["line_item"]
    assert source["customer"]
    text = line["description"]
    refusal = refused(
        tools,
        "quote_create",
        account_id=ACME,
        line_items=[{"product_id": machine["product"]["id"], "quantity": 1, "notes": f"As for {source['customer']}."}],
        notes="> SALESPERSON REVIEW: is 460 V right?",
    )
    assert [problem["field"] for problem in refusal["details"]["problems"]] == ["/notes", "/line_items/0/notes"]
    quote = tools(
        "quote_create",
        account_id=ACME,
        line_items=[
            {
                "product_id": machine["product"]["id"],
                "quantity": 1,
                "notes": text,
                "sources": [
                    {
                        "quote_id": source["quote_id"],
                        "line": line["number"],
                        "score": best["score"],
                        "customer": source["customer"],
                    }
                ],
                "review": ["Is 460 V right?"],
            }
        ],
        internal_notes=f"Drafted from {source['quote_id']}.",
    )
    quote_id = quote["quote_id"]
    roles = tools("quote_price", quote_id=quote_id)["required_roles"]
    assert "legal" in roles
    asked = tools("approval_request", quote_id=quote_id, justification="Proven text, standard machine.")
    for role in roles:
        decide(person(sqlite_app, f"boss_{role}", role), asked, role)
    assert refused(tools, "quote_pdf", quote_id=quote_id)["details"]["review_total"] == 1
    rita("quote_review", quote_id=quote_id, expected_version=1)
    paper = tools("quote_pdf", quote_id=quote_id)
    assert paper["stamp"] is None
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"
    sent = tools("quote_pdf", quote_id=quote_id)
    others = {hit["source_quote"]["customer"] for hit in found}
    for document in (paper, sent):
        shown, attached = printed(document)
        assert text.split(",")[0] in " ".join(shown.split())
        for secret in (*others, source["quote_id"], "460 V", "SALESPERSON", "Drafted from", str(best["score"])):
            assert secret not in shown
            assert secret not in attached


def test_a_past_line_knows_the_product_that_is_sold_under_its_model(tools: Tools, app: App, tmp_path: Path):
    line = {"category": "Compressor", "description": "Base mounted compressor"}
    old = {"customer": "Wembley Toffee", "project": "Air", "quoted_on": "2019-05-04", "currency": "EUR"}
    lines = [{**line, "model": "qmb-30"}, {**line, "model": "XYZ 9"}, {**line, "product_id": "prod_old"}]
    file = tmp_path / "past.json"
    file.write_text(json.dumps([{"id": "OLD-1", **old, "line_items": lines}]), encoding="utf-8")
    import_history(app, file)
    found = tools("get_quote", quote_id="OLD-1")["line_items"]
    assert [one["product_id"] for one in found] == ["prod_qmb30", None, "prod_old"]


@pytest.mark.anyio
async def test_19_4_the_prompts_lead_from_past_text_to_the_quote_tools(sqlite_app: App):
    async with Client(Facade(sqlite_app, list(ALL_TOOLS))) as client:
        told = [(await client.get_prompt(name, {})).messages[0] for name in ("recommended_order", "draft_quote")]
    for message in told:
        text = message.content.text  # type: ignore[union-attr] # A text it is.
        steps = [text.index(name) for name in ("search_line_items", "quote_create", "quote_price")]
        assert steps == sorted(steps)
        assert "`review`" in text
