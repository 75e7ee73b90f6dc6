"""The quote as an OASIS UBL 2.1 Quotation, for buyers' programs that read business documents."""

from __future__ import annotations

import xml.etree.ElementTree as Xml
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from cpq.base.money import minor_digits
from cpq.services.documents.design import Brand, Company
from cpq.services.documents.printed_quote import in_printed_order

QUOTATION = "urn:oasis:names:specification:ubl:schema:xsd:Quotation-2"
ORDER = "urn:oasis:names:specification:ubl:schema:xsd:Order-2"
CAC = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"
CBC = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"

EACH = "C62"
UNIT_CODES = {
    "hour": "HUR",
    "day": "DAY",
    "week": "WEE",
    "month": "MON",
    "quarter": "QAN",
    "half-year": "SAN",
    "year": "ANN",
    "metre": "MTR",
    "square metre": "MTK",
    "kilogram": "KGM",
    "litre": "LTR",
}
"""By the unit of a product, as UN/ECE Recommendation 20 lists them."""

"""UN/ECE Recommendation 20: one."""

TAX_CODES = {"exempt": "E", "reverse_charge": "AE"}
"""UNCL5305 codes of buyers who pay no tax; others have the standard rate or a zero rate."""

OUTSIDE_SCOPE = "O"
"""The code without a rate: where there is no tax, there is no rate of it either (BR-O-05)."""

VAT = "VAT"
"""The tax scheme of lines that bear one tax. Of several taxes each is a scheme by its name: UBL has room for them,
while EN 16931 knows one tax alone."""

CREDIT_REASON = "Credit for what was agreed before"

Content = Mapping[str, Any]


def quotation_xml(brand: Brand, content: Content) -> str:
    """The selected option set; the order of elements is that of the schema."""
    Xml.register_namespace("", QUOTATION)
    Xml.register_namespace("cac", CAC)
    Xml.register_namespace("cbc", CBC)
    return _Writer(content).write(brand)


def order_xml(brand: Brand, content: Content) -> str:
    """The order of an accepted quote, as an OASIS UBL 2.1 Order with what is due on each day."""
    Xml.register_namespace("", ORDER)
    Xml.register_namespace("cac", CAC)
    Xml.register_namespace("cbc", CBC)
    return _Writer(content).write_order(brand, content["order"])


