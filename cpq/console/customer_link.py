"""The page that makes a link by which the customer accepts, shown once, and revokes such links."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.console import deal_step
from cpq.console.forms import given, whole
from cpq.console.visit import Visit, quote_address
from cpq.services import quotes
from cpq.services.quotes import acceptance_links


def show(visit: Visit) -> Response:
    """The question. Nothing is made before it is answered."""
    return _page(visit)


def make(visit: Visit) -> Response:
    quote_id, version = visit.named("quote_id"), whole(visit.form.get("version")) or 0
    code = ""

    def work(tx: Tx) -> Answer:
        nonlocal code  # Kept out of the answer, because answers are stored.
        made = acceptance_links.make(tx, quote_id, expected_version=version)
        code = made.code
        return {"quote_id": quote_id, "link_id": made.id}

    arguments = {"quote_id": quote_id, "version": version}
    visit.write(Command("quote_link", Permission.QUOTE, arguments, subject=quote_id), work)
    return _page(visit, address=f"{visit.app.settings.console_address}/accept/{code}")


def revoke(visit: Visit) -> Response:
    """Make one link useless; the page shows those that are left."""
    quote_id, link_id = visit.named("quote_id"), given(visit.form, "link_id")

    def work(tx: Tx) -> Answer:
        return {"quote_id": quote_id, "revoked": acceptance_links.revoke(tx, quote_id, link_id)}

    arguments = {"quote_id": quote_id, "link_id": link_id}
    visit.write(Command("quote_unlink", Permission.QUOTE, arguments, subject=quote_id), work)
    return RedirectResponse(f"{quote_address(quote_id)}/customer-link", 303)


def _page(visit: Visit, address: str | None = None) -> Response:
    quote_id = visit.named("quote_id")

    def work(tx: Tx) -> Answer:
        return {"review": quotes.review_version(tx, quote_id), "links": acceptance_links.unused(tx, quote_id)}

    answer = visit.read("customer_link", work, subject=quote_id, quote_id=quote_id, needs=Permission.QUOTE)
    version = deal_step.sent_version(answer["review"])
    return visit.page("customer_link.html", 200 if version else 409, **answer, version=version, address=address)
