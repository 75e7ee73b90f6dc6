"""Random quotes, re-added from their UBL and from the text of their PDF by the rules of EN 16931."""

import copy
import random
import re
import shutil
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.base.money import from_micro
from cpq.base.settings import read_settings, shipped
from cpq.base.text import canonical_json, digest, read_json
from cpq.domain.pricing import result as pricing_result
from cpq.domain.pricing.replay import reprice
from cpq.services.documents.document_request import DocumentRequest
from cpq.services.documents.exporter import export
from cpq.services.quotes.composition import fingerprint_of
from cpq.services.quotes.replay import replay_stored
from cpq.storage.columns import JsonText
from cpq.storage.schema.tables import quote, quote_pricing, quote_version
from tests.support import en16931, papers
from tests.support.en16931 import NAMES, Group, broken_rules, half_up
from tests.support.engine import Tools, import_dicts, open_app
from tests.support.papers import Paper
from tests.support.quotes import record_again

TAX = """
categories: [standard, service, saas, food, book]
zones:
  DE: {standard: 19, service: 19, saas: 19, food: 7, book: 0}
  US-TX: {standard: 6.25, service: 0, saas: 5, food: {rate: 0, code: E, reason: Food is exempt}, book: 6.25}
  JP: {standard: 10, service: 10, saas: 10, food: 8, book: 8}
"""
CATEGORIES = ("standard", "service", "saas", "food", "book")
PERIODS = ("one_time", "monthly", "yearly")
DIGITS = {"EUR": 2, "USD": 2, "JPY": 0}
BUYERS = {
    "acct_en_de": {"country": "DE", "tax_zone": "DE", "currency": "EUR", "locale": "de_DE"},
    "acct_en_us": {"country": "US", "tax_zone": "US-TX", "currency": "USD", "locale": "en_US"},
    "acct_en_jp": {"country": "JP", "tax_zone": "JP", "currency": "JPY", "locale": "ja_JP"},
    "acct_en_rc": {"country": "DE", "tax_zone": "DE", "currency": "EUR", "locale": "de_DE",
                   "tax_status": "reverse_charge", "tax_note": "Reverse charge, article 196"},
    "acct_en_ex": {"country": "US", "tax_zone": "US-TX", "currency": "USD", "locale": "en_US",
                   "tax_status": "exempt", "tax_note": "Exemption certificate 4711"},
}  # fmt: skip
QUOTES, PAPERS = 100, 12
QUOTES_OF_PROOF = 2_000


