"""A new quote: from scratch for an account, or as a copy of a quote or template."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.console import notices
from cpq.console.draft_form import DraftForm
from cpq.console.forms import form_key, identifier, typed
from cpq.console.quote_line import chosen, found_products, product_of, read_line, selling_models
from cpq.console.visit import Visit
from cpq.services import catalog, quotes

TEMPLATE_DEAL = "template"
"""A quote with this deal reference is offered as a template."""

ROWS = 20

Work = Callable[[Tx], Answer]


def show(visit: Visit) -> Response:
    """Three choices, one after the other: what to start from, the account, the first product."""
    asked = {name: visit.query(name)[:128] for name in ("from", "account_id", "product_id")}
    return _page(visit, asked, DraftForm({"quantity": "1", **chosen(visit)}))


def create(visit: Visit) -> Response:
    """Create the draft, or the copy of another quote."""
    form = DraftForm(visit.form)
    asked = {name: visit.form.get(name, "")[:128] for name in ("from", "account_id", "product_id")}
    account_id = identifier("account_id", asked["account_id"])
    name, work = _copy(asked, account_id) if asked["from"] else _draft(visit, form, asked, account_id)
    if form.problems:
        return _page(visit, asked, form, 400)
    command = Command(name, Permission.QUOTE, typed(visit.form), form_key(visit.form), subject=asked["from"] or None)
    try:
        made = visit.write(command, work)
    except CpqError as error:
        if error.code in (Code.FORBIDDEN, Code.UNAVAILABLE, Code.TIMEOUT):
            raise
        form.refused(error)
        return _page(visit, asked, form, 409 if error.code is Code.CONFLICT else 400)
    return notices.to_quote(visit, made["quote_id"], "created", made)


def _copy(asked: dict[str, str], account_id: str) -> tuple[str, Work]:
    source = identifier("from", asked["from"])

    def work(tx: Tx) -> Answer:
        return dict(quotes.clone(tx, source, account_id=account_id))

    return "quote_clone", work


def _draft(visit: Visit, form: DraftForm, asked: dict[str, str], account_id: str) -> tuple[str, Work]:
    product_id = identifier("product_id", asked["product_id"])
    product = visit.app.read_unaudited(visit.call, lambda tx: product_of(tx, product_id))
    line = read_line(form, product)._replace(number=1)
    terms = form.terms()
    currency = (form.text("currency", 3) or "").upper()

    def work(tx: Tx) -> Answer:
        chosen = currency or catalog.get_account(tx, account_id)["currency"]
        return dict(quotes.create(tx, quotes.Draft(account_id=account_id, currency=chosen, lines=(line,), **terms)))

    return "quote_create", work


def _page(visit: Visit, asked: dict[str, str], form: DraftForm, status: int = 200) -> Response:
    query, page = visit.query("q")[:100], visit.page_number()
    currency = form.fields.get("currency", "").upper()

    def work(tx: Tx) -> Answer:
        source = quotes.get(tx, asked["from"], include_pricing=True) if asked["from"] else None
        account = catalog.get_account(tx, asked["account_id"]) if asked["account_id"] else None
        found: Answer = {"source": source, "account": account, "product": None, "products": [], "pagination": None}
        if asked["product_id"] and account:
            return {**found, "product": product_of(tx, asked["product_id"], currency or account["currency"])}
        if account and not source:
            return {**found, **found_products(tx, query, page)}
        if not account:
            accounts = catalog.search_accounts(tx, query=query or None, active_only=True, limit=ROWS, page=page)
            templates = (
                []
                if source
                else quotes.list_quotes(tx, account_id=None, status=None, limit=ROWS, page=1, deal_id=TEMPLATE_DEAL)[
                    "items"
                ]
            )
            return {
                **found,
                "accounts": accounts["items"],
                "pagination": accounts["pagination"],
                "templates": templates,
            }
        return found

    answer = visit.read("new_quote", work, **asked, needs=Permission.QUOTE)
    given = {name: value for name, value in {**asked, "q": query}.items() if value}
    shown = {"asked": asked, "query": query, "given": given, "form": form, "form_key": visit.new_form_key()}
    if answer["product"]:
        shown["models"] = selling_models(answer["product"], currency or answer["account"]["currency"], form)
    return visit.page("new_quote.html", status, **answer, **shown)
