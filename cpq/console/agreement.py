"""The page of one agreement as of a day, with forms to amend and to renew it; each leads to a draft quote."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from urllib.parse import quote as urlquote

from starlette.responses import Response

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.console import notices, timeline
from cpq.console.draft_form import MONTHS_MAX, DraftForm
from cpq.console.forms import form_key, typed
from cpq.console.visit import Visit
from cpq.domain.agreements.changes import Action, Change, RenewalPrice
from cpq.domain.field_types import QUANTITY_DECIMALS_MAX
from cpq.services import agreements
from cpq.services.agreements import ownership

PRICES = {"same": "the last prices", "list": "today's list prices", "contracted": "today's prices of the account"}

Work = Callable[[Tx], Answer]


def show(visit: Visit) -> Response:
    return _page(visit, DraftForm({}), DraftForm({}))


def amend(visit: Visit) -> Response:
    """Make a draft that sets the quantity of a line, or removes it."""
    id_, form = visit.named("agreement_id"), DraftForm(visit.form)
    line_id = form.required_text("line_id", "Choose a line.", 200)
    effective = _required_day(form, "effective_date")
    if form.fields.get("remove"):
        change = Change(Action.REMOVE_LINE, line_id)
    else:
        change = Change(Action.SET_QUANTITY, line_id, form.quantity(QUANTITY_DECIMALS_MAX))

    def work(tx: Tx) -> Answer:
        return dict(agreements.amend(tx, id_, effective, [change]))

    return _made(visit, "agreement_amend", form, work, lambda status: _page(visit, form, DraftForm({}), status))


def renew(visit: Visit) -> Response:
    """Make a draft for the next term."""
    id_, form = visit.named("agreement_id"), DraftForm(visit.form)
    months = form.whole("term_months", MONTHS_MAX)
    uplift = form.percent("uplift_pct") if form.fields.get("uplift_pct") else None
    price = form.fields.get("price", "same")
    if price not in PRICES:
        form.problems["price"] = "Choose one of the prices."

    def work(tx: Tx) -> Answer:
        chosen = RenewalPrice(price)
        made = agreements.renew(tx, id_, start=None, term_months=months, uplift_percent=uplift, price=chosen, also=())
        return dict(made)

    return _made(visit, "agreement_renew", form, work, lambda status: _page(visit, DraftForm({}), form, status))


def _required_day(form: DraftForm, name: str) -> date:
    day = form.day(name)
    if day is None and name not in form.problems:
        form.problems[name] = "Give the first day of the change."
    return day or date.min


def _made(visit: Visit, name: str, form: DraftForm, work: Work, again: Callable[[int], Response]) -> Response:
    """Go to the page of the draft; a problem, or a change that changes nothing, is shown on the form."""
    if form.problems:
        return again(400)
    id_ = visit.named("agreement_id")
    arguments = {"agreement_id": id_, **typed(visit.form)}
    command = Command(name, Permission.QUOTE, arguments, form_key(visit.form), subject=id_)
    try:
        made = visit.write(command, work)
    except CpqError as error:
        if error.code in (Code.FORBIDDEN, Code.UNAVAILABLE, Code.TIMEOUT):
            raise
        form.refused(error)
        return again(409 if error.code is Code.CONFLICT else 400)
    if made["quote_id"] is None:
        form.problems[""] = made["message"]
        return again(409)
    return notices.to_quote(visit, made["quote_id"], "created", made)


def _page(visit: Visit, amendment: DraftForm, renewal: DraftForm, status: int = 200) -> Response:
    id_ = visit.named("agreement_id")
    asked = DraftForm({"as_of": visit.query("as_of")})
    day = asked.day("as_of")

    def work(tx: Tx) -> Answer:
        spans, marks = ownership.timeline(tx, id_)
        return {**agreements.get(tx, id_, as_of=day), "spans": spans, "marks": marks, "today": tx.now.date()}

    answer = visit.read("agreement", work, subject=id_, agreement_id=id_, as_of=day)
    return visit.page(
        "agreement.html",
        status,
        **{name: answer[name] for name in answer if name not in ("spans", "marks")},
        timelines=timeline.timelines(answer["spans"], answer["marks"], answer["as_of"]),
        asked=asked,
        amendment=amendment,
        renewal=renewal,
        prices=[*PRICES.items()],
        address=f"/console/agreements/{urlquote(id_)}",
        form_key=visit.new_form_key(),
    )
