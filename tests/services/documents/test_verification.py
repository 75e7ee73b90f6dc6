"""Whether a file is one of ours: issued, altered or unknown, and whether its version still counts."""

import base64
import io
import zlib
from pathlib import Path
from typing import Any

import pikepdf
import pytest

from cpq.app import App
from cpq.services.documents import verification
from tests.support.approvals import ask, decide, person, priced_quote
from tests.support.engine import Tools, import_dicts
from tests.support.quotes import sent_quote


def verified(tools: Tools, content: bytes) -> dict[str, Any]:
    return tools("quote_verify_pdf", document=base64.b64encode(content).decode())


def test_an_issued_document_is_known_by_its_bytes_and_by_its_checksum(tools: Tools):
    quote_id = sent_quote(tools)
    made = tools("quote_pdf", quote_id=quote_id)
    found = verified(tools, Path(made["file_path"]).read_bytes())
    assert found == tools("quote_verify_pdf", document=made["checksum"])
    assert found == tools("quote_verify_pdf", document=made["checksum"].removeprefix("sha256:").upper())
    assert found["verdict"] == "issued"
    assert found["is_current_approved"] is True
    assert (found["quote_id"], found["version"], found["version_status"]) == (quote_id, 1, "sent")
    assert found["number"] == tools("quote_get", quote_id=quote_id)["quote"]["number"]
    assert f"{found['number']} ({quote_id})" in found["message"]
    assert (found["template"], found["locale"], found["stamp"]) == ("standard", "en_US", None)
    assert found["total"] == 1500
    assert found["fingerprint"] == made["fingerprint"]
    assert found["issued_at"] == made["generated_at"]


def test_a_changed_file_is_told_from_a_foreign_one(tools: Tools):
    quote_id = sent_quote(tools)
    content = Path(tools("quote_pdf", quote_id=quote_id)["file_path"]).read_bytes()
    flipped = bytearray(content)
    flipped[len(flipped) // 3] ^= 1
    with pikepdf.open(io.BytesIO(content)) as pdf:
        saved = io.BytesIO()
        del pdf.pages[-1]
        pdf.save(saved)
    for altered in (bytes(flipped), content + b"\n", saved.getvalue()):
        found = verified(tools, altered)
        assert found["verdict"] == "altered"
        assert found["is_current_approved"] is False
        assert (found["quote_id"], found["version"]) == (quote_id, 1)
        assert found["number"] == tools("quote_get", quote_id=quote_id)["quote"]["number"]
    empty = io.BytesIO()
    pikepdf.new().save(empty)
    for foreign in (empty.getvalue(), b"", b"%PDF-1.7", b"stream\nstream\n" * 2000):
        assert not foreign or verified(tools, foreign)["verdict"] == "unknown"


def test_only_the_current_approved_version_counts(sqlite_tools: Tools):
    manager = person(sqlite_tools.app, "dana", "sales_manager")
    quote_id = priced_quote(sqlite_tools, 10)
    draft = sqlite_tools("quote_pdf", quote_id=quote_id)

    def look(made: dict[str, Any]) -> tuple[bool, str]:
        found = sqlite_tools("quote_verify_pdf", document=made["checksum"])
        assert found["verdict"] == "issued"
        return found["is_current_approved"], found["message"]

    assert look(draft)[0] is False
    decide(manager, ask(sqlite_tools, quote_id))
    approved = sqlite_tools("quote_pdf", quote_id=quote_id)
    named = f"A document of {sqlite_tools('quote_get', quote_id=quote_id)['quote']['number']} ({quote_id}), version 1"
    assert look(approved) == (True, f"{named}, which is the current one and approved.")
    assert look(draft)[0] is False
    sqlite_tools("quote_revise", quote_id=quote_id, expected_version=1)
    assert look(approved) == (False, f"{named}; version 2 is the current one.")


def test_a_draft_whose_price_changed_no_longer_counts(sqlite_tools: Tools):
    quote_id = priced_quote(sqlite_tools, 0)
    made = sqlite_tools("quote_pdf", quote_id=quote_id)
    assert sqlite_tools("quote_verify_pdf", document=made["checksum"])["is_current_approved"] is True
    sqlite_tools("quote_price", quote_id=quote_id, requested_discount_pct=1)
    found = sqlite_tools("quote_verify_pdf", document=made["checksum"])
    assert found["is_current_approved"] is False
    assert "which was changed since" in found["message"]


@pytest.mark.parametrize("document", ["not base64!", "sha256:12", "====", "ab c", "ÄÖÜß", "文書"])
def test_what_is_neither_a_file_nor_a_checksum_is_refused(sqlite_tools: Tools, document: str):
    error = sqlite_tools.error("quote_verify_pdf", document=document)
    assert error["code"] == "VALIDATION_ERROR"
    assert error["details"]["field"] == "/document"


def test_a_stream_that_inflates_without_end_is_looked_at_only_so_far(sqlite_app: App):

    bomb = b"%PDF-1.7\n" + b"stream\n" + zlib.compress(b"\0" * 50_000_000, 9)
    found = verified(Tools(sqlite_app), bomb)
    assert found["verdict"] == "unknown"


@pytest.mark.parametrize("change", [{"notes": "Free delivery."}, {"payment_terms": "net_60"}, {"deal_id": "OPP-9"}])
def test_a_draft_whose_words_changed_no_longer_counts(sqlite_tools: Tools, change: dict[str, Any]):
    quote_id = priced_quote(sqlite_tools, 0)
    made = sqlite_tools("quote_pdf", quote_id=quote_id)
    sqlite_tools("quote_update", quote_id=quote_id, expected_version=1, **change)
    sqlite_tools("quote_price", quote_id=quote_id)
    found = sqlite_tools("quote_verify_pdf", document=made["checksum"])
    assert (found["is_current_approved"], found["total"]) == (False, 1500)
    assert "which was changed since" in found["message"]


def test_a_draft_whose_line_says_more_no_longer_counts(sqlite_tools: Tools):
    """An attribute that customers see; one that they do not see is no change of the document."""
    tank = {"product_id": "prod_tk240v", "quantity": 1}
    for attributes, is_good in (({"condition": "refurbished"}, False), ({"cost_note": "see sheet"}, True)):
        quote_id = priced_quote(sqlite_tools, 0, tank)
        made = sqlite_tools("quote_pdf", quote_id=quote_id)
        change = [{"line_id": f"{quote_id}-ql-1", "attributes": attributes}]
        sqlite_tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=change)
        sqlite_tools("quote_price", quote_id=quote_id)
        found = sqlite_tools("quote_verify_pdf", document=made["checksum"])
        assert found["is_current_approved"] is is_good, attributes