@pytest.fixture(scope="module")
def seller(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """Tools on a store with five tax categories, of which several have the same rate, and a policy for them.

    Nobody has to approve anything, because a stamp across the page stands in the way of those who read it.
    """
    home = tmp_path_factory.mktemp("en16931")
    shutil.copy(sqlite_template, home / "quotewright.db")
    policies = Path(shutil.copytree(shipped("policies"), home / "policies"))
    approvals = (policies / "approvals.yaml").read_text(encoding="utf-8")
    for name, text in (("tax", TAX), ("discounts", "rules: []"), ("approvals", approvals.partition("ladders:")[0])):
        (policies / f"{name}.yaml").write_text(text, encoding="utf-8")
        (policies / f"{name}_test.yaml").unlink()
    app = open_app(read_settings({}, home=home, rate_limit_per_minute=0, policies_dir=policies))
    chance = random.Random(16931)
    for id_, values in BUYERS.items():
        import_dicts(app, "accounts", {"id": id_, "name": id_, "segment": "smb", "region": "emea", **values})
    for category in CATEGORIES:
        for period in PERIODS:
            product = f"prod_{category}_{period}"
            import_dicts(app, "products", {"id": product, "sku": product.upper(), "name": product, "category": "tanks"})
            for currency, digits in DIGITS.items():
                price = {"id": f"price_{product}_{currency}", "product_id": product, "price_book": "list"}
                amount = Decimal(chance.randint(1, 10**6)).scaleb(-chance.choice((digits, digits, digits + 2)))
                fields = {"currency": currency, "unit_price": str(amount), "billing_period": period}
                import_dicts(app, "prices", {**price, **fields, "tax_category": category})
    yield Tools(app)
    app.close()


def random_quote(tools: Tools, seed: int) -> tuple[str, int]:
    """A priced quote with one to three tax categories, one-time and recurring, and the decimals of its currency."""
    chance = random.Random(seed)
    account_id = chance.choice(list(BUYERS))
    categories = chance.sample(CATEGORIES, chance.randint(1, 3))
    lines = [
        {
            "product_id": f"prod_{categories[number % len(categories)]}_{chance.choice(PERIODS)}",
            "quantity": chance.randint(1, 40),
            "discount_pct": chance.choice((0, 0, 2.5, 10, 33.333)),
        }
        for number in range(chance.randint(len(categories), 6))
    ]
    currency = BUYERS[account_id]["currency"]
    terms = {"currency": currency, "term_months": chance.choice((12, 7, 36))}
    quote_id = tools("quote_create", account_id=account_id, line_items=lines, **terms)["quote_id"]
    tools("quote_price", quote_id=quote_id, requested_discount_pct=chance.choice((0, 3, 7.5, 12.345)))
    return quote_id, DIGITS[currency]


def ubl_of(tools: Tools, quote_id: str) -> Xml.Element:
    app, request = tools.app, DocumentRequest(quote_id, "standard", None, None)
    text = app.read_unaudited(app.new_call(), lambda tx: export(tx, request, "ubl", papers.design()))
    return Xml.fromstring(text)


def printed_groups(paper: Paper) -> list[tuple[Decimal, Decimal, Decimal]]:
    """Rate, base and tax of the rows of tax, as a reader finds them on the page."""
    label = papers.design().tongue(paper.locale).label("tax", rate="RATE", base="BASE")
    pattern = (
        re.escape(_without_blanks(label)).replace("RATE", "(?P<rate>[0-9.,]+)%.*?").replace("BASE", "(?P<base>.+?)")
    )
    found = []
    for cell in paper.cells:
        *before, last = paper.row_of(cell)
        read = re.search(f"{pattern}$", _without_blanks("".join(one.text for one in before)))
        if cell is last and read:
            found.append((paper.number(read["rate"]), paper.number(read["base"]), paper.number(last.text)))
    return found


def _without_blanks(text: str) -> str:
    """As runs of letters of different fonts are read apart, so is what stands between them."""
    return re.sub(r"\s", "", papers.plain(text))


def assert_printed_right(paper: Paper, groups: list[Group], digits: int) -> None:
    """The page alone adds up by the same rules, and shows the groups of the UBL."""
    lines = paper.lines()
    net = sum(line["amount"] for line in lines)
    printed = printed_groups(paper)
    *before, total = papers.totals_of(paper)
    discount = sum(line["discount"] for line in lines)
    if discount:
        subtotal, off, *before = before
        assert (off, subtotal + off) == (discount, net)
    assert before == [net, *(tax for _, _, tax in printed)]
    assert sum(base for _, base, _ in printed) == net
    assert [half_up(base * rate / 100, digits) for rate, base, _ in printed] == [tax for _, _, tax in printed]
    assert net + sum(tax for _, _, tax in printed) == total
    assert printed == [(group.rate, group.base, group.tax) for group in groups]


def check(tools: Tools, seed: int, *, with_paper: bool) -> list[Group]:
    quote_id, digits = random_quote(tools, seed)
    root = ubl_of(tools, quote_id)
    assert broken_rules(root, digits) == [], f"seed {seed}"
    groups = en16931.breakdown(root)
    told = tools("quote_get", quote_id=quote_id)["tax_groups"]
    as_told = [(one["category_code"], *(Decimal(str(one[name])) for name in ("rate", "base", "tax"))) for one in told]
    assert as_told == groups, f"seed {seed}"
    if with_paper:
        template = ("standard", "compact", "detailed")[seed % 3]
        paper = Paper.of(tools("quote_pdf", quote_id=quote_id, template=template))
        assert broken_rules(Xml.fromstring(paper.attached("quotation.xml")), digits) == []
        assert_printed_right(paper, groups, digits)
    return groups


def test_q27b_random_quotes_re_add_from_their_ubl_and_some_from_their_pdf(seller: Tools):
    found = [check(seller, seed, with_paper=seed < PAPERS) for seed in range(QUOTES)]
    assert {len(groups) for groups in found} == {1, 2, 3}
    assert {group.code for groups in found for group in groups} == {"S", "Z", "E", "AE"}


@pytest.mark.proof
def test_q27b_two_thousand_random_quotes_re_add_from_their_ubl_and_their_pdf(seller: Tools):
    for seed in range(QUOTES_OF_PROOF):
        check(seller, seed, with_paper=True)


Spoil = Callable[[Xml.Element], Any]


def put(path: str, text: str) -> Spoil:
    def spoil(root: Xml.Element) -> None:
        element = root.find(path, NAMES)
        assert element is not None
        element.text = text

    return spoil


def repeat_group(root: Xml.Element) -> None:
    total = root.find("cac:TaxTotal", NAMES)
    assert total is not None
    total.append(copy.deepcopy(total[1]))


def remove(inside: str, path: str) -> Spoil:
    def spoil(root: Xml.Element) -> None:
        parent = root.find(inside, NAMES)
        assert parent is not None
        found = parent.find(path, NAMES)
        assert found is not None
        parent.remove(found)

    return spoil


SUBTOTAL, TOTAL, ITEM = "cac:TaxTotal/cac:TaxSubtotal", "cac:QuotedMonetaryTotal", "cac:QuotationLine/cac:LineItem"


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (put(f"{TOTAL}/cbc:LineExtensionAmount", "1.00"), "BR-CO-10"),
        (put(f"{TOTAL}/cbc:TaxExclusiveAmount", "1.00"), "BR-CO-13"),
        (put("cac:TaxTotal/cbc:TaxAmount", "0.01"), "BR-CO-14"),
        (put(f"{TOTAL}/cbc:TaxInclusiveAmount", "1.00"), "BR-CO-15"),
        (put(f"{TOTAL}/cbc:PayableAmount", "1.00"), "BR-CO-16"),
        (put(f"{SUBTOTAL}/cbc:TaxAmount", "0.01"), "BR-CO-17"),
        (put(f"{SUBTOTAL}/cbc:TaxableAmount", "0.01"), "BR-S-08"),
        (put(f"{SUBTOTAL}/cac:TaxCategory/cbc:ID", "Z"), "BR-Z-05"),
        (put(f"{SUBTOTAL}/cac:TaxCategory/cbc:ID", "AE"), "BR-AE-10"),
        (put(f"{SUBTOTAL}/cac:TaxCategory/cbc:ID", "Z"), "BR-S-01"),
        (put(f"{SUBTOTAL}/cbc:TaxAmount", "0.001"), "BR-DEC"),
        (put(f"{ITEM}/cbc:Quantity", "99"), "PEPPOL-EN16931-R120"),
        (put(f"{ITEM}/cac:Item/cac:ClassifiedTaxCategory/cbc:Percent", "0"), "BR-S-05"),
        (remove(f"{ITEM}/cac:Item", "cac:ClassifiedTaxCategory"), "BR-CO-04"),
        (remove(f"{SUBTOTAL}/cac:TaxCategory", "cbc:Percent"), "BR-48"),
        (repeat_group, "BG-23"),
    ],
)
def test_a_document_that_is_spoilt_breaks_the_rule(seller: Tools, spoil: Spoil, rule: str):
    lines = [{"product_id": f"prod_{category}_one_time", "quantity": 3} for category in ("standard", "saas", "food")]
    terms = {"account_id": "acct_en_de", "currency": "EUR", "line_items": lines}
    root = ubl_of(seller, seller("quote_create", **terms)["quote_id"])
    assert broken_rules(root, 2) == []
    spoil(root)
    assert rule in broken_rules(root, 2)


