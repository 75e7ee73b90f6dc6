"""`cpq demo`: a deal from the first question to the customer's second order, in steps.

A real MCP client starts the real server over stdio. A step is a function in `STEPS`; what it learns for later ones it
keeps in `Demo.kept`. Every write has a fixed key, so that a second demo finds the same deal.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path

import anyio
from mcp import Client, MCPError, StdioServerParameters

import cpq
from cpq.app import Command, open_app, tokens
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.money import readable
from cpq.base.settings import TOKEN_VARIABLE, read_settings
from cpq.domain.quotes.lifecycle import QuoteStatus
from mcp_facade.demo_screen import READING_SECONDS, Body, Screen
from mcp_facade.prompts import PROMPT_NAME

CALL_TIMEOUT_SECONDS = 60
MANAGER = "demo-manager"
DEAL = "quotewright-demo"
"""Lets `cpq console sample` distinguish the quote of the demo and real quotes."""
HANDBOOK = Path(cpq.__file__).parent / "sample" / "handbook"
AGENT_TOOLSETS = "quotes,deals,agreements,approvals,docs"
PLAN = "prod_pro_v2"
SOLD = (QuoteStatus.APPROVED, QuoteStatus.SENT, QuoteStatus.ACCEPTED)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    exit_code = 0
    try:
        anyio.run(_walk, options.fast, options.json)
    except* (MCPError, CpqError, OSError) as failures:
        sys.stderr.write(f"The demo stopped: {_first(failures)}\n")
        exit_code = 1
    return exit_code


@dataclass
class Demo:
    """A client with the name of who uses it, the screen, and the results of earlier steps."""

    client: Client
    screen: Screen
    caller: str = "agent"
    kept: Body = field(default_factory=dict)

    async def call(self, tool: str, **arguments: object) -> Body:
        """Call a tool and return its answer, which must be a success."""
        body = await self.try_call(tool, **arguments)
        if "error" in body:
            raise CpqError(Code.INTERNAL_ERROR, f"{tool} answered {body['error']['code']}: {body['error']['message']}")
        return body

    async def try_call(self, tool: str, **arguments: object) -> Body:
        """Call a tool and return its answer, which may be the error envelope."""
        request = self.screen.request(self.caller, tool, arguments)
        body: Body = (await self.client.call_tool(tool, arguments)).structured_content or {}
        request["answer"] = body
        return body


async def connect(demo: Demo) -> None:
    demo.screen.heading("An agent connects, and learns the order of the work")
    request = demo.screen.request(demo.caller, "tools/list", {})
    tools = (await demo.client.list_tools()).tools
    request["answer"] = {"tools": [tool.name for tool in tools]}
    info = demo.client.server_info
    name = f"{info.title or info.name} {info.version}" if info else "The server"
    demo.screen.say(f"{name} uses MCP {demo.client.protocol_version} and offers {len(tools)} tools here.")
    request = demo.screen.request(demo.caller, "prompts/get", {"name": PROMPT_NAME})
    messages = (await demo.client.get_prompt(PROMPT_NAME, {"wish": "150 seats of the Pro Plan"})).messages
    lines = [line for line in str(getattr(messages[0].content, "text", "")).splitlines() if line[:2] in ("1.", "2.")]
    request["answer"] = {"lines": lines}
    for line in lines:
        demo.screen.say(line)


async def search(demo: Demo) -> None:
    demo.screen.heading("Acme wants 150 seats of the Pro Plan, and 10 % off")
    accounts = await demo.call("account_search", query="acme")
    for account in accounts["items"][:1]:
        demo.screen.say(f"{account['name']} ({account['id']}), {account['country']}, {account['currency']}")
        demo.kept["account"] = account
    page = await demo.call("catalog_search", query="pro plan", limit=3)
    rows = [(item["id"], item["name"], item["product_type"]) for item in page["items"]]
    demo.screen.table(("product", "name", "type"), rows)
    demo.kept["product"] = page["items"][0] if page["items"] else await _any_product(demo)


async def heal_an_error(demo: Demo) -> None:
    demo.screen.heading("It guesses an id; the refusal carries the call to send instead")
    error = (await demo.try_call("catalog_get", product_id="Pro Plan"))["error"]
    demo.screen.refusal(error)
    advice = error["details"]["next_call"]
    found = await demo.call(advice["tool"], **advice["arguments"])
    demo.screen.say(
        f"{found['pagination']['total']} found: {', '.join(item['id'] for item in found['items']) or 'none'}"
    )


async def read_the_product(demo: Demo) -> None:
    demo.screen.heading("It reads the product before it offers it")
    product = await demo.call("catalog_get", product_id=demo.kept["product"]["id"], include_relationships=True)
    demo.screen.say(f"{product['name']} ({product['sku']}), {product['product_type']}")
    for option in product["options"]:
        demo.screen.say(f"option {option['name']}: {', '.join(map(str, option.get('values') or [option['type']]))}")
    for price in product["prices"][:4]:
        amount = readable(Decimal(str(price["unit_price"])), price["currency"])
        demo.screen.say(f"price {amount} {price['currency']}, {price['billing_period'].replace('_', ' ')}")
    for rule in product["rules"][:2]:
        demo.screen.say(f"rule: {rule}")


async def create_a_quote(demo: Demo) -> None:
    """The worked example of the contract."""
    if demo.kept["product"]["id"] != PLAN or "account" not in demo.kept:
        return
    demo.screen.heading("It writes a draft, and sends the call again as if the answer had been lost")
    asked = {
        "account_id": demo.kept["account"]["id"],
        "line_items": [{"product_id": PLAN, "quantity": 150}],
        "term_months": 12,
        "deal_id": DEAL,
        "idempotency_key": "demo-pro-plan-150-seats",
    }
    made = await demo.call("quote_create", **asked)
    demo.kept["quote"] = made
    _show_lines(demo, made["line_items"], made["currency"], amount="subtotal")
    again = await demo.call("quote_create", **asked)
    demo.screen.say(f"The same key gives the same quote, {again['quote_id']}, and not a second one.")


async def price_the_quote(demo: Demo) -> None:
    if "quote" not in demo.kept:
        return
    demo.screen.heading("The engine computes the price, never the agent")
    quote_id, currency = demo.kept["quote"]["quote_id"], demo.kept["quote"]["currency"]
    key = "demo-pro-plan-10-percent"
    priced = await demo.call("quote_price", quote_id=quote_id, requested_discount_pct=10, idempotency_key=key)
    _show_lines(demo, priced["line_pricing"], currency, amount="line_total")
    totals = {name: Decimal(str(priced["pricing"][name])) for name in priced["pricing"] if name.endswith("total")}
    stages = [
        ("list price", totals["subtotal"]),
        ("discount", -totals["discount_total"]),
        ("tax", totals["tax_total"]),
        ("total", totals["total"]),
    ]
    demo.screen.waterfall(stages, currency)
    for violation in priced["policy_violations"]:
        demo.screen.say(violation["description"], style="yellow")
        demo.screen.say(
            f"Allowed {violation['threshold']}, asked {violation['actual']}; {_needs(violation)}.", "yellow"
        )
    demo.screen.say(f"approval required: {'yes' if priced['approval_required'] else 'no'}")


async def read_the_handbook(demo: Demo) -> None:
    demo.screen.heading("The company's own handbook says who may give how much")
    found = await demo.call("search_docs", query="which discount may I give myself, and who approves more", top_k=3)
    if not found["results"]:
        return
    best = found["results"][0]["metadata"]
    section = await demo.call("get_section", file_path=best["file_path"], heading_path=best["heading_path"])
    for line in section["content"].splitlines()[:8]:
        demo.screen.say(line)


async def ask_for_approval(demo: Demo) -> None:
    """An expired request of an earlier demo is made again."""
    if "quote" not in demo.kept:
        return
    demo.screen.heading("It asks for approval, and cannot give it")
    quote_id = demo.kept["quote"]["quote_id"]
    asked = {"quote_id": quote_id, "justification": "A first order; they plan 600 seats next year."}
    answer = await demo.call("approval_request", **asked, idempotency_key="demo-pro-plan-approval")
    status = await demo.call("approval_status", quote_id=quote_id)
    if status["missing_roles"] and status["current_status"] == QuoteStatus.DRAFT:
        answer = await demo.call("approval_request", **asked)
    demo.kept["approval"] = answer
    asked_role = answer["approver_role"].replace("_", " ")
    demo.screen.say(f"{answer['approval_id']} waits for a {asked_role}, until {answer['expires_at']}.")
    waiting = await demo.call("approval_pending", approver_role="sales_manager", limit=5)
    demo.screen.say(f"{waiting['total']} in the queue of a sales manager.")
    refused = await demo.try_call(
        "approval_decide",
        approval_id=answer["approval_id"],
        decision="approve",
        fingerprint=answer["fingerprint"],
    )
    if "error" in refused:
        demo.screen.refusal(refused["error"])


async def let_a_manager_decide(demo: Demo) -> None:
    """A person with the role decides, through a server of their own."""
    if "approval" not in demo.kept:
        return
    demo.screen.heading("Dana, a sales manager, decides on exactly the price that she was shown")
    approval, quote_id = demo.kept["approval"], demo.kept["quote"]["quote_id"]
    status = await demo.call("approval_status", quote_id=quote_id)
    if status["current_status"] in SOLD:
        demo.screen.say(f"It was decided in an earlier demo: {status['current_status']}.")
        return
    async with _dana(demo) as dana:
        decided = await dana.call(
            "approval_decide",
            approval_id=approval["approval_id"],
            decision="approve",
            fingerprint=approval["fingerprint"],
            comment="Good for the start.",
        )
    demo.screen.say(f"{decided['decided_by']}: {decided['message']}")


async def send_the_document(demo: Demo) -> None:
    if "quote" not in demo.kept:
        return
    quote_id = demo.kept["quote"]["quote_id"]
    demo.screen.heading("The offer becomes a document, and goes out")
    made = await demo.call("quote_pdf", quote_id=quote_id)
    demo.kept["pdf"] = made["file_path"]
    stamp = made["stamp"].replace("_", " ") if made["stamp"] else "none: it may go out"
    demo.screen.say(f"{made['pages']} page, {made['file_size_bytes']:,} bytes, PDF/A-3 with the quote as JSON and UBL")
    demo.screen.say(f"stamp: {stamp}")
    sent = await demo.call("quote_send", quote_id=quote_id, expected_version=1, idempotency_key="demo-pro-plan-send")
    demo.screen.say(sent["message"])
    page = await demo.call("quote_list", account_id=demo.kept["account"]["id"], limit=5)
    rows = [(one["number"], one["status"], _amount(one["total"], one["currency"])) for one in page["items"]]
    demo.screen.table(("quote", "status", f"{demo.kept['quote']['currency']}#"), rows)


async def accept(demo: Demo) -> None:
    if "pdf" not in demo.kept:
        return
    demo.screen.heading("Acme accepts. A person records it; for the agent it is refused")
    asked = {
        "quote_id": demo.kept["quote"]["quote_id"],
        "expected_version": 1,
        "idempotency_key": "demo-pro-plan-accept",
    }
    refused = await demo.try_call("quote_accept", **asked)
    if "error" in refused:
        demo.screen.refusal(refused["error"])
    async with _dana(demo) as dana:
        accepted = await dana.call("quote_accept", **asked)
    demo.kept["agreement_id"] = accepted["agreement_id"]
    demo.screen.say(accepted["message"])


async def amend(demo: Demo) -> None:
    if "agreement_id" not in demo.kept:
        return
    demo.screen.heading("Three months later Acme wants 50 seats more: only the difference is quoted")
    agreement_id = demo.kept["agreement_id"]
    owned = await demo.call("agreement_get", agreement_id=agreement_id)
    line, currency = owned["lines"][0], owned["agreement"]["currency"]
    changed = await demo.call(
        "agreement_amend",
        agreement_id=agreement_id,
        effective_date=_months_later(line["start_date"], 3),
        changes=[{"action": "set_quantity", "line_id": line["line_id"], "quantity": 200}],
        idempotency_key="demo-pro-plan-50-more",
    )
    one = changed["lines"][0]
    rows = [
        ("before", one["quantity_before"], _amount(one["credit"], currency)),
        ("after", one["quantity_after"], _amount(one["price_after"], currency)),
        ("due", None, _amount(one["difference"], currency)),
    ]
    demo.screen.table((f"{one['start_date']} to {one['end_date']}", "seats#", f"{currency}#"), rows)
    key = "demo-pro-plan-50-price"
    priced = await demo.call("quote_price", quote_id=changed["quote_id"], idempotency_key=key)
    demo.screen.say(changed["message"])
    for violation in priced["policy_violations"]:
        demo.screen.say(f"{violation['description']} So {_needs(violation)} again.", style="yellow")


async def read_it_back(demo: Demo) -> None:
    if "quote" not in demo.kept:
        return
    demo.screen.heading("Check it: nothing here has to be believed")
    quote_id = demo.kept["quote"]["quote_id"]
    found = await demo.call("quote_get", quote_id=quote_id)
    pricing = found["pricing"]
    currency = found["quote"]["currency"]
    demo.screen.say(
        f"{found['quote']['number']}: {_amount(pricing['total'], currency)} {currency}, {found['quote']['status']}"
    )
    for command, shows in (
        (f"cpq quote explain {quote_id}", "every step of the price"),
        ("cpq quote replay --all", "each stored quote priced again, equal to the byte"),
        ("cpq audit verify", "the record of every call, unbroken"),
    ):
        demo.screen.say(f"{command:44} {shows}")


STEPS: tuple[Callable[[Demo], Awaitable[None]], ...] = (
    connect,
    search,
    heal_an_error,
    read_the_product,
    create_a_quote,
    price_the_quote,
    read_the_handbook,
    ask_for_approval,
    let_a_manager_decide,
    send_the_document,
    accept,
    amend,
    read_it_back,
)
"""The steps of the demo, in order."""


async def _walk(is_fast: bool, as_json: bool) -> None:
    screen = Screen(as_json=as_json)
    async with Client(_server(toolsets=AGENT_TOOLSETS), read_timeout_seconds=CALL_TIMEOUT_SECONDS) as client:
        demo = Demo(client, screen)
        for step in STEPS:
            await step(demo)
            if sys.stdout.isatty() and not (is_fast or as_json):
                await anyio.sleep(READING_SECONDS)
    if as_json:
        names = {"quote_id": demo.kept.get("quote", {}).get("quote_id"), "document": demo.kept.get("pdf")}
        sys.stdout.write(screen.as_json(**names) + "\n")
    else:
        screen.end(
            f"Done: {len(screen.steps)} steps, {screen.requests} requests over MCP on stdio.", demo.kept.get("pdf")
        )


def _server(*arguments: str, toolsets: str, **variables: str) -> StdioServerParameters:
    ours = {"MCP_LOG_LEVEL": "WARNING", "CPQ_DOCS_DIR": str(HANDBOOK)}
    # -P: a file in the current folder must not shadow a module of the product.
    return StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "mcp_facade", *arguments],
        env={**ours, **os.environ, "MCP_TRANSPORT": "stdio", "CPQ_TOOLSETS": toolsets, **variables},
    )


@contextmanager
def _manager() -> Iterator[tuple[str, str]]:
    """The name of a person who is a sales manager within the `with`, and their secret where secrets are used."""
    app = open_app(read_settings())
    made: list[str] = []
    secret = ""

    def create(tx: Tx) -> Body:
        nonlocal secret
        role = "sales_manager"
        if tokens.is_guarded(tx, MANAGER, role, is_person=True):
            tokens.require_administrator(tx, os.environ.get(TOKEN_VARIABLE, ""), role)
        if tokens.has_tokens(tx.connection):
            summary, secret = tokens.create_token(tx, name=MANAGER, role=role, days=1)
        else:
            summary = tokens.grant(tx, name=MANAGER, role=role, days=1)
        made.append(summary.id)
        return {}

    def revoke(tx: Tx) -> Body:
        tokens.revoke_token(tx, made[-1])
        return {}

    try:
        app.write(app.new_call(app.operator), Command("token_create", Permission.ADMINISTER), create)
        try:
            yield MANAGER, secret
        finally:
            app.write(app.new_call(app.operator), Command("token_revoke", Permission.ADMINISTER), revoke)
    finally:
        app.close()


@asynccontextmanager
async def _dana(demo: Demo) -> AsyncIterator[Demo]:
    """A sales manager at a server of their own."""
    with _manager() as (name, secret):
        variables = {TOKEN_VARIABLE: secret} if secret else {}
        server = _server("--as", name, toolsets="deals,approvals", **variables)
        async with Client(server, read_timeout_seconds=CALL_TIMEOUT_SECONDS) as client:
            yield Demo(client, demo.screen, "Dana")


async def _any_product(demo: Demo) -> Body:
    """For another catalogue than the sample: the first product of the first category."""
    advice = (await demo.try_call("catalog_search"))["error"]["details"]["next_call"]
    items = (await demo.call(advice["tool"], **advice["arguments"]))["items"]
    if not items:
        raise CpqError(Code.NOT_FOUND, "the catalogue is empty; `cpq init --sample` fills it")
    first: Body = items[0]
    return first


def _show_lines(demo: Demo, lines: Sequence[Body], currency: str, *, amount: str) -> None:
    rows = [
        (
            line["product_name"],
            line["quantity"],
            _amount(line["unit_price"], currency),
            _amount(line[amount], currency),
            currency,
        )
        for line in lines
    ]
    demo.screen.table(("product", "quantity#", "unit price#", f"{amount.replace('_', ' ')}#", ""), rows)


def _months_later(day: str, months: int) -> str:
    """The same day of the month, at most the 28th."""
    start = date.fromisoformat(day)
    years, month = divmod(start.month - 1 + months, 12)
    return date(start.year + years, month + 1, min(start.day, 28)).isoformat()


def _needs(violation: Body) -> str:
    role = violation["required_approver_role"]
    return f"a {role.replace('_', ' ')} must approve" if role else str(violation["severity"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mcp_facade.demo", description="A deal, step by step.")
    parser.add_argument("--fast", action="store_true", help="without pauses between the steps")
    parser.add_argument("--json", action="store_true", help="print every request with its answer as JSON")
    return parser


def _amount(number: object, currency: str) -> str:
    return readable(Decimal(str(number)), currency)


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = failures.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


if __name__ == "__main__":
    sys.exit(main())
