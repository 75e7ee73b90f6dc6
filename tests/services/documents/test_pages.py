"""What stands on the pages: everything, once, in its place, adding up, in every template and language."""

import re
import xml.etree.ElementTree as Xml
from collections.abc import Callable
from decimal import Decimal

import pytest
import sqlalchemy as sa

from cpq.services.documents.design import TEMPLATES
from cpq.services.documents.line_table import is_stated
from cpq.services.documents.ubl import CAC, CBC
from cpq.storage.schema.tables import product
from tests.support import papers
from tests.support.engine import Tools
from tests.support.papers import Paper

Papers = Callable[..., Paper]

WORD = re.compile(r"[a-z]+([_-][a-z]+)*")
SAMPLES = ("one", "mixed", "german", "twelve", "sixty", "japanese", "ramp", "nasty")


def label(paper: Paper, key: str) -> str:
    return papers.design().tongue(paper.locale).label(key)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("template", ["standard", "compact", "detailed"])
def test_q35_what_a_page_says_adds_up(paper: Papers, name: str, template: str):
    """Q-35 lines, discounts, taxes and total, read off the page, re-add to the last minor unit."""
    document = paper(name, template)
    lines = document.lines()
    chosen = document.content["option_sets"][0]
    assert len(lines) == len(chosen["lines"])
    for line in lines:
        gross = line["quantity"] * line["unit_price"]
        # A unit price has six decimals at most, so many units of it may be off by as many halves of the last one.
        assert abs(gross + line["discount"] - line["amount"]) <= line["quantity"] * Decimal("0.0000005")
    net, discount = (sum(line[name] for line in lines) for name in ("amount", "discount"))
    *before, total = papers.totals_of(document)
    if discount:
        subtotal, off, *before = before
        assert off == discount == -chosen["discount_total"]
        assert subtotal + off == net
    first, *taxes = before
    assert first == net
    assert net + sum(taxes) == total == chosen["total"]


ONE_SET = tuple(template for template in TEMPLATES if template != "comparison")
"""Templates for quotes without alternatives."""


@pytest.mark.parametrize(
    ("name", "template"),
    [*((name, template) for name in ("mixed", "german", "arabic") for template in ONE_SET), ("sets", "comparison")],
)
def test_no_text_stands_over_another_or_outside_the_page(paper: Papers, name: str, template: str):
    document = paper(name, template)
    cells = document.cells
    assert not papers.overlaps(cells)
    with document.opened() as pdf:
        width, height = (float(side) for side in pdf.pages[0].MediaBox[2:])
    assert all(cell.left > 20 and cell.right < width - 20 for cell in cells)
    assert all(cell.bottom > 10 and cell.top < height - 10 for cell in cells)


def test_headings_repeat_and_totals_never_stand_alone(paper: Papers):
    document = paper("sixty")
    pages = document.pages
    assert len(pages) > 3
    heads = [cell.page for cell in document.cells if cell.text == label(document, "unit_price")]
    assert heads == list(range(len(set(heads))))
    total = next(cell for cell in document.cells if cell.text == label(document, "net_total"))
    assert [
        row for row in document.columns(label(document, "amount")) if row.page == total.page and row.top > total.top
    ]
    for number, text in enumerate(pages, 1):
        assert f"Page {number} of {len(pages)}" in text


@pytest.mark.parametrize("template", TEMPLATES)
def test_nobody_signs_a_page_that_says_nothing_else(paper: Papers, template: str):
    """What is agreed, or who offers it, is on the page with the signature."""
    for name in ("sets",) if template == "comparison" else ("one", "mixed", "german", "sixty", "sets", "arabic"):
        document = paper(name, template)
        last = document.pages[-1]
        assert label(document, "acceptance") in last
        before = [label(document, "about"), label(document, "terms")]
        assert [word for word in before if word in last], (name, template)


def test_a_comparison_ends_with_its_totals_on_the_page_of_its_lines(paper: Papers):
    document = paper("sets", "comparison")
    assert "Total" in document.pages[0]
    assert "All amounts in USD" in document.pages[0]
    assert "Discount" not in document.text  # No alternative has one.