def test_q27b_three_internal_categories_at_19_percent_are_one_line_on_the_page_and_one_group_in_ubl(seller: Tools):
    lines = [{"product_id": f"prod_{category}_one_time", "quantity": 7} for category in ("standard", "service", "saas")]
    made = papers.quoted(seller, *lines, account_id="acct_en_de", currency="EUR")
    paper = Paper.of(seller("quote_pdf", quote_id=made))
    (group,) = en16931.breakdown(Xml.fromstring(paper.attached("quotation.xml")))
    assert (group.code, group.rate) == ("S", Decimal(19))
    assert len(printed_groups(paper)) == 1
    assert_printed_right(paper, [group], 2)


def test_q27b_groups_of_one_rate_are_told_apart_on_the_page_by_their_codes(seller: Tools):
    lines = [{"product_id": f"prod_{category}_one_time", "quantity": 1} for category in ("service", "food")]
    made = papers.quoted(seller, *lines, account_id="acct_en_us", currency="USD")
    paper = Paper.of(seller("quote_pdf", quote_id=made))
    assert "0% (Z) on" in paper.text
    assert "0% (E) on" in paper.text
    assert "Food is exempt" in paper.text


def test_a_bundle_of_categories_at_one_rate_has_the_code_of_their_group(seller: Tools):
    parts = [{"kind": "component", "product_id": f"prod_{category}_one_time"} for category in ("standard", "saas")]
    kind = {"product_type": "bundle", "bundle": {"pricing": "components"}, "relationships": parts}
    bundle = {"id": "prod_en_bundle", "sku": "BUNDLE", "name": "Bundle", "category": "tanks", **kind}
    import_dicts(seller.app, "products", bundle)
    own = {"product_id": "prod_en_bundle", "price_book": "list", "currency": "EUR", "unit_price": "0"}
    import_dicts(seller.app, "prices", own)
    lines = [{"product_id": "prod_en_bundle", "quantity": 3}]
    root = ubl_of(seller, papers.quoted(seller, *lines, account_id="acct_en_de", currency="EUR"))
    assert broken_rules(root, 2) == []
    assert [(group.code, group.rate) for group in en16931.breakdown(root)] == [("S", Decimal(19))]


