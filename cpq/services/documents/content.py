"""The content of a document about one quote version, as JSON values: printed, attached and stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.errors import bad_field, next_call
from cpq.base.money import amount
from cpq.base.text import canonical_json, to_wire
from cpq.domain.billing_periods import is_recurring
from cpq.domain.catalog.products import SUPPLY
from cpq.domain.pricing.period_prices import PeriodPrice, period_prices
from cpq.domain.pricing.rate_cards import RateCard
from cpq.domain.pricing.request import mean_quantity
from cpq.domain.pricing.result import MIXED, PricedLine
from cpq.domain.quotes.lifecycle import local_day
from cpq.domain.quotes.quote import Pricing, Quote, QuoteLine, QuoteVersion, line_id
from cpq.domain.quotes.special_terms import CUSTOM, CustomItem
from cpq.domain.translations import lookup, translated
from cpq.services.catalog.product_sheets import Sheet, sheets
from cpq.services.documents import agreement_change, order_content
from cpq.services.documents.design import ORDER_CONFIRMATION, TEMPLATES, Design
from cpq.services.documents.scan_code import make_code
from cpq.services.quotes import repository
from cpq.services.quotes.views import period_view, tax_groups
from cpq.services.usage_views import usage_view
from cpq.storage.schema import tables

FORMAT = "quotewright-quote/1"
"""The format of the content, which customers' programs read."""

UNCOMPARED = ("issued_at", "issued_on", "stamp", "number", "code")
"""Fields that a new pricing at the same price, or an approval, may change, or that older documents do not have."""

WITHOUT_LINES = ("executive_summary",)
"""Templates that do not list every line, so that the limit of lines does not apply."""

Content = dict[str, Any]


def gather(tx: Tx, found: Quote, template: str, design: Design, stamp: str | None, locale: str) -> Content:
    """The content of a document in the language of its locale, read in a fixed number of queries.

    Costs, margins, policies and approvals are left out, and so are attributes that the seller does not show.
    VALIDATION_ERROR when the document would list too many lines.
    """
    found = with_lines(tx, found)
    order = {"order": order_content.of_quote(tx, found)} if template == ORDER_CONFIRMATION else {}
    _require_few_lines(tx, found, template)
    attributes_shown = design.brand.attributes_shown
    pricings = repository.pricings(tx, found)
    _require_alternatives(found, template, len(pricings))
    tags = lookup(locale)
    named = {line.product_id for line in found.lines}
    named |= {one["product_id"] for line in found.lines for one in line.components or ()}
    sheets_found = sheets(tx, named, tags)
    products = {id_: _product(sheet, attributes_shown) for id_, sheet in sorted(sheets_found.items())}
    products |= {line.product_id: _custom(line.custom) for line in found.as_draft().lines if line.custom}
    header = {**_header(found), "stamp": stamp}
    lines = [_line(found, row, _shown(products, row.product_id) | {*attributes_shown}, tags) for row in found.lines]
    if design.brand.verify_url:
        header["code"] = make_code(tx.tenant_id, header, lines)
    return {
        "format": FORMAT,
        "locale": locale,
        "quote": header,
        "buyer": _buyer(tx, found),
        "lines": lines,
        "option_sets": [_priced_set(pricing, found) for pricing in pricings],
        "products": products,
        "attributes_shown": sorted(attributes_shown),
        **order,
    }


def says_the_same(content: Mapping[str, Any], found: Quote) -> bool:
    """Whether a document still matches its version: the price, the terms and every line."""
    printed = {line["number"]: line["attributes"] for line in content["lines"]}
    lines = []
    # Compare the attributes that the document shows: a new display setting is no change of the quote.
    always = {*content.get("attributes_shown", ())}  # Older documents do not have it.
    tags = lookup(content.get("locale", ""))  # Nor this: their texts are untranslated.
    for row in found.lines:
        shown = _shown(content["products"], row.product_id) | {*printed.get(row.number, ())} | always
        lines.append(_line(found, row, shown, tags))
    # Fields that came later are not in older documents, which remain what they were.
    header = {name: value for name, value in _header(found).items() if name in content["quote"]}
    return canonical_json(_compared(content["quote"], content["lines"])) == canonical_json(_compared(header, lines))


def with_lines(tx: Tx, found: Quote) -> Quote:
    return found if found.lines else replace(found, lines=repository.lines(tx, found.id, found.version.number))


def issued_at(version: QuoteVersion) -> datetime:
    """The time of the version: when it was priced, else created."""
    return version.priced_at or version.created_at