def test_lines_are_grouped_and_every_group_has_its_sum(paper: Papers):
    document = paper("mixed")
    text = document.text
    for section in ("One-time charges", "Recurring charges for the whole term"):
        assert f"Total {section}" in text
    assert text.index("Air compressors") < text.index("CMP-QMB30") < text.index("Subtotal Air compressors")
    assert "– 1 × Zero-Loss Level Drain" in text  # The bundle says what is in it.
    assert sum(papers.sums(document, "Subtotal ")) == document.content["option_sets"][0]["net"]


def test_a_compact_document_of_twelve_lines_is_one_page(paper: Papers):
    for name in ("one", "mixed", "twelve", "german", "japanese", "arabic"):
        assert len(paper(name, "compact").pages) == 1, name


@pytest.mark.parametrize(
    ("name", "locale"),
    [
        *(("one", "en_US"), ("four", "en_US"), ("four", "es_MX"), ("four", "fr_CA")),
        *(("four_abroad", locale) for locale in ("de_DE", "fr_FR", "es_ES", "ja_JP", "ar_AE")),
    ],
)
def test_a_standard_document_of_up_to_four_plain_lines_is_one_page(paper: Papers, name: str, locale: str):
    """On Letter and on A4, with everything that belongs to a quote, but without groups of one line."""
    document = paper(name, locale=locale)
    assert len(document.pages) == 1
    assert all(one["sku"] in document.text for one in document.content["products"].values())
    for part in ("exclusions", "terms", "about", "acceptance"):
        assert label(document, part) in document.text, part
    assert "Air compressors" not in document.text


def test_an_executive_summary_is_one_page_whatever_the_lines(paper: Papers):
    for name in ("one", "twelve", "german", "mixed", "arabic", "stamped"):
        assert len(paper(name, "executive_summary").pages) == 1, name
    assert len(paper("sixty", "executive_summary").pages) == 1


@pytest.mark.parametrize(
    ("name", "locale", "expected"),
    [
        ("one", "en_US", "150 × Pro Plan · 10.00 a year × 1 year"),
        ("one", "de_DE", "150 × Pro Plan · 10,00 je Jahr × 1 Jahr"),
    ],
)
def test_an_executive_summary_says_what_a_period_costs(paper: Papers, name: str, locale: str, expected: str):
    """With the number of units that have this price; what is paid once is only named."""
    assert expected in " ".join(paper(name, "executive_summary", locale).text.split())
    assert "×" not in paper("twelve", "executive_summary").text


def test_the_page_and_the_ubl_carry_the_number_of_the_quote_for_people(paper: Papers, desk: Tools):
    for template in ONE_SET:
        document = paper("mixed", template)
        number = document.content["quote"]["number"]
        assert number == desk("quote_get", quote_id=document.content["quote"]["id"])["quote"]["number"]
        assert number in document.pages[0]
        root = Xml.fromstring(document.attached("quotation.xml"))
        assert number in [part.text for part in root.findall(f"{{{CAC}}}AdditionalDocumentReference/{{{CBC}}}ID")]


def test_c2_14_a_compressor_is_described_as_engineers_read_it(paper: Papers):
    """C2.14 the partial of the category, and of another category another one."""
    text = paper("mixed", "detailed").text
    expected = ["Manufacturer", "Series", "Model", "Cooling", "Pressure", "Capacity", "Electric motor", "Voltage"]
    expected += ["Drive system", "Dimensions (in)", "Weight", "Warranty (years): 2", "Delivery:"]
    start = text.index("QMB30 Rotary Screw Compressor")
    places = [text.index(word, start) for word in expected]
    assert places == sorted(places)
    assert "QMB30 as described above" in text
    assert "Net 13,483.00 each" in text
    described = text[start : text.index("QMB30 as described above")]
    assert described.count("30 HP, 3600 RPM, ODP, 1.15 SF") == 1
    assert not [word for word in ("Power", "Speed", "Enclosure", "Service factor") if word in described]
    assert "Dew point\n" in text or "Dew point " in text
    assert "Travel included" in text


