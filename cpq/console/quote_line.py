"""Edit a draft: one line with its options, a new line from the catalogue, the terms. Each form is one change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from starlette.responses import Response

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.console import notices
from cpq.console.draft_form import OPTION, TERMS, DraftForm
from cpq.console.formats import money, spelled, words
from cpq.console.forms import FIELDS_MAX, form_key, identifier, typed, whole
from cpq.console.visit import Visit, quote_address
from cpq.domain.quotes import special_terms
from cpq.domain.quotes.draft_changes import CLEARABLE, Changes
from cpq.domain.quotes.special_terms import CUSTOM
from cpq.services import agreements, catalog, quotes
from cpq.services.catalog.views import ProductDetail
from cpq.services.quotes import DraftLine

PRODUCTS = 20
"""Products on one page of a search."""

ITEM = {"description": 2000, "unit": 64, "category": 64, "tax_category": 64}
"""The texts of an item of no catalogue beside its name, with their lengths."""

_SHOWN_AS_PAGE = (Code.FORBIDDEN, Code.NOT_FOUND, Code.UNAVAILABLE, Code.TIMEOUT)


def new(visit: Visit) -> Response:
    """Choose a product, then its quantity and options."""
    product_id = visit.query("product_id")
    if not product_id:
        return _products(visit)
    return _line_form(visit, identifier("product_id", product_id), None, DraftForm({"quantity": "1", **chosen(visit)}))


def add(visit: Visit) -> Response:
    quote_id, form = visit.named("quote_id"), DraftForm(visit.form)
    product_id = identifier("product_id", visit.form.get("product_id", ""))
    line = read_line(form, visit.app.read_unaudited(visit.call, lambda tx: _sold(tx, product_id, None)))
    if product_id == CUSTOM:
        item = special_terms.CustomItem(**_item(form))
        line = line._replace(special=special_terms.changed(line.special, {"custom": item}))
    return _change(
        visit,
        quote_id,
        form,
        Changes(add_lines=[line]),
        lambda status: _line_form(visit, product_id, None, form, status),
    )


def edit(visit: Visit) -> Response:
    line = _line(visit)
    shown = {
        "quantity": spelled(line["quantity"]),
        "selling_model": line["selling_model"],
        "discount_pct": spelled(line["line_discount_pct"]) if line["line_discount_pct"] else "",
        "line_notes": line["notes"] or "",
        **_shown_special(line),
        **(chosen(visit) or {OPTION + name: spelled(value) for name, value in line["attributes"].items()}),
    }
    return _line_form(visit, line["product_id"], line, DraftForm(shown))


def chosen(visit: Visit) -> dict[str, str]:
    """The options in the address, as the configurator gives them to a form."""
    given = visit.request.query_params
    return {name: visit.query(name)[:1000] for name in list(given)[:FIELDS_MAX] if name.startswith(OPTION)}


def change(visit: Visit) -> Response:
    """Change a line, or remove it."""
    quote_id, line, form = visit.named("quote_id"), _line(visit), DraftForm(visit.form)
    if "remove" in visit.form:
        changes = Changes(remove_lines=[line["line_id"]])
    else:
        product = visit.app.read_unaudited(visit.call, lambda tx: _sold(tx, line["product_id"], line))
        read = read_line(form, product)
        special = form.special()
        if "custom" in line:
            special["custom"] = _item(form)
        values: dict[str, Any] = {"discount_pct": read.discount_pct, "notes": read.notes, "special": special}
        if "ramp" not in line:
            values["quantity"] = read.quantity
        if "selling_model" in form.fields:
            values["selling_model"] = read.selling_model
        if product.get("options"):
            values["attributes"] = read.attributes
        changes = Changes(change_lines=[(line["line_id"], values)])
    return _change(
        visit, quote_id, form, changes, lambda status: _line_form(visit, line["product_id"], line, form, status)
    )


def _item(form: DraftForm) -> dict[str, Any]:
    """An item of no catalogue as the form has it; the cost is not in the form of somebody who may not see it."""
    if form.money("unit_price") is None:
        form.problems.setdefault("unit_price", "What one costs, such as 499.50.")
    name = form.text("item_name", 200)
    if not name:
        form.problems["item_name"] = "What it is, such as Freight to Duluth."
    given: dict[str, Any] = {"name": name or ""}
    given |= {one: form.text(f"item_{one}", most) for one, most in ITEM.items() if f"item_{one}" in form.fields}
    return {**given, "cost": form.money("item_cost")} if "item_cost" in form.fields else given


def _shown_special(line: Any) -> dict[str, str]:
    """What was arranged for a line, as the fields of its form show it."""
    amounts, item = {"unit_price": "override_unit_price", "discount_amount": "line_discount_amount"}, {}
    if "custom" in line:
        item = {f"item_{name}": str(line["custom"].get(name) or "") for name in ("name", *ITEM)}
        if "cost" in line["custom"]:
            item["item_cost"] = spelled(line["custom"]["cost"])
        line = {**line, "override_unit_price": line["custom"]["unit_price"]}
    dates = {f"line_{name}": str(line.get(name) or "") for name in ("start_date", "term_months", "end_date")}
    shown = {name: spelled(line[key]) if key in line else "" for name, key in amounts.items()}
    return {**shown, **dates, **item, **_shown_usage(line), "price_reason": line.get("price_reason", "")}


def _shown_usage(line: Any) -> dict[str, str]:
    """What a line commits to, and what is expected to be used."""
    commitment = line.get("commitment", {})
    shown = {f"committed_{name}": spelled(commitment[name]) for name in ("quantity", "amount") if name in commitment}
    per = special_terms.period_word(commitment["per"]) if commitment else ""
    expected = spelled(line["expected_quantity"]) if "expected_quantity" in line else ""
    return {**shown, "committed_per": per, "expected_quantity": expected}


DATES = ("term_months", "start_date", "end_date")


def terms(visit: Visit) -> Response:
    quote = _quote(visit)["quote"]
    shown = {name: "" if quote[name] is None else str(quote[name]) for name in TERMS}
    if quote["term_months"] is not None:
        shown["end_date"] = ""  # It follows from the months.
    if quote["requested_valid_until"] is None:
        shown["valid_until"] = ""  # It follows from the policies.
    return _terms_form(visit, DraftForm(shown))


def change_terms(visit: Visit) -> Response:
    quote_id, form = visit.named("quote_id"), DraftForm(visit.form)
    given = form.terms()
    if not form.fields.keys() & set(DATES):  # The form of a change, whose days are those of its agreement.
        given = {name: value for name, value in given.items() if name not in DATES}
    elif given["term_months"] and given["end_date"]:
        form.problems["end_date"] = "Give the months or the last day, not both."
    changes = Changes(
        terms={name: value for name, value in given.items() if value is not None},
        clear=[name for name, value in given.items() if value is None and name in CLEARABLE],
    )
    return _change(visit, quote_id, form, changes, lambda status: _terms_form(visit, form, status))


def product_of(tx: Tx, product_id: str, currency: str | None = None) -> ProductDetail:
    return catalog.get(tx, product_id, include_relationships=True, currency=currency)


def _sold(tx: Tx, product_id: str, line: Any, currency: str | None = None) -> Any:
    """The product of a line, or an item of no catalogue as if it were one."""
    if product_id != CUSTOM and (line is None or "custom" not in line):
        return product_of(tx, product_id, currency)
    item = {
        "id": product_id,
        "name": line["product_name"] if line else "A new item",
        "sku": "in no catalogue",
        "unit": line["custom"].get("unit") if line else None,
        "is_custom": True,
    }
    return {**item, "quantity_decimals": 3, "default_selling_model": None, "prices": [], "options": [], "rules": []}


def read_line(form: DraftForm, product: ProductDetail) -> DraftLine:
    return DraftLine(
        0,
        product["id"],
        form.quantity(product["quantity_decimals"]),
        form.percent("discount_pct"),
        form.options(product.get("options", [])),
        form.text("line_notes", 10_000),
        selling_model=form.text("selling_model", 64),
        special=special_terms.changed(None, form.special()),
    )


def selling_models(product: ProductDetail, currency: str, form: DraftForm) -> list[tuple[str, str]]:
    """The ways in which a product is sold in a currency, each with its list price; empty when there is no choice."""
    prices: dict[str, set[Decimal]] = {}
    for row in product["prices"]:
        if row["currency"] == currency:
            prices.setdefault(row["pick_with"], set()).add(row["unit_price"])
    # A contract of the account may sell it in a way that no list has.
    known = [*prices, *form.allowed.get("selling_model", ()), form.fields.get("selling_model", "")]
    models = [model for model in dict.fromkeys(known) if model]
    return [(model, _offer(model, prices.get(model, set()), currency)) for model in models] if len(models) > 1 else []


def _offer(model: str, prices: set[Decimal], currency: str) -> str:
    """A selling model in words, with its price where all lists have the same one."""
    sold_as, _, name = model.partition(":")
    label = words(sold_as) + (f", {name}" if name else "")
    return f"{label}: {money(prices.pop(), currency)} {currency}" if len(prices) == 1 else label


def _change(
    visit: Visit, quote_id: str, form: DraftForm, changes: Changes, again: Callable[[int], Response]
) -> Response:
    """Store one change of the draft that the person saw, or show the form again with its problems."""
    if form.problems:
        return again(400)
    version, edit = whole(visit.form.get("version")) or 0, whole(visit.form.get("edit")) or 0
    arguments = {"quote_id": quote_id, **typed(visit.form)}
    command = Command("quote_update", Permission.QUOTE, arguments, form_key(visit.form), subject=quote_id)

    def work(tx: Tx) -> Answer:
        return dict(quotes.update(tx, quote_id, changes, expected_version=version, expected_edit=edit))

    try:
        answer = visit.write(command, work)
    except CpqError as error:
        if error.code in _SHOWN_AS_PAGE:
            raise
        form.refused(error)
        return again(409 if error.code is Code.CONFLICT else 400)
    done = "unchanged" if answer["outcome"] == "no_change" else "changed"
    return notices.to_quote(visit, quote_id, done, answer)


def _quote(visit: Visit) -> Any:
    quote_id = visit.named("quote_id")

    def work(tx: Tx) -> Answer:
        return dict(quotes.get(tx, quote_id, include_pricing=False))

    return visit.read("edited_quote", work, subject=quote_id, quote_id=quote_id, needs=Permission.QUOTE)


def _line(visit: Visit) -> Any:
    line_id = visit.named("line_id")
    found = next((line for line in _quote(visit)["line_items"] if line["line_id"] == line_id), None)
    if found is None:
        raise CpqError(Code.NOT_FOUND, f"The quote has no line {line_id!r}.")
    return found


def _products(visit: Visit) -> Response:
    quote_id, query = visit.named("quote_id"), visit.query("q")[:100]

    def work(tx: Tx) -> Answer:
        return {**_header(tx, quote_id), **found_products(tx, query, visit.page_number())}

    answer = visit.read("products", work, subject=quote_id, query=query, needs=Permission.QUOTE)
    address = f"{quote_address(quote_id)}/lines/new"
    return visit.page("product_choice.html", **answer, query=query, address=address, given={"q": query})


def found_products(tx: Tx, query: str, page: int) -> Mapping[str, Any]:
    """Products for a search text; nothing without one."""
    if not query:
        return {"products": [], "pagination": None}
    found = catalog.search(tx, query=query, category_id=None, active_only=True, limit=PRODUCTS, page=page)
    return {"products": found["items"], "pagination": found["pagination"]}


def _line_form(visit: Visit, product_id: str, line: Any, form: DraftForm, status: int = 200) -> Response:
    quote_id = visit.named("quote_id")

    def work(tx: Tx) -> Answer:
        header = _header(tx, quote_id)
        return {**header, "product": _sold(tx, product_id, line, header["quote"]["currency"])}

    answer = visit.read("line", work, subject=quote_id, product_id=product_id, needs=Permission.QUOTE)
    models = selling_models(answer["product"], answer["quote"]["currency"], form)
    shown = {"models": models, "form_key": visit.new_form_key(), "line": line}
    sees_cost = line is None or visit.principal.may(Permission.SEE_MARGIN)
    return visit.page("line_form.html", status, **answer, **shown, form=form, sees_cost=sees_cost)


def _terms_form(visit: Visit, form: DraftForm, status: int = 200) -> Response:
    quote_id = visit.named("quote_id")
    answer = visit.read("terms", lambda tx: _header(tx, quote_id), subject=quote_id, needs=Permission.QUOTE)
    return visit.page("terms_form.html", status, **answer, form=form, form_key=visit.new_form_key())


def _header(tx: Tx, quote_id: str) -> Answer:
    quote = quotes.get(tx, quote_id, include_pricing=False)["quote"]
    return {"quote": quote, "change": agreements.change_of(tx, quote_id, quote["version"])}