def test_what_the_customer_has_counts_while_a_revision_is_made(sqlite_tools: Tools):
    quote_id = sent_quote(sqlite_tools)
    made = sqlite_tools("quote_pdf", quote_id=quote_id)
    sqlite_tools("quote_revise", quote_id=quote_id, expected_version=1)
    found = sqlite_tools("quote_verify_pdf", document=made["checksum"])
    assert found["is_current_approved"] is True
    assert (found["version"], found["current_version"]) == (1, 2)
    assert "the one that the customer has and sent" in found["message"]
    sqlite_tools("quote_price", quote_id=quote_id)
    sqlite_tools("quote_send", quote_id=quote_id, expected_version=2)
    assert sqlite_tools("quote_verify_pdf", document=made["checksum"])["is_current_approved"] is False


def test_an_approved_version_that_could_not_be_sent_does_not_count_and_is_stamped(sqlite_tools: Tools):
    manager = person(sqlite_tools.app, "dana", "sales_manager")
    quote_id = priced_quote(sqlite_tools, 10, {"product_id": "prod_tk240v", "quantity": 1})
    decide(manager, ask(sqlite_tools, quote_id))
    made = sqlite_tools("quote_pdf", quote_id=quote_id)
    assert made["stamp"] is None
    tank = {"id": "prod_tk240v", "sku": "TK-240V", "name": "Tank", "category": "tanks", "active": False}
    import_dicts(sqlite_tools.app, "products", tank)
    assert sqlite_tools("quote_pdf", quote_id=quote_id)["stamp"] == "not_approved"
    assert sqlite_tools("quote_verify_pdf", document=made["checksum"])["is_current_approved"] is False
    import_dicts(sqlite_tools.app, "products", {**tank, "active": True})
    assert sqlite_tools("quote_verify_pdf", document=made["checksum"])["is_current_approved"] is True
    sqlite_tools("quote_revise", quote_id=quote_id, expected_version=1)
    assert sqlite_tools("quote_pdf", quote_id=quote_id, version=1)["stamp"] == "not_approved"


HEAD = b"<</Type /ObjStm /N 1 /First 4 /Filter /FlateDecode>>\nstream\n"


@pytest.mark.parametrize(
    "content",
    [
        (HEAD + zlib.compress((b"(" + b" v1" * 42) * 8000, 9)) * 700,
        HEAD * 40_000,
        b"/ObjStm" * 400_000,
        (b"stream\n" + zlib.compress(b"( v1" * 2**18, 9)) * 500,
    ],
    ids=["unpacks to 700 MB", "only heads", "heads without streams", "pages that unpack to 500 MB"],
)
def test_a_hostile_file_is_searched_only_so_far(sqlite_tools: Tools, content: bytes):
    assert sum(map(len, verification._streams(content))) <= 17 * 1024**2
    assert verified(sqlite_tools, content)["verdict"] == "unknown"