@pytest.mark.parametrize(
    ("motor", "spec", "value", "expected"),
    [
        ("30 HP, 3600 RPM, ODP, 1.15 SF", "hp", 30, True),
        ("30 HP, 3600 RPM, ODP, 1.15 SF", "rpm", Decimal(3600), True),
        ("30 HP, 3600 RPM, ODP, 1.15 SF", "enclosure", "ODP", True),
        ("30 HP, 3600 RPM, ODP, 1.15 SF", "service_factor", "1.15", True),
        ("30 HP, 3600 RPM, ODP, 1.15 SF", "service_factor", "1.1", False),
        ("30 HP, 3600 RPM, ODP, 1.15 SF", "weight_lb", 30, False),
        ("30 HP, 3600 RPM, ODP", "hp", 3, False),
        ("20 x 5 HP, 3600 RPM, TEFC", "hp", 100, False),
        ("20 x 5 HP, 3600 RPM, TEFC", "hp", 5, False),
        ("20 x 5 HP, 3600 RPM, TEFC", "hp", 20, False),
        ("", "hp", 30, False),
    ],
)
def test_c2_14_a_fact_about_the_motor_is_stated_once(motor: str, spec: str, value: object, expected: bool):
    assert is_stated(motor, spec, value) is expected


def test_c2_15_the_skeleton_is_complete(paper: Papers):
    """C2.15 letterhead, number, dates, attention, greeting, exclusions, terms, signature, five offices."""
    text = paper("mixed").text
    for part in (
        "Meridian Air Systems",
        "Attention: Wanda Coyle, Purchasing",
        "Dear Wanda Coyle,",
        "Thank you for your inquiry",
        "Please note our shutdown.",
        "Installation and start-up",
        "Not included",
        "Payment: Net 30 days.",
        "FOB factory",
        "About us",
        "We accept proposal",
        "Signature",
    ):
        assert part in text, part
    for office in ("Dayton", "Chicago", "Houston", "Duisburg", "Osaka"):
        assert office in text
    assert "Installation and start-up" not in paper("one").text


OF_GOODS = {
    "rigging": "Unloading and rigging",
    "piping": "Installation and piping",
    "foundations": "Foundations and building work",
    "fob": "FOB factory, freight prepaid and added",
    "freight": "FOB factory; freight as quoted above",
}
SOLD = {
    "machine": (("prod_qmb30",), "rigging piping foundations fob", None),
    "machine and crew": (("prod_qmb30", "prod_svc_install"), "rigging foundations fob", "Installation and start-up"),
    "machine and crane": (("prod_qmb30", "prod_svc_crane"), "piping foundations fob", "Work at your site"),
    "machine and start-up": (
        ("prod_qmb30", "prod_svc_startup_s"),
        "rigging piping foundations fob",
        "Work at your site",
    ),
    "machine and freight": (("prod_qmb30", "prod_svc_freight"), "rigging piping foundations freight", None),
    "leak survey": (("prod_svc_leak",), "", None),
    "rental": (("prod_rent_rs100",), "", None),
    "software": (("prod_pro_v2",), "", None),
    "bundle of machines": (("prod_bdl_shop15",), "rigging piping foundations fob", None),
    "bundle of services": (("prod_bdl_care",), "", None),
}


@pytest.mark.parametrize("name", SOLD)
def test_what_is_not_included_and_the_delivery_follow_what_is_sold(sqlite_tools: Tools, name: str):
    """A rental or a leak survey excludes no foundations, and software has no FOB; nothing sold is called excluded."""
    products, said, heading = SOLD[name]
    quote_id = papers.quoted(sqlite_tools, *({"product_id": id_, "quantity": 1} for id_ in products))
    text = " ".join(Paper.of(sqlite_tools("quote_pdf", quote_id=quote_id)).text.split())
    assert {part for part, words in OF_GOODS.items() if words in text} == set(said.split())
    assert [title for title in ("Installation and start-up", "Work at your site") if title in text] == (
        [heading] if heading else []
    )
    assert "Taxes and duties that are not shown" in text


