"""Twenty ordinary tasks of an agent, through a real client, by one caller in one store: nothing that guards against
attacks stands in their way."""

from contextlib import closing
from typing import Any, NamedTuple

import pytest
from mcp import Client

from cpq.base.settings import Settings
from mcp_facade.server import Facade
from mcp_facade.toolsets import ALL_TOOLS
from tests.support.approvals import person
from tests.support.engine import open_app
from tests.support.quotes import ACME, SEATS

pytestmark = pytest.mark.anyio

QUOTE, VERSION = "the quote of this task", "its version"
MINE: dict[str, Any] = {"quote_id": QUOTE}
NOW: dict[str, Any] = {"quote_id": QUOTE, "expected_version": VERSION}
OTHER, ABROAD = "acct_groeb_002", {"currency": "EUR"}
COMPRESSOR, DRYER, ITS_FILTER = ({"product_id": id_, "quantity": 1} for id_ in ("prod_rs10", "prod_dr50", "prod_fp75"))


class Step(NamedTuple):
    """A call; `who` is the agent unless a person does it."""

    tool: str
    arguments: dict[str, Any]
    who: str = "agent"


def new(*lines: dict[str, Any], account_id: str = ACME, **terms: Any) -> Step:
    lines = lines or (SEATS,)
    return Step("quote_create", {"account_id": account_id, "term_months": 12, "line_items": list(lines), **terms})


def price(discount: float | None = None) -> Step:
    return Step("quote_price", MINE if discount is None else {**MINE, "requested_discount_pct": discount})


def change(**changes: Any) -> Step:
    return Step("quote_update", {**NOW, **changes})


ASK = Step("approval_request", {**MINE, "justification": "They grow."})
APPROVE = Step("approval_decide", MINE, "manager")
SEND, REVISE = Step("quote_send", NOW), Step("quote_revise", NOW)

TASKS: dict[str, tuple[list[Step], dict[str, Any]]] = {
    "find a product": ([Step("catalog_search", {"query": "pro plan"})], {}),
    "read a product with what goes with it": (
        [Step("catalog_get", {"product_id": "prod_qmb30", "include_relationships": True})],
        {},
    ),
    "find an account": ([Step("account_search", {"query": "acme"}), Step("account_get", {"account_id": ACME})], {}),
    "quote the worked example": ([new(), price()], {"approval_required": False}),
    "quote it once though it is sent twice": (
        [new(idempotency_key="once"), new(idempotency_key="once")],
        {"outcome": "replayed"},
    ),
    "give a discount that needs nobody, and send": ([new(), price(5), SEND], {"status": "sent"}),
    "give ten percent, have it approved, and send": (
        [new(), price(10), ASK, APPROVE, Step("approval_status", MINE), SEND],
        {"status": "sent"},
    ),
    "try prices until one needs nobody": ([new(), *(price(n) for n in (12, 9, 7, 6, 5)), SEND], {"status": "sent"}),
    "look at a price without storing it": (
        [new(), Step("quote_price", {**MINE, "requested_discount_pct": 8, "dry_run": True}), Step("quote_get", MINE)],
        {},
    ),
    "quote equipment with what it needs": (
        [new(COMPRESSOR, DRYER, ITS_FILTER, account_id=OTHER), price(), SEND],
        {"status": "sent"},
    ),
    "add, change and remove lines": (
        [
            new(),
            change(add_lines=[COMPRESSOR]),
            change(change_lines=[{"line_id": f"{QUOTE}-ql-1", "quantity": 200}]),
            change(remove_lines=[f"{QUOTE}-ql-2"]),
            price(),
            SEND,
        ],
        {"status": "sent"},
    ),
    "write a friendly note": ([new(notes="Thank you for your visit in Dayton."), price(), SEND], {"status": "sent"}),
    "quote in another currency": ([new(**ABROAD), price(), SEND], {"status": "sent"}),
    "revise what was sent": ([new(), price(), SEND, REVISE, price(3), SEND], {"status": "sent"}),
    "revise what was approved to a little less": (
        [new(), price(10), ASK, APPROVE, SEND, REVISE, price(8), ASK, SEND],
        {"status": "sent"},
    ),
    "clone for another account": (
        [new(), Step("quote_clone", {**MINE, "account_id": OTHER}), price(), SEND],
        {"status": "sent"},
    ),
    "two quotes of one small deal": (
        [new(deal_id="D-7"), price(), SEND, new(COMPRESSOR, deal_id="D-7"), price(), SEND],
        {"status": "sent"},
    ),
    "cancel, and decline": (
        [new(), Step("quote_cancel", NOW), new(), price(), SEND, Step("quote_decline", NOW)],
        {"status": "declined"},
    ),
    "a document for the customer, who accepts": (
        [new(), price(), SEND, Step("quote_pdf", MINE), Step("quote_accept", NOW, "seller")],
        {"status": "accepted"},
    ),
    "lists and past quotes": (
        [
            Step("quote_list", {"account_id": ACME}),
            Step("approval_pending", {}),
            Step("search_past_quotes", {"query": "oilless air for food"}),
        ],
        {},
    ),
}


async def test_twenty_ordinary_tasks_meet_no_refusal(store: Settings):
    assert len(TASKS) == 20
    refused: dict[str, Any] = {}
    with closing(open_app(store)) as app:
        people = {"manager": person(app, "dana", "sales_manager"), "seller": person(app, "rita", "sales_rep")}
        async with Client(Facade(app, list(ALL_TOOLS))) as client:
            for task, (steps, outcome) in TASKS.items():
                answer: dict[str, Any] = {}
                known: dict[str, Any] = {}
                for step in steps:
                    arguments = _filled(step.arguments, known)
                    if step.tool == "approval_decide":
                        arguments = {**known["asked"], "decision": "approve"}
                    if step.who == "agent":
                        answer = (await client.call_tool(step.tool, arguments)).structured_content or {}
                    else:
                        answer = people[step.who].reply(step.tool, arguments).body
                    if "error" in answer:
                        refused[task] = (step.tool, answer["error"])
                        break
                    known |= {name: answer[name] for name in ("quote_id", "version") if name in answer}
                    if step.tool == "approval_request":
                        known["asked"] = {name: answer[name] for name in ("approval_id", "fingerprint")}
                else:
                    if any(answer.get(name) != value for name, value in outcome.items()):
                        refused[task] = answer
    assert refused == {}


def _filled(arguments: Any, known: dict[str, Any]) -> Any:
    """With the quote of this task and its version."""
    if isinstance(arguments, dict):
        return {name: _filled(value, known) for name, value in arguments.items()}
    if isinstance(arguments, list):
        return [_filled(value, known) for value in arguments]
    if arguments == VERSION:
        return known["version"]
    return (
        arguments.replace(QUOTE, known["quote_id"]) if isinstance(arguments, str) and QUOTE in arguments else arguments
    )