def _require_few_lines(tx: Tx, found: Quote, template: str) -> None:
    most = tx.settings.pdf_lines_max
    if template not in WITHOUT_LINES and len(found.lines) > most:
        raise bad_field(
            "/quote_id",
            f"The quote has {len(found.lines):,} lines; a document lists at most {most:,}.",
            maximum=most,
            hint="Use the template executive_summary, or `cpq export quote --format csv`.",
        )


def _require_alternatives(found: Quote, template: str, sets: int) -> None:
    if template == "comparison" and sets < 2:
        raise bad_field(
            "/template",
            "The quote has no alternatives: a comparison needs at least two option sets.",
            allowed=[name for name in TEMPLATES if name != template],
            hint="Use another template, or give the lines of each alternative an option_set with quote_update.",
            next_call=next_call("quote_pdf", quote_id=found.id, template="standard"),
        )


def _compared(header: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"quote": {name: value for name, value in header.items() if name not in UNCOMPARED}, "lines": lines}


def _header(found: Quote) -> Content:
    version = found.version
    moment = issued_at(version)
    return {
        "id": found.id,
        "number": found.number,
        "version": version.number,
        "deal_id": version.deal_id,
        "currency": version.currency,
        "issued_at": to_wire(moment),
        "issued_on": local_day(moment, found.time_zone).isoformat(),
        "valid_until": version.valid_until.isoformat(),
        "term_months": version.term_months,
        "start_date": to_wire(version.start_date),
        "end_date": to_wire(found.end_date),
        "payment_terms": version.payment_terms,
        "notes": version.notes,
        "option_set": version.option_set,
        "tax_note": version.tax_note,
        "fingerprint": version.fingerprint,
        **agreement_change.of_quote(found),
    }


def _buyer(tx: Tx, found: Quote) -> Content:
    names = ("id", "name", "contact", "address", "country", "tax_status", "tax_id", "purchase_order")
    mine = tx.own(tables.account) & (tables.account.c.id == found.account_id)
    row = tx.connection.execute(sa.select(*(tables.account.c[name] for name in names)).where(mine)).one()
    return dict(zip(names, row, strict=True))


def _shown(products: Mapping[str, Any], product_id: str) -> set[str]:
    """The attributes of a line that a customer may see: chosen options, and shown attributes of the product."""
    product = products.get(product_id, {})
    return {*product.get("option_labels", ()), *product.get("attributes", ())}


def _line(found: Quote, row: QuoteLine, shown: Collection[str], tags: tuple[str, ...]) -> Content:
    """A line of the document, with only those of its attributes that are shown."""
    line: Content = {
        "number": row.number,
        "line_id": line_id(found.id, row.number),
        "product_id": row.product_id,
        "product_name": translated(row.product_names, tags, row.product_name),
        "notes": row.notes,
        "option_set": row.option_set,
        "attributes": {name: value for name, value in row.attributes.items() if name in shown},
        **agreement_change.of_line(row),
    }
    if row.special and row.special.has_dates:
        # The reason for a price is the seller's; the price itself is a discount like any other.
        draft, asked = found.as_draft(), row.as_draft()
        line["own_term"] = {
            "start_date": to_wire(row.special.start_date or draft.start_date),
            "end_date": to_wire(draft.last_day_of(asked)),
            "term_months": draft.months_of(asked),
        }
    if row.components:
        line["components"] = [{"product_id": one["product_id"], "quantity": one["quantity"]} for one in row.components]
    if row.usage:
        line["usage"] = _usage(row.usage, found.version.currency)
    if row.ramp:
        line["ramp"] = [
            {
                "months": segment.months,
                "quantity": segment.quantity or row.quantity,
                "uplift_pct": amount(segment.uplift),
                **({} if segment.override is None else {"unit_price": amount(segment.override)}),
                **({"discount_pct": amount(segment.discount)} if segment.discount else {}),
            }
            for segment in row.ramp
        ]
        units, months = mean_quantity(row.quantity, row.ramp)
        line["unit_months"] = {"units": units, "months": months}
    return line


def _usage(card: RateCard, currency: str) -> Content:
    """The rate card, commitment and estimate, as data: a document says them in its own language."""
    view = usage_view(card, currency)
    numbers = {name: value for name, value in view["rate_card"].items() if name not in ("rates", "in_words")}
    return {**view, "rate_card": numbers, "per": card.per, "in_figures": card.in_figures}