def test_lines_are_numbered_in_printed_order(paper: Papers):
    """Lines are grouped by category, so the numbers follow the page, and notes and UBL use the same ones."""
    for name, template in (("mixed", "standard"), ("sixty", "standard"), ("mixed", "compact"), ("nasty", "standard")):
        document = paper(name, template)
        printed = [line["number"] for line in document.lines()]
        assert printed == list(range(1, len(document.content["option_sets"][0]["lines"]) + 1))
    named = paper("mixed", "detailed").text
    assert [f"\n{number}. " in named for number in range(1, 7)] == [True] * 6
    root = Xml.fromstring(paper("mixed").attached("quotation.xml"))
    skus = [item.findtext(f"{{{CBC}}}ID", "") for item in root.iter(f"{{{CAC}}}SellersItemIdentification")]
    text = paper("mixed").text
    assert skus == sorted(skus, key=text.index)
    assert [line.findtext(f"{{{CBC}}}ID") for line in root.iter(f"{{{CAC}}}QuotationLine")] == list("123456")


def test_no_page_has_a_hash_and_no_code_leads_nowhere(paper: Papers):
    """A code to scan needs an address, which the shipped branding does not have; the file still names its price."""
    for template in TEMPLATES:
        document = paper("sets", template)
        assert not re.search("[0-9a-f]{32}", document.text)
        assert label(document, "scan") not in document.text
        with document.opened() as pdf, pdf.open_metadata() as metadata:
            assert document.content["quote"]["fingerprint"] in metadata["pdf:Keywords"]


def test_who_sells_and_who_buys_is_printed(paper: Papers, desk: Tools):
    """Legal line, tax ids, bank, contact person; the buyer's tax id and order number, or a place to write it."""
    for template in TEMPLATES:
        first = paper("sets", template).pages[0]
        for part in (
            "Ohio charter no. 2204871",
            "VAT ID DE327554120",
            "Account 8800412277",
            "Jordan Reyes, Inside Sales",
        ):
            assert part in first, (template, part)
        assert "Your PO no." in paper("sets", template).pages[-1]
        german = paper("german", template if template != "comparison" else "standard")
        assert "Ihre Steuernummer" in german.text
        assert "DE811907980" in german.text
        assert german.text.count("Ihre Bestell-Nr.") == german.text.count("4500-2026-077") == 1
    company = Xml.fromstring(paper("german").attached("quotation.xml")).find(f"{{{CAC}}}BuyerCustomerParty")
    assert company is not None
    assert [found.text for found in company.iter(f"{{{CBC}}}CompanyID")] == ["DE811907980"]
    assert desk("account_get", account_id="acct_rheinstahl_010")["tax_id"] == "DE811907980"


def test_the_lead_time_of_a_product_and_the_general_terms_are_printed(sqlite_tools: Tools):
    lines = [{"product_id": id_, "quantity": 1} for id_ in ("prod_svc_install", "prod_svc_leak", "prod_svc_startup_s")]
    quote_id = papers.quoted(sqlite_tools, {"product_id": "prod_tk240v", "quantity": 1}, *lines)
    text = "".join(Paper.of(sqlite_tools("quote_pdf", quote_id=quote_id)).text.split())
    assert "Leadtimeafterreceiptofyourorder:10days(no.3–4),20days(no.2)." in text
    assert "Ourgeneraltermsofsaleapply:" in text
    none = papers.quoted(sqlite_tools, {"product_id": "prod_tk240v", "quantity": 1})
    assert "Lead time" not in Paper.of(sqlite_tools("quote_pdf", quote_id=none)).text


def test_work_on_several_lines_is_stated_once(sqlite_tools: Tools):
    lines = [{"product_id": "prod_svc_install", "quantity": quantity} for quantity in (3, 4)]
    text = Paper.of(sqlite_tools("quote_pdf", quote_id=papers.quoted(sqlite_tools, *lines))).text
    assert text.count(" × Turnkey Installation, crew day") == 1
    assert "7 × Turnkey Installation, crew day" in text


def test_a_code_is_printed_letter_by_letter(sqlite_tools: Tools):
    """The typeface would draw a sign of multiplication between digits, and then neither could be copied."""
    line = {"product_id": "prod_svc_install", "quantity": 7}
    quote_id = papers.quoted(sqlite_tools, line, notes="Your code Q-24x1-4X2 -> Dayton.")
    text = Paper.of(sqlite_tools("quote_pdf", quote_id=quote_id)).text
    assert "Your code Q-24x1-4X2 -> Dayton." in text
    assert "7 × Turnkey Installation, crew day" in text


