"""The approval queue: requests for me, for my role, and delegated to me."""

from __future__ import annotations

from dataclasses import asdict
from typing import get_args
from urllib.parse import quote as urlquote

from starlette.responses import RedirectResponse, Response

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.console.csv_export import csv_response
from cpq.console.forms import identifier
from cpq.console.visit import Visit
from cpq.services import approvals
from cpq.services.approvals.queue import Scope, Sort

COLUMNS = [
    *(
        "quote_id",
        "number",
        "version",
        "account_name",
        "owner",
        "currency",
        "quote_total",
        "discount_pct",
        "margin_pct",
    ),
    *("approver_role", "waits_for", "requested_by", "requested_at", "expires_at", "justification"),
]
SORTS = {
    "oldest": "Oldest first",
    "newest": "Newest first",
    "biggest": "Biggest first",
    "smallest": "Smallest first",
    "owner": "By owner",
}
NEAR = 200
"""How many requests the look for the next one goes through."""


def show(visit: Visit) -> Response:
    """Shows the whole page, or only the rows when the page polls for changes."""
    asked = _asked(visit)
    if visit.is_live and visit.query("live") == _stamp(visit):
        return Response(status_code=204)

    def work(tx: Tx) -> Answer:
        found = approvals.queue_page(tx, **asked, **visit.shown_rows())
        return {
            **found,
            "roles": list(tx.policies.roles.known),
            "delegations": approvals.given_delegations(tx),
            "held": [asdict(one) for one in approvals.my_held(tx)],
        }

    answer = visit.read("queue", work, **asked, page=visit.page_number())
    if visit.is_export:
        rows = ([item[name] for name in COLUMNS] for item in answer["items"])
        return csv_response("queue", COLUMNS, rows, total=answer["pagination"]["total"])
    given = {_NAMES.get(name, name): value for name, value in asked.items() if value != _DEFAULTS.get(name)}
    template = "queue_rows.html" if visit.is_part else "queue.html"
    return visit.page(template, **answer, asked=asked, given=given, sorts=SORTS, sees_margin=_sees_margin(visit))


def show_next(visit: Visit) -> Response:
    """Go to the next request for the caller; to the queue when nothing waits. `after` is the quote just decided."""
    after = visit.query("after")[:128]

    def work(tx: Tx) -> Answer:
        held = {one.approval_id for one in approvals.my_held(tx) if one.is_held}
        items = approvals.queue_page(tx, limit=len(held) + NEAR)["items"]
        open_ones = [one for one in items if one["quote_id"] != after and not one["waits_for"]]
        return {"next": next((one["quote_id"] for one in open_ones if one["approval_id"] not in held), None)}

    found = visit.read("queue_next", work, needs=Permission.DECIDE)["next"]
    return RedirectResponse(f"/console/quotes/{urlquote(found)}" if found else "/console/queue", 303)


def take_back(visit: Visit) -> Response:
    """End a delegation before its time."""
    form = visit.form
    role, to = identifier("role", form.get("role", "")), identifier("to", form.get("to", ""))
    scope = {name: identifier(name, form[name]) if form.get(name) else None for name in ("account_id", "quote_id")}

    def work(tx: Tx) -> Answer:
        return dict(approvals.end_delegation(tx, role, to=to, **scope))

    command = Command("approval_delegate", Permission.DECIDE, {"role": role, "to": to, **scope})
    visit.write(command, work)
    return RedirectResponse("/console/queue", 303)


def _asked(visit: Visit) -> Answer:
    """The filters in the address where they are valid, else the defaults."""
    scope, sort = visit.query("scope"), visit.query("sort")
    can_decide = visit.principal.may(Permission.DECIDE)
    return {
        "scope": scope if scope in get_args(Scope) else "mine" if can_decide else "all",
        "sort": sort if sort in get_args(Sort) else "oldest",
        "role": visit.query("role")[:64] or None,
        "query": visit.query("q")[:100] or None,
    }


_DEFAULTS = {"sort": "oldest"}
"""Defaults that an address may leave out. The scope is always written: its default depends on the caller."""

_NAMES = {"query": "q"}
"""Short names of filters in the address."""


def _stamp(visit: Visit) -> str:
    return visit.app.read_unaudited(visit.call, approvals.queue_stamp)


def _sees_margin(visit: Visit) -> bool:
    return visit.principal.may(Permission.SEE_MARGIN)