class _Writer:
    def __init__(self, content: Content) -> None:
        self.quote: Content = content["quote"]
        self.buyer: Content = content["buyer"]
        self.products: Mapping[str, Content] = content["products"]
        self.asked = {line["number"]: line for line in content["lines"]}
        self.chosen: Content = content["option_sets"][0]
        self.currency: str = self.quote["currency"]

    def write(self, brand: Brand) -> str:
        quote, root = self.quote, Xml.Element(f"{{{QUOTATION}}}Quotation")
        _text(root, "UBLVersionID", "2.1")
        _text(root, "ID", f"{quote['id']}-v{quote['version']}")
        _text(root, "IssueDate", quote["issued_on"])
        stamp = quote.get("stamp")  # Older documents do not have it.
        held = f"{stamp.replace('_', ' ').upper()}: this version may not go to a customer." if stamp else None
        for note in filter(None, (held, quote["notes"], quote["tax_note"], f"fingerprint {quote['fingerprint']}")):
            _text(root, "Note", note)
        _text(root, "PricingCurrencyCode", self.currency)
        _text(root, "LineCountNumeric", str(len(self.chosen["lines"])))
        _text(_part(root, "ValidityPeriod"), "EndDate", quote["valid_until"])
        # The number for people; older documents do not have it.
        for reference in filter(None, (quote.get("number"), quote["deal_id"])):
            _text(_part(root, "AdditionalDocumentReference"), "ID", reference)
        if change := quote.get("agreement"):
            contract = _part(root, "Contract")
            _text(contract, "ID", change["agreement_id"])
            _text(contract, "ContractType", change["kind"])
            _text(_part(contract, "ValidityPeriod"), "StartDate", change["effective_date"])
        _seller(_part(_part(root, "SellerSupplierParty"), "Party"), brand.company)
        self._buyer(_part(_part(root, "BuyerCustomerParty"), "Party"))
        _text(_part(root, "TransactionConditions"), "Description", f"Payment terms: {quote['payment_terms']}")
        self._taxes(root)
        self._totals(_part(root, "QuotedMonetaryTotal"))
        for number, line in enumerate(in_printed_order(self.products, self.asked, self.chosen["lines"]), 1):
            self._line(_part(root, "QuotationLine"), number, line)
        return _written(root)

    def write_order(self, brand: Brand, order: Content) -> str:
        quote, root = self.quote, Xml.Element(f"{{{ORDER}}}Order")
        _text(root, "UBLVersionID", "2.1")
        _text(root, "ID", order["number"])
        _text(root, "SalesOrderID", order["id"])
        _text(root, "IssueDate", order["accepted_on"])
        for note in filter(None, (quote["notes"], quote["tax_note"], f"fingerprint {quote['fingerprint']}")):
            _text(root, "Note", note)
        _text(root, "DocumentCurrencyCode", self.currency)
        if self.buyer.get("purchase_order"):
            _text(root, "CustomerReference", self.buyer["purchase_order"])
        _text(root, "LineCountNumeric", str(len(self.chosen["lines"])))
        _text(_part(root, "QuotationDocumentReference"), "ID", f"{quote['id']}-v{quote['version']}")
        contract = _part(root, "Contract")
        _text(contract, "ID", order["agreement_id"])
        _text(contract, "ContractType", order["kind"])
        _text(_part(contract, "ValidityPeriod"), "StartDate", order["effective_date"])
        self._buyer(_part(_part(root, "BuyerCustomerParty"), "Party"))
        _seller(_part(_part(root, "SellerSupplierParty"), "Party"), brand.company)
        self._due_days(root, order["schedule"])
        _text(_part(root, "TransactionConditions"), "Description", f"Payment terms: {quote['payment_terms']}")
        self._taxes(root)
        self._totals(_part(root, "AnticipatedMonetaryTotal"))
        for number, line in enumerate(in_printed_order(self.products, self.asked, self.chosen["lines"]), 1):
            self._line(_part(root, "OrderLine"), number, line, is_order=True)
        return _written(root)

    def _due_days(self, root: Xml.Element, dues: Iterable[Content]) -> None:
        amounts: dict[str, Decimal] = {}
        for due in dues:
            amounts[due["due_date"]] = amounts.get(due["due_date"], Decimal(0)) + due["amount"]
        for day, total in sorted(amounts.items()):
            terms = _part(root, "PaymentTerms")
            _text(terms, "Note", "Before tax")
            self._amount(terms, "Amount", total)
            _text(terms, "InstallmentDueDate", day)

    def _buyer(self, party: Xml.Element) -> None:
        _text(_part(party, "PartyIdentification"), "ID", self.buyer["id"])
        _text(_part(party, "PartyName"), "Name", self.buyer["name"])
        address = _part(party, "PostalAddress")
        for line in (self.buyer["address"] or "").splitlines():
            _text(_part(address, "AddressLine"), "Line", line)
        _text(_part(address, "Country"), "IdentificationCode", self.buyer["country"])
        if self.buyer.get("tax_id"):  # Older documents do not have it.
            _tax_scheme(party, self.buyer["tax_id"])
        if self.buyer["contact"]:
            _text(_part(party, "Contact"), "Name", self.buyer["contact"])

    def _taxes(self, root: Xml.Element) -> None:
        total = _part(root, "TaxTotal")
        self._amount(total, "TaxAmount", self.chosen["tax_total"])
        for group in self.chosen["tax_groups"]:
            part = _part(total, "TaxSubtotal")
            self._amount(part, "TaxableAmount", group["base"])
            self._amount(part, "TaxAmount", group["tax"])
            rate, code, reason = group["rate_pct"], group.get("category_code"), group.get("reason")
            if code is None:  # Prices that were stored before there were codes.
                code = TAX_CODES.get(self.buyer["tax_status"]) or ("S" if rate else "Z")
                reason = self.quote["tax_note"]
            _tax_category(_part(part, "TaxCategory"), code, rate, reason, scheme=group.get("tax_name", VAT))

    def _totals(self, total: Xml.Element) -> None:
        self._amount(total, "LineExtensionAmount", self.chosen["net"])
        self._amount(total, "TaxExclusiveAmount", self.chosen["net"])
        self._amount(total, "TaxInclusiveAmount", self.chosen["total"])
        self._amount(total, "PayableAmount", self.chosen["total"])

    def _line(self, line: Xml.Element, number: int, priced: Content, *, is_order: bool = False) -> None:
        asked = self.asked[priced["number"]]
        if not is_order:  # A line of an order has no number of its own, only its item has an id.
            _text(line, "ID", str(number))
        item = _part(line, "LineItem")
        _text(item, "ID", asked["line_id"])
        change = asked.get("change")
        # UBL has no rate card; the whole of it is in the JSON.
        usage = asked["usage"]["in_figures"] if "usage" in asked else None
        for note in filter(None, (asked["notes"], usage, _moved(change) if change else None)):
            _text(item, "Note", note)
        # The quantity of a ramp differs by step, so it is written as one unit at the full price.
        is_ramp = "ramp" in asked
        product = self.products.get(asked["product_id"], {})
        unit = EACH if is_ramp else UNIT_CODES.get(product.get("unit") or "", EACH)
        # A line that ends sells nothing any more: all that is left of it is its credit.
        quantity = change["quantity_after"] if change else 1 if is_ramp else priced["quantity"]
        _text(item, "Quantity", f"{Decimal(quantity):f}", unitCode=unit)
        self._amount(item, "LineExtensionAmount", priced.get("difference", priced["line_total"]))
        if priced["discount_amount"]:
            allowance = _part(item, "AllowanceCharge")
            _text(allowance, "ChargeIndicator", "false")
            self._amount(allowance, "Amount", priced["discount_amount"])
            self._amount(allowance, "BaseAmount", priced["subtotal"])
        if priced.get("credit"):
            allowance = _part(item, "AllowanceCharge")
            _text(allowance, "ChargeIndicator", "false")
            _text(allowance, "AllowanceChargeReason", CREDIT_REASON)
            self._amount(allowance, "Amount", priced["credit"])
        price = _part(item, "Price")
        unit_price = Decimal(priced["subtotal"] if is_ramp else priced["unit_price"])
        _text(price, "PriceAmount", f"{unit_price:f}", currencyID=self.currency)
        _text(price, "BaseQuantity", "1", unitCode=unit)
        self._item(_part(item, "Item"), asked, priced)

    def _item(self, item: Xml.Element, asked: Content, priced: Content) -> None:
        product = self.products.get(asked["product_id"])
        if product and product["description"]:
            _text(item, "Description", product["description"])
        _text(item, "Name", asked["product_name"])
        _text(_part(item, "SellersItemIdentification"), "ID", (product and product["sku"]) or asked["product_id"])
        for tax in priced.get("taxes", ()):
            category = _part(item, "ClassifiedTaxCategory")
            _tax_category(category, tax["tax_code"], tax["tax_rate_pct"], scheme=tax["name"])
        if "tax_code" in priced and "taxes" not in priced:
            _tax_category(_part(item, "ClassifiedTaxCategory"), priced["tax_code"], priced["tax_rate_pct"])
        for name, value in priced["configuration"].items():
            chosen = _part(item, "AdditionalItemProperty")
            _text(chosen, "Name", name)
            _text(chosen, "Value", value)

    def _amount(self, parent: Xml.Element, name: str, amount: Decimal | int) -> None:
        digits = minor_digits(self.currency)
        _text(parent, name, f"{Decimal(amount):.{digits}f}", currencyID=self.currency)