def test_the_comparison_sets_alternatives_side_by_side(paper: Papers):
    document = paper("sets", "comparison")
    cells = document.cells
    heads = {name: next(cell for cell in cells if cell.text.startswith(name)) for name in ("Basic", "Plus", "Premium")}
    assert max(cell.top for cell in heads.values()) - min(cell.top for cell in heads.values()) < 2
    assert [cell.left for cell in heads.values()] == sorted(cell.left for cell in heads.values())
    for one in document.content["option_sets"]:
        assert f"{one['total']:,.2f}" in document.text
    assert "Alternatives" in paper("sets").text
    assert "×" not in document.text  # An amount is that of the line; how many it is for stands below.
    assert "Qty 1" in document.text


def test_a_comparison_needs_alternatives_and_lets_the_customer_tick_one(
    paper: Papers, desk: Tools, samples: dict[str, str]
):
    error = desk.error("quote_pdf", quote_id=samples["one"], template="comparison")
    assert error["code"] == "VALIDATION_ERROR"
    assert error["details"]["field"] == "/template"
    assert "at least two option sets" in error["message"]
    way_out = error["details"]["next_call"]
    assert desk(way_out["tool"], **way_out["arguments"])["template_used"] == "standard"
    last = paper("sets", "comparison").pages[-1]
    assert "in the alternative that we tick here" in " ".join(last.split())
    end = last[last.index("tick here") :]
    for one in paper("sets", "comparison").content["option_sets"]:
        assert one["name"] in end
        assert f"{one['total']:,.2f}" in end


RENTAL = {"product_id": "prod_rent_rs100", "quantity": 1}


@pytest.mark.parametrize("template", ["standard", "compact", "detailed"])
@pytest.mark.parametrize(
    ("locale", "term", "once"),
    [
        ("en_US", "a month × 12 months", "a month, for one month"),
        ("de_DE", "je Monat × 12 Monate", "je Monat, für einen Monat"),
        ("fr_FR", "par mois × 12 mois", "par mois, pour un mois"),
        ("es_ES", "al mes × 12 meses", "al mes, por un mes"),
        ("ja_JP", "× 12か月", "1か月分"),
        ("ar_AE", "شهريًا", "لشهر واحد"),
    ],
)
def test_a_recurring_line_says_what_a_month_costs(desk: Tools, template: str, locale: str, term: str, once: str):
    """The price of a month times the months, never a price for the term beside the word monthly."""
    for months, said in ((12, term), (None, once)):
        quote_id = papers.quoted(desk, RENTAL, term_months=months)
        document = Paper.of(desk("quote_pdf", quote_id=quote_id, template=template, locale=locale))
        text = "".join(document.text.split())
        line = document.content["option_sets"][0]["lines"][0]
        month = papers.design().tongue(locale).unit_price(line["unit_price_per_period"], "USD")
        if locale != "ar_AE":  # Its letters are joined in the file.
            assert "".join(said.split()) in text
            for heading in ("recurring", "recurring_once"):
                is_said = "".join(label(document, heading).split()) in text
                assert is_said == (heading == ("recurring" if months else "recurring_once")), heading
        assert papers.plain("".join(month.split())) in text
        for word in ("monthly", "quarterly", "yearly"):
            assert "".join(label(document, word).split()) not in text


def test_a_billing_that_is_chosen_is_not_contradicted(desk: Tools):
    """The price says its own period; who is billed how often is said once, by the option."""
    line = {"product_id": "prod_pro_v2", "quantity": 5, "attributes": {"billing": "monthly"}}
    text = Paper.of(desk("quote_pdf", quote_id=papers.quoted(desk, line))).text
    assert "Instalments: monthly" in text
    assert "Billed" not in text


def test_a_long_note_and_a_long_code_are_whole(paper: Papers):
    document = paper("nasty")
    text = document.text
    assert text.split().count("so.") == 1000
    assert papers.SKU_60 in text.replace("\n", "")
    assert "See the note on line 1 below" in text


def test_markup_in_names_and_notes_comes_out_as_text(paper: Papers):
    for template in ONE_SET:
        text = " ".join(paper("nasty", template).text.split())
        assert "<script>alert(1)</script>" in text, template
        assert "{{ 7 * 7 }}" in text
        assert "root:" not in text


