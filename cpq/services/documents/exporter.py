"""A quote in other formats than PDF: JSON and UBL as attached to the PDF, HTML, and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from cpq.app.transaction import Tx
from cpq.base.text import shown, to_wire, without_formula
from cpq.services.documents.content import gather
from cpq.services.documents.design import Design
from cpq.services.documents.document_request import DocumentRequest, locale_of, require_template
from cpq.services.documents.html import compose, whole
from cpq.services.documents.stamp import stamp_of
from cpq.services.documents.ubl import quotation_xml
from cpq.services.quotes import repository

FORMATS = ("pdf", "json", "ubl", "csv", "html")

COLUMNS = (
    "quote", "line", "option_set", "sku", "product_id", "product_name", "category", "billing_period", "selling_model",
    "unit_price_per_period", "periods", "quantity", "currency", "unit_price", "subtotal", "discount_pct",
    "discount_amount", "line_total", "tax_category", "tax_code", "tax_rate_pct", "notes", "stamp",
    "valid_until", "taxes", "usage_unit", "rate_card", "committed_quantity", "committed_amount", "committed_per",
    "expected_quantity", "estimate_per_period", "unit", "start_date", "end_date", "ramp",
)  # fmt: skip

CHANGE_COLUMNS = ("agreement_id", "kind", "effective_date", "action", "quantity_before", "quantity_after", "credit",
    "not_credited", "difference",
)  # fmt: skip
"""Further columns of a quote that changes an agreement; the differences add up to its net."""


def export(tx: Tx, request: DocumentRequest, form: str, design: Design) -> str:
    """A quote version as text in one of the formats."""
    require_template(request.template)
    found = repository.load(tx, request.quote_id, version=request.version)
    template = request.template if form == "html" else "executive_summary"  # Data has no limit of lines.
    stamp = stamp_of(tx, found)
    locale = locale_of(tx, found, request, design)
    content = gather(tx, found, template, design, stamp, locale)
    if form == "json":
        return json.dumps(to_wire(content), ensure_ascii=False, indent=2) + "\n"
    if form == "ubl":
        return quotation_xml(design.brand, content)
    if form == "csv":
        return _csv(content)
    return whole(compose(design, content, request.template, locale, stamp))


def _csv(content: Mapping[str, Any]) -> str:
    """A row for each line of each option set; amounts are plain numbers."""
    asked = {line["number"]: line for line in content["lines"]}
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\r\n")
    change = content["quote"].get("agreement", {})
    columns = (*COLUMNS, *CHANGE_COLUMNS) if change else COLUMNS
    writer.writerow(columns)
    for one in content["option_sets"]:
        for priced in one["lines"]:
            line = asked[priced["number"]]
            product = content["products"].get(line["product_id"], {})
            values = {
                **product,
                **line,
                **priced,
                **change,
                **line.get("change", {}),
                "quote": content["quote"]["number"],
                "line": priced["number"],
                "option_set": one["name"],
                "category": product.get("category"),
                "currency": content["quote"]["currency"],
                "stamp": content["quote"]["stamp"],
                "valid_until": content["quote"]["valid_until"],
                "taxes": "; ".join(f"{tax['name']} {tax['tax_rate_pct']}" for tax in priced.get("taxes", ())),
                **{name: line.get("own_term", {}).get(name) for name in ("start_date", "end_date")},
                "ramp": json.dumps(to_wire(line["ramp"])) if "ramp" in line else None,
                **_usage(line.get("usage")),
            }
            writer.writerow([_cell(values.get(name)) for name in columns])
    return file.getvalue()


def _usage(usage: Mapping[str, Any] | None) -> dict[str, Any]:
    """The columns of a line that is charged by its use; no estimate is in any total."""
    if usage is None:
        return {}
    commitment = usage.get("commitment", {})
    return {
        "usage_unit": usage["rate_card"]["unit"],
        "rate_card": usage["in_figures"],
        "committed_quantity": commitment.get("quantity"),
        "committed_amount": commitment.get("amount"),
        "committed_per": commitment.get("per"),
        "expected_quantity": usage.get("expected_quantity"),
        "estimate_per_period": usage["rate_card"].get("estimate_per_period"),
    }


def _cell(value: object) -> object:
    if isinstance(value, Decimal):
        return f"{value:f}"
    return without_formula(shown(value)) if isinstance(value, str) else value
