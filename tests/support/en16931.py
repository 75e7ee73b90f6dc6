"""The arithmetic of EN 16931 over a UBL document, from the standard's own rules and nothing of ours.

Rules are named as in the standard: BR-CO-10 and so on. Amounts are decimals of the XML text.
"""

import xml.etree.ElementTree as Xml
from collections import defaultdict
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

NAMES = {
    "cac": "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2",
    "cbc": "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2",
}
FREE = {"Z": "BR-Z", "E": "BR-E", "AE": "BR-AE", "K": "BR-IC", "G": "BR-G", "O": "BR-O"}
"""Codes under which no tax is charged, with the family of their rules."""

MONEY = (
    "LineExtensionAmount",
    "TaxExclusiveAmount",
    "TaxInclusiveAmount",
    "PayableAmount",
    "TaxableAmount",
    "TaxAmount",
)


class Group(NamedTuple):
    """A row of the tax breakdown (BG-23)."""

    code: str
    rate: Decimal
    base: Decimal
    tax: Decimal


def half_up(amount: Decimal, digits: int) -> Decimal:
    return amount.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def breakdown(root: Xml.Element) -> list[Group]:
    return [
        Group(
            part.findtext("cac:TaxCategory/cbc:ID", "", NAMES),
            _number(part, "cac:TaxCategory/cbc:Percent"),
            _number(part, "cbc:TaxableAmount"),
            _number(part, "cbc:TaxAmount"),
        )
        for part in root.findall("cac:TaxTotal/cac:TaxSubtotal", NAMES)
    ]


def broken_rules(root: Xml.Element, digits: int) -> list[str]:
    """The rules that a quotation breaks; its amounts have so many decimals."""
    return [*_totals(root), *_decimals(root, digits), *_lines(root, digits), *_groups(root, digits)]


def _totals(root: Xml.Element) -> Iterator[str]:
    total = root.find("cac:QuotedMonetaryTotal", NAMES)
    assert total is not None
    lines = sum(_number(line, "cbc:LineExtensionAmount") for line in _items(root))
    if lines != _number(total, "cbc:LineExtensionAmount"):
        yield "BR-CO-10"
    allowances = charges = Decimal(0)
    for one in root.findall("cac:AllowanceCharge", NAMES):
        if one.findtext("cbc:ChargeIndicator", "", NAMES) == "true":
            charges += _number(one, "cbc:Amount")
        else:
            allowances += _number(one, "cbc:Amount")
    without = _number(total, "cbc:TaxExclusiveAmount")
    if without != _number(total, "cbc:LineExtensionAmount") - allowances + charges:
        yield "BR-CO-13"
    tax = _number(root, "cac:TaxTotal/cbc:TaxAmount")
    if tax != sum(group.tax for group in breakdown(root)):
        yield "BR-CO-14"
    if _number(total, "cbc:TaxInclusiveAmount") != without + tax:
        yield "BR-CO-15"
    if _number(total, "cbc:PayableAmount") != _number(total, "cbc:TaxInclusiveAmount"):
        yield "BR-CO-16"
    if not breakdown(root):
        yield "BR-CO-18"


def _decimals(root: Xml.Element, digits: int) -> Iterator[str]:
    for name in MONEY:
        for amount in root.iterfind(f".//cbc:{name}", NAMES):
            if Decimal(amount.text or "") != half_up(Decimal(amount.text or ""), digits):
                yield "BR-DEC"


def _lines(root: Xml.Element, digits: int) -> Iterator[str]:
    for line in _items(root):
        codes = line.findall("cac:Item/cac:ClassifiedTaxCategory", NAMES)
        if len(codes) != 1:
            yield "BR-CO-04"
        for code in codes:
            yield from _rate_of_code(code)
        quantity, unit_price = _number(line, "cbc:Quantity"), _number(line, "cac:Price/cbc:PriceAmount")
        allowance = _number(line, "cac:AllowanceCharge/cbc:Amount")
        if _number(line, "cbc:LineExtensionAmount") != half_up(quantity * unit_price, digits) - allowance:
            yield "PEPPOL-EN16931-R120"
        if unit_price < 0:
            yield "BR-27"


def _rate_of_code(category: Xml.Element) -> Iterator[str]:
    code, rate = category.findtext("cbc:ID", "", NAMES), category.findtext("cbc:Percent", None, NAMES)
    if code not in (*FREE, "S"):
        yield "BR-CL-18"
    elif code == "O":
        yield from () if rate is None else ("BR-O-05",)
    elif rate is None:
        yield "BR-48"
    elif (code == "S") != (Decimal(rate) > 0):
        yield "BR-S-05" if code == "S" else f"{FREE[code]}-05"


def _groups(root: Xml.Element, digits: int) -> Iterator[str]:
    on_lines: defaultdict[tuple[str, Decimal], Decimal] = defaultdict(Decimal)
    for line in _items(root):
        category = line.find("cac:Item/cac:ClassifiedTaxCategory", NAMES)
        if category is not None:
            key = category.findtext("cbc:ID", "", NAMES), _number(category, "cbc:Percent")
            on_lines[key] += _number(line, "cbc:LineExtensionAmount")
    found = breakdown(root)
    keys = [(group.code, group.rate) for group in found]
    if len(keys) != len(set(keys)):
        yield "BG-23"
    for code, _ in on_lines.keys() - set(keys):
        yield f"{FREE.get(code, 'BR-S')}-01"
    for group, part in zip(found, root.findall("cac:TaxTotal/cac:TaxSubtotal/cac:TaxCategory", NAMES), strict=True):
        rules = FREE.get(group.code, "BR-S")
        yield from _rate_of_code(part)
        if group.base != on_lines[group.code, group.rate]:
            yield f"{rules}-08"
        if group.tax != half_up(group.base * group.rate / 100, digits):
            yield "BR-CO-17"
        if group.code in FREE and group.tax:
            yield f"{rules}-09"
        has_reason = bool(part.findtext("cbc:TaxExemptionReason", "", NAMES))
        if has_reason != (group.code not in ("S", "Z")):
            yield f"{rules}-10"


def _items(root: Xml.Element) -> list[Xml.Element]:
    return root.findall("cac:QuotationLine/cac:LineItem", NAMES)


def _number(element: Xml.Element, path: str) -> Decimal:
    return Decimal(element.findtext(path, "0", NAMES))
