"""`cpq export quote` and `cpq quote verify`: a quote in every form, and whether a file is one of ours."""

import csv
import io
import json
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest

from tests.cli.conftest import Run, query

FILE = """id,account_id,currency,term_months,product_id,quantity,discount_pct,notes
D-2041,acct_acme_001,USD,12,prod_pro_v2,150,10,=1+1
D-2041,,,,prod_tk240v,1,,
"""


@pytest.fixture
def quote(home: Path, run: Run, tmp_path: Path) -> str:
    (tmp_path / "quotes.csv").write_text(FILE)
    assert run("import", "quotes", tmp_path / "quotes.csv").code == 0
    return "D-2041"


def test_a_quote_is_exported_as_pdf_and_verified(quote: str, run: Run, tmp_path: Path):
    ran = run("export", "quote", quote, "--output", tmp_path / "offer.pdf", "--template", "compact", "--locale", "de")
    assert ran.code == 0, ran.err
    content = (tmp_path / "offer.pdf").read_bytes()
    assert content.startswith(b"%PDF-1.7")
    assert ran.err.endswith(f"Wrote {tmp_path / 'offer.pdf'}, {len(content):,} bytes.\n")
    ran = run("quote", "verify", tmp_path / "offer.pdf")
    assert ran.code == 0
    assert "A document of 2026-000001 (D-2041), version 1, stamped" in ran.out
    found = json.loads(run("quote", "verify", tmp_path / "offer.pdf", "--json").out)
    assert (found["verdict"], found["template"], found["locale"]) == ("issued", "compact", "de")
    (tmp_path / "offer.pdf").write_bytes(content + b" ")
    ran = run("quote", "verify", tmp_path / "offer.pdf")
    assert ran.code == 1
    assert "do not trust it" in ran.out


def test_q12_each_export_leaves_one_record_also_of_a_known_document(quote: str, home: Path, run: Run, tmp_path: Path):
    for _ in range(2):
        assert run("export", "quote", quote, "--output", tmp_path / "offer.pdf").code == 0
    assert run("export", "quote", "Q-none", "--output", tmp_path / "offer.pdf").code == 1
    recorded = "SELECT subject, outcome FROM audit_entry WHERE operation = 'export_quote' ORDER BY seq"
    assert query(home, recorded) == [("D-2041", "OK"), ("D-2041", "OK"), ("Q-none", "NOT_FOUND")]


def test_a_quote_is_exported_as_data(quote: str, run: Run, tmp_path: Path):
    content = json.loads(run("export", "quote", quote, "--format", "json").out)
    assert content["option_sets"][0]["total"] == 3330
    assert content["quote"]["stamp"] == "not_approved"
    root = Xml.fromstring(run("export", "quote", quote, "--format", "ubl").out)
    assert root.tag == "{urn:oasis:names:specification:ubl:schema:xsd:Quotation-2}Quotation"
    assert "NOT APPROVED: this version may not go to a customer." in [note.text for note in root.iter() if note.text]
    assert run("export", "quote", quote, "--output", tmp_path / "q.csv").code == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "q.csv").read_text())))
    assert [(row["sku"], row["quantity"], row["line_total"]) for row in rows] == [
        ("PLAN-PRO-001", "150", "1350"),
        ("TNK-240V", "1", "1980"),
    ]
    assert {row["stamp"] for row in rows} == {"not_approved"}
    assert rows[0]["notes"] == "'=1+1"  # A spreadsheet must not run it.


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--output", "x.docx"], "ends in .docx, which is not one of .pdf, .json, .ubl, .csv, .html, .xml, .htm"),
        (["--output", "x.pdf", "--format", "json"], "--format is json, but x.pdf ends in .pdf"),
        (["--output", "x.xml", "--format", "html"], "--format is html, but x.xml ends in .xml"),
    ],
    ids=["unknown", "another", "another name"],
)
def test_an_ending_that_is_no_form_or_another_one_is_refused(
    run: Run, quote: str, tmp_path: Path, arguments: list[str], said: str
):
    ran = run("export", "quote", quote, *arguments)
    assert (ran.code, said in ran.err) == (2, True)
    assert not list(Path().glob("x.*"))


def test_the_ending_says_the_form_and_a_form_that_is_asked_for_goes_into_any_other_file(run: Run, quote: str):
    starts = {"a.JSON": "{", "a.xml": "<?xml", "a.htm": "<!doctype", "a.csv": "", "a.txt": "{", "a": "{"}
    for name, start in starts.items():
        form = ["--format", "json"] if name in ("a.txt", "a") else []
        assert run("export", "quote", quote, "--output", name, *form).code == 0
        assert Path(name).read_text().lower().startswith(start)


def test_a_quote_is_exported_as_a_page_that_needs_nothing_else(quote: str, run: Run):
    html = run("export", "quote", quote, "--format", "html", "--locale", "fr").out
    assert html.startswith("<!doctype html>")
    assert "<style>" in html
    assert "Devis" in html
    assert "PROJET · NON APPROUVÉ" in html
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "")
    assert "src=" not in html


def test_what_cannot_be_exported_is_said(home: Path, run: Run):
    ran = run("export", "quote", "Q-none")
    assert ran.code == 1
    assert "There is no quote 'Q-none'" in ran.err
    assert ran.out == ""
    assert run("export", "quote", "Q-none", "--format", "docx").code == 2


def test_a_folder_that_is_not_there_is_said_before_anything_is_made(quote: str, run: Run, tmp_path: Path):
    ran = run("export", "quote", quote, "--output", tmp_path / "nowhere" / "offer.pdf")
    assert ran.code == 2
    assert f"There is no folder {tmp_path / 'nowhere'}" in ran.err