@pytest.mark.parametrize(
    ("name", "locale", "expected"),
    [
        ("german", "de_DE", ["Angebot", "16", "Nettobetrag", "Steuer 19 %", "Seite 1 von"]),
        ("german", "fr_FR", ["Devis", "Total net", "Taxe 19 %", "Page 1 sur"]),
        ("german", "es_ES", ["Oferta", "Total neto", "Impuesto 19 %", "Página 1 de"]),
        ("japanese", None, ["御見積書", "佐藤 健一 様", "税抜合計", "納期は髙橋様へ。", "1 / "]),
        ("arabic", None, ["محمد الهاشمي", "الخصم", "USD", "US$"]),
    ],
)
def test_the_locale_decides_how_it_speaks(paper: Papers, name: str, locale: str | None, expected: list[str]):
    text = paper(name, locale=locale).text.replace("\u202f", " ").replace("\u00a0", " ")
    for part in expected:
        assert part in text, part


def test_a_ramp_says_its_steps_and_multiplies_out(paper: Papers):
    text = paper("ramp").text
    assert "Months 1–6: 100 · Months 7–12: 150" in text
    line = paper("ramp").lines()[0]
    assert line["quantity"] == 1
    assert line["unit_price"] == paper("ramp").content["option_sets"][0]["lines"][0]["subtotal"]
    total = paper("ramp").content["option_sets"][0]["lines"][0]["line_total"]
    assert f"1 × Net {total:,.2f} each" in " ".join(paper("ramp", "detailed").text.split())


def test_yen_have_no_decimals(paper: Papers):
    document = paper("japanese")
    total = document.content["option_sets"][0]["total"]
    assert f"￥{total:,}" in document.text
    assert not [cell for cell in document.columns("金額") if "." in cell.text]


def test_arabic_runs_from_right_to_left_and_figures_do_not(paper: Papers):
    document = paper("arabic")
    assert "+97145550142" in document.seen()
    assert "2026/11/16" in document.seen()  # The day is on the right, where reading begins.
    numbers = [cell for cell in document.cells if cell.text in ("1", "2", "3") and cell.right > 500]
    amounts = document.columns(label(document, "amount"))
    assert numbers
    assert all(cell.right < 200 for cell in amounts if cell.page == 0)


def test_codes_units_and_addresses_within_arabic_run_from_left_to_right(paper: Papers):
    """A customer read `HP 30`, `psi 100` and `++C`."""
    seen = paper("translated", "detailed").seen()
    for run in ("SKU-12(A)", "30HP", "100psi(6.9bar)", "ISO8573-1(C++)", "a-b@c.example", "QMB-30(A)", "5°C"):
        assert run in seen, run


def test_figures_stand_below_each_other_from_right_to_left_too(paper: Papers):
    """Of the discounts the amount ends the column, whatever the percentage; the totals end where the amounts do."""
    document = paper("arabic")
    ends = {name: {round(cell.right) for cell in figures(document, name)} for name in ("discount", "amount")}
    assert all(len(found) == 1 for found in ends.values()), ends
    net = next(cell for cell in document.cells if cell.text == label(document, "net_total"))
    assert round(document.row_of(net)[0].right) in ends["amount"]


def figures(document: Paper, name: str) -> list[papers.Cell]:
    """Of the first page, which has no totals."""
    return [cell for cell in document.columns(label(document, name)) if cell.page == 0 and cell.text[-1].isdigit()]


def test_a_text_that_runs_the_other_way_keeps_its_stops(paper: Papers):
    """Its second line begins within an isolate, which the engine forgets there; the whole text has a side instead."""
    assert "CFMat110PSI." in paper("arabic", "detailed").seen()


def test_what_the_sample_catalogue_says_in_words_is_said_in_every_language(desk: Tools):
    """Names of types, finishes and grades; figures and names of their own are the same everywhere."""
    rows = desk.app.read_unaudited(
        desk.app.new_call(), lambda tx: tx.connection.execute(sa.select(product.c.specs)).scalars().all()
    )
    words = {value for specs in rows for value in specs.values() if isinstance(value, str) and WORD.fullmatch(value)}
    assert "heatless_desiccant" in words
    for language in ("de", "fr", "es", "ja", "ar"):
        assert not words - set(papers.design().labels[language]["words"]), language