def _written(root: Xml.Element) -> str:
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True).replace("'", '"', 4) + "\n"


def _moved(change: Content) -> str:
    before, after = (f"{Decimal(change[name]):f}" for name in ("quantity_before", "quantity_after"))
    return f"{change['action']}: {before} before, {after} after"


def _tax_category(
    category: Xml.Element, code: str, rate: Decimal | int, reason: str | None = None, *, scheme: str = VAT
) -> None:
    _text(category, "ID", code)
    if code != OUTSIDE_SCOPE:
        _text(category, "Percent", f"{Decimal(rate):f}")
    if reason:
        _text(category, "TaxExemptionReason", reason)
    _text(_part(category, "TaxScheme"), "ID", scheme)


def _seller(party: Xml.Element, company: Company) -> None:
    _text(_part(party, "PartyName"), "Name", company.name)
    address = _part(party, "PostalAddress")
    for line in company.address.splitlines():
        _text(_part(address, "AddressLine"), "Line", line)
    _text(_part(address, "Country"), "IdentificationCode", company.country)
    _tax_scheme(party, company.tax_id)
    contact = _part(party, "Contact")
    if company.contact:
        _text(contact, "Name", company.contact.name)
    _text(contact, "Telephone", company.phone)
    _text(contact, "ElectronicMail", company.email)


def _tax_scheme(party: Xml.Element, number: str) -> None:
    scheme = _part(party, "PartyTaxScheme")
    _text(scheme, "CompanyID", number)
    _text(_part(scheme, "TaxScheme"), "ID", "VAT")


def _part(parent: Xml.Element, name: str) -> Xml.Element:
    return Xml.SubElement(parent, f"{{{CAC}}}{name}")


def _text(parent: Xml.Element, name: str, text: str, **attributes: str) -> None:
    Xml.SubElement(parent, f"{{{CBC}}}{name}", attributes).text = text