def _priced_set(pricing: Pricing, found: Quote) -> Content:
    # The steps, the largest part of a result, are needed only where a price recurs.
    recurs = any(is_recurring(line.billing_period) for line in pricing.amounts.lines)
    priced = pricing.result if recurs else pricing.amounts
    prices = period_prices(pricing.request, priced.lines) if recurs else {}
    choices = {line["id"]: line.get("choices", {}) for line in pricing.request_values["lines"]}
    taxes = _line_taxes(pricing)
    models = {str(row.number): row.sold_as for row in found.lines}
    credits_ = {str(row.number): row.credit for row in found.lines} if found.version.agreement else {}
    return {
        "name": pricing.option_set or None,
        "is_selected": pricing.option_set == (found.version.option_set or ""),
        "subtotal": amount(priced.subtotal),
        "discount_total": amount(priced.discount_total),
        "net": amount(priced.net),
        "tax_total": amount(priced.tax_total),
        "total": amount(priced.total),
        **({"credit_total": amount(sum([credits_[line.id] for line in priced.lines]))} if credits_ else {}),
        # The format of the content has had `rate_pct` from its beginning.
        "tax_groups": [{**group, "rate_pct": group["rate"]} for group in tax_groups(priced.tax_groups)],
        "lines": [
            _priced_line(line, choices[line.id], prices.get(line.id), models[line.id])
            | taxes.get(line.tax_category, {})
            | (agreement_change.of_price(line, credits_[line.id]) if credits_ else {})
            for line in priced.lines
        ],
    }


def _line_taxes(pricing: Pricing) -> dict[str, Content]:
    """The tax group of a line by its tax category, and its taxes where it bears several.

    A bundle of several groups has none, nor a price without codes.
    """
    request, groups = pricing.request_values, pricing.amounts.tax_groups
    rates = request["tax_rates"] if request.get("tax_status", "taxable") == "taxable" else {}
    coded = [(category, code, rates.get(category, 0)) for category, code in request.get("tax_codes", {}).items()]
    if len(groups) == 1:  # A bundle of several categories is in it, too.
        coded += [(MIXED, group.code, group.rate) for group in groups if group.code]
    found: dict[str, Content] = {
        category: {"tax_code": code, "tax_rate_pct": amount(rate)} for category, code, rate in coded
    }
    for category, taxes in pricing.request.taxes.items() if rates else ():
        found[category]["taxes"] = [
            {"name": tax.name, "tax_code": tax.code, "tax_rate_pct": amount(tax.rate)} for tax in taxes
        ]
    return found


def _priced_line(line: PricedLine, choices: Mapping[str, str], price: PeriodPrice | None, model: str) -> Content:
    return {
        "number": int(line.id),
        "quantity": line.quantity,
        "tax_category": line.tax_category,
        "unit_price": amount(line.base_unit_price),
        "net_unit_price": amount(line.unit_price),
        **period_view(line.billing_period, price, model),
        "net_unit_price_per_period": None if price is None else amount(price.net_unit_price),
        "subtotal": amount(line.regular),
        "discount_pct": amount(line.discount),
        "discount_amount": amount(line.discount_amount),
        "line_total": amount(line.net),
        "configuration": dict(choices),
    }


def _product(sheet: Sheet, attributes_shown: Collection[str]) -> Content:
    return {
        "sku": sheet.sku,
        "unit": sheet.unit,
        "name": sheet.name,
        "description": sheet.description,
        "product_type": sheet.product_type,
        "category": sheet.category,
        "category_name": sheet.category_name,
        "supply": sheet.attributes.get(SUPPLY),
        "specs": {name: _spec(value, sheet.units.get(name)) for name, value in sheet.specs.items()},
        "attributes": _only(sheet.attributes, attributes_shown),
        "option_labels": dict(sheet.option_labels),
        "value_names": {name: dict(named) for name, named in sheet.value_names.items()},
        "components": [{"product_id": part.product_id, "quantity": part.quantity} for part in sheet.components],
        **({"choices_of_components": list(sheet.choices_of_components)} if sheet.choices_of_components else {}),
    }


def _custom(item: CustomItem) -> Content:
    """An item of no catalogue, as a product is printed."""
    return {
        "sku": "",
        "unit": item.unit,
        "name": item.name,
        "description": item.description or "",
        "product_type": "simple",
        "category": item.category or CUSTOM,
        "category_name": item.category or "",
        "supply": None,
        "is_custom": True,
        "specs": {},
        "attributes": {},
        "option_labels": {},
        "value_names": {},
        "components": [],
    }


def _spec(value: object, unit: str | None) -> Content:
    return {"value": value, "unit": unit}


def _only(values: Mapping[str, Any], names: Iterable[str]) -> Content:
    return {name: values[name] for name in names if values.get(name) is not None}