def as_stored_before_codes(tools: Tools, quote_id: str) -> None:
    """Store the price of a quote as it was before requests had codes and editions."""
    with tools.app.database.writing(tools.app.effects.monotonic() + 10) as connection:
        mine = quote_pricing.c.quote_id == quote_id
        values = dict(connection.execute(sa.select(quote_pricing.c.request).where(mine)).scalar_one())
        for name in ("tax_codes", "tax_reasons", "edition"):
            values.pop(name, None)
        request = canonical_json(values)
        result = reprice(request)
        priced = pricing_result.load(read_json(result))
        totals = {"tax_total": priced.tax_total, "total": priced.total, "tax_note": priced.tax_note}
        version = quote_version.c.quote_id == quote_id
        hashes = dict(connection.execute(sa.select(quote_version.c.hashes).where(version)).scalar_one())
        hashes |= {"request": digest([request]), "result": digest([result])}
        kept = {**totals, "hashes": hashes, "fingerprint": fingerprint_of([priced])}
        connection.execute(sa.update(quote_version).where(version).values(**kept))
        connection.execute(sa.update(quote).where(quote.c.id == quote_id).values(total=priced.total))
        stored = {"request": JsonText(request), "result": JsonText(result)}
        connection.execute(sa.update(quote_pricing).where(mine).values(**stored))
    record_again(tools.app, quote_id)


def test_a_quote_stored_before_there_were_codes_keeps_its_groups_total_and_document(seller: Tools):
    """Three groups as it has always had, one row for their rate on the page, and a price that replays to the byte."""
    lines = [{"product_id": f"prod_{category}_one_time", "quantity": 7} for category in ("standard", "service", "saas")]
    quote_id = papers.quoted(seller, *lines, account_id="acct_en_de", currency="EUR")
    as_stored_before_codes(seller, quote_id)
    groups = seller("quote_get", quote_id=quote_id)["tax_groups"]
    assert [(one["category_code"], one["category"], one["rate"]) for one in groups] == [
        (None, name, 19) for name in ("saas", "service", "standard")
    ]
    paper = Paper.of(seller("quote_pdf", quote_id=quote_id))
    found = en16931.breakdown(Xml.fromstring(paper.attached("quotation.xml")))
    assert [(group.code, group.rate) for group in found] == [("S", Decimal(19))] * 3
    base, tax = sum(group.base for group in found), sum(group.tax for group in found)
    assert printed_groups(paper) == [(Decimal(19), base, tax)]
    app = seller.app
    (proof,) = app.read_unaudited(app.new_call(), lambda tx: list(replay_stored(tx, quote_id)))
    assert from_micro(proof.total) == base + tax
