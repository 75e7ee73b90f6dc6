"""The next command to type: after a step of a deal, and after a refusal that names the call of a tool."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from cpq.domain.quotes.lifecycle import QuoteStatus

COMMANDS_OF_TOOLS = {
    "approval_request": "cpq quote request {quote_id} --why TEXT",
    "approval_status": "cpq quote show {quote_id}",
    "approval_withdraw": "cpq quote withdraw {quote_id}",
    "quote_cancel": "cpq quote cancel {quote_id}",
    "quote_clone": "cpq quote clone {quote_id}",
    "quote_get": "cpq quote show {quote_id}",
    "quote_list": "cpq quote list",
    "quote_pdf": "cpq export quote {quote_id} --output {quote_id}.pdf",
    "quote_price": "cpq quote price {quote_id}",
    "quote_review": "cpq quote review {quote_id}",
    "quote_revise": "cpq quote revise {quote_id}",
    "quote_send": "cpq quote send {quote_id}",
    "quote_update": "cpq quote edit {quote_id}",
    "catalog_search": "cpq search find {query} --in equipment",
}
"""The command for each tool that a refusal may name as the next call."""

OF_A_PERSON = ("request", "withdraw", "cancel", "clone", "price", "review", "revise", "send", "edit")

AFTER = {
    QuoteStatus.DRAFT: "cpq quote price {quote_id}",
    QuoteStatus.PENDING_APPROVAL: "cpq approvals list",
    QuoteStatus.APPROVED: "cpq quote send {quote_id}",
    QuoteStatus.SENT: "cpq quote accept {quote_id}",
    QuoteStatus.DECLINED: "cpq quote revise {quote_id}",
    QuoteStatus.EXPIRED: "cpq quote revise {quote_id}",
}


def after(status: str, quote_id: str, person: str | None) -> str | None:
    """The command that usually follows in this status; None at the end of a deal."""
    command = AFTER.get(QuoteStatus(status))
    return _filled(command, {"quote_id": quote_id}, person) if command else None


def of_call(call: object, subject: str | None, person: str | None) -> str | None:
    """The command for the `next_call` of a refusal; None when the command line has none for that tool."""
    if not isinstance(call, Mapping) or call.get("tool") not in COMMANDS_OF_TOOLS:
        return None
    arguments = dict(call.get("arguments") or {})
    if "quote_id" not in arguments and subject:
        arguments["quote_id"] = subject
    command = COMMANDS_OF_TOOLS[call["tool"]]
    try:
        made = _filled(command, arguments, person)
    except KeyError:
        return None
    if call["tool"] != "quote_price":
        return made
    options = {"--discount": "requested_discount_pct", "--amount": "requested_discount_amount"}
    given = [f" {option} {arguments[name]}" for option, name in options.items() if arguments.get(name) is not None]
    return made + "".join(given)


def _filled(command: str, arguments: Mapping[str, Any], person: str | None) -> str:
    made = command.format_map({name: shlex.quote(str(value)) for name, value in arguments.items()})
    is_personal = command.startswith("cpq quote") and command.split()[2] in (*OF_A_PERSON, "accept")
    return f"{made} --as {shlex.quote(person)}" if is_personal and person else made
