"""`cpq demo`: a real MCP client starts the real server over stdio and makes a quote, step by step.

A step is a function in `STEPS`; what it learns for later ones it keeps in `Demo.kept`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, MCPError, StdioServerParameters
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import cpq
from cpq.app import Command, open_app, tokens
from cpq.app.access import OPERATOR, Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.money import readable
from cpq.base.settings import TOKEN_VARIABLE, read_settings
from cpq.domain.quotes.lifecycle import QuoteStatus
from mcp_facade.prompts import PROMPT_NAME

PIPE_WIDTH = 10_000
CALL_TIMEOUT_SECONDS = 60
MANAGER = "demo-manager"
DEAL = "quotewright-demo"
"""Lets `cpq console sample` distinguish the quote of the demo and real quotes."""
HANDBOOK = Path(cpq.__file__).parent / "sample" / "handbook"
TOTALS = ("subtotal", "discount_total", "tax_total", "total")

Body = dict[str, Any]


def main() -> int:
    exit_code = 0
    try:
        anyio.run(_walk)
    except* (MCPError, CpqError, OSError) as failures:
        sys.stderr.write(f"The demo stopped: {_first(failures)}\n")
        exit_code = 1
    return exit_code


@dataclass
class Demo:
    """The client, the screen, and the results of earlier steps."""

    client: Client
    console: Console
    kept: Body = field(default_factory=dict)
    step: int = 0
    calls: int = 0

    def heading(self, title: str) -> None:
        self.step += 1
        self.console.print()
        self.console.print(Text(f"{self.step}. {title}", style="bold cyan"))

    def announce(self, request: str) -> None:
        self.calls += 1
        self.say(f"→ {request}", style="green")

    async def call(self, tool: str, **arguments: object) -> Body:
        """Call a tool and return its answer, which must be a success."""
        body = await self.try_call(tool, arguments)
        if "error" in body:
            raise CpqError(Code.INTERNAL_ERROR, f"{tool} answered {body['error']['code']}: {body['error']['message']}")
        return body

    async def try_call(self, tool: str, arguments: Body) -> Body:
        """Call a tool and return its answer, which may be the error envelope."""
        self.announce(f"{tool} {json.dumps(arguments, ensure_ascii=False)}")
        body: Body = (await self.client.call_tool(tool, arguments)).structured_content or {}
        return body

    async def read(self, uri: str) -> Body:
        self.announce(f"resources/read {uri}")
        contents = (await self.client.read_resource(uri)).contents
        body: Body = json.loads(getattr(contents[0], "text", "{}"))
        return body

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Padding(Text(text, style=style), (0, 0, 0, 3), expand=False))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Columns whose heading ends in `#` hold numbers."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column.rstrip("#"), justify="right" if column.endswith("#") else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
        self.console.print(Padding(table, (0, 0, 0, 3), expand=False))


async def list_tools(demo: Demo) -> None:
    """Connect, and list the tools."""
    demo.heading("Connect, and see what the server offers")
    demo.announce("tools/list")
    tools = (await demo.client.list_tools()).tools
    info = demo.client.server_info
    name = f"{info.title or info.name} {info.version}" if info else "The server"
    demo.say(f"{name} uses MCP {demo.client.protocol_version} and has {len(tools)} tools:")
    rows = [(tool.name, tool.title, _kind(tool)) for tool in tools]
    demo.table(("tool", "title", "kind"), rows)


async def search_by_words(demo: Demo) -> None:
    demo.heading("Find a product by the words of the customer")
    page = await demo.call("catalog_search", query="oilless compressor 100 hp", limit=5)
    _show_page(demo, page)
    demo.kept["machine"] = next((item for item in page["items"] if item["product_type"] == "configurable"), None)


async def search_a_category(demo: Demo) -> None:
    demo.heading("List a category, page by page")
    _show_page(demo, await demo.call("catalog_search", category="compressors", limit=3, page=2))


async def search_with_a_typing_error(demo: Demo) -> None:
    demo.heading("Find it despite a typing error")
    _show_page(demo, await demo.call("catalog_search", query="compresor", limit=3))


async def search_a_plan(demo: Demo) -> None:
    demo.heading("Find the Pro Plan")
    page = await demo.call("catalog_search", query="Pro Plan")
    _show_page(demo, page)
    demo.kept["plan"] = page["items"][0] if page["items"] else None


async def get_a_product(demo: Demo) -> None:
    demo.heading("Read the product before offering it: specs, options, rules")
    chosen = demo.kept.get("machine") or demo.kept.get("plan") or await _any_product(demo)
    product = await demo.call("catalog_get", product_id=chosen["id"], include_relationships=True)
    demo.kept["product"] = product
    demo.say(f"{product['name']} ({product['sku']}), {product['product_type']}")
    demo.say(", ".join(f"{name} {_measure(spec)}" for name, spec in product["specs"].items()))
    options = [
        (option["name"], option.get("label"), _choices(option), option.get("default")) for option in product["options"]
    ]
    if options:
        demo.table(("option", "label", "choices", "default"), options)
    for rule in product["rules"]:
        demo.say(f"rule: {rule}")
    for related in product["relationships"]:
        demo.say(f"{related['kind']}: {related['quantity']} × {related['name'] or related['product_id']}")


async def show_prices(demo: Demo) -> None:
    demo.heading("Its list prices, from the same answer")
    columns = ("price book", "currency", "unit price#", "billing", "tiers", "option surcharges")
    rows = [
        (
            price["price_book"],
            price["currency"],
            _amount(price["unit_price"], price["currency"]),
            price["billing_period"],
            price["tier_mode"] if price["tiers"] else None,
            ", ".join(price["option_surcharges"]) or None,
        )
        for price in demo.kept["product"]["prices"]
    ]
    demo.table(columns, rows)


async def heal_an_error(demo: Demo) -> None:
    demo.heading("Make a mistake, and follow the server's advice")
    error = (await demo.try_call("catalog_get", {"product_id": "Pro Plan"}))["error"]
    demo.say(f"{error['code']}: {error['message']}", style="yellow")
    advice = error["details"]["next_call"]
    demo.say("The error contains the next call, ready to send:")
    _show_page(demo, await demo.call(advice["tool"], **advice["arguments"]))


async def create_a_quote(demo: Demo) -> None:
    """The worked example of the contract, with a fixed key, so that a second demo finds the same quote."""
    if (demo.kept.get("plan") or {}).get("id") != "prod_pro_v2":
        return
    demo.heading("Create the quote: 150 seats for a year")
    asked = {
        "account_id": "acct_acme_001",
        "line_items": [{"product_id": "prod_pro_v2", "quantity": 150}],
        "term_months": 12,
        "deal_id": DEAL,
        "idempotency_key": "demo-pro-plan-150-seats",
    }
    made = await demo.call("quote_create", **asked)
    demo.kept["quote"] = made
    _show_lines(demo, made["line_items"], made["currency"], price="unit_price", amount="subtotal")
    demo.say(f"{made['quote_id']}, version {made['version']}, {made['status']}")
    again = await demo.call("quote_create", **asked)
    demo.say(f"The same key again: {again['quote_id']}, the same quote, not a second one.")


async def read_the_quote(demo: Demo) -> None:
    if "quote" not in demo.kept:
        return
    demo.heading("Read back what was stored")
    found = await demo.call("quote_get", quote_id=demo.kept["quote"]["quote_id"])
    header = found["quote"]
    demo.say(f"{header['account_name']}, {header['term_months']} months, {header['payment_terms']}")
    demo.say(f"valid until {header['valid_until']}, priced: {found['pricing']['priced_at'] or 'not yet'}")


async def price_the_quote(demo: Demo) -> None:
    if "quote" not in demo.kept:
        return
    demo.heading("Price it with 10 % off, and see what the policies require")
    priced = await demo.call("quote_price", quote_id=demo.kept["quote"]["quote_id"], requested_discount_pct=10)
    currency = demo.kept["quote"]["currency"]
    _show_lines(demo, priced["line_pricing"], currency, price="unit_price", amount="line_total")
    totals = [(name.replace("_", " "), _amount(priced["pricing"][name], currency)) for name in TOTALS]
    demo.table(("", f"{currency}#"), totals)
    for violation in priced["policy_violations"]:
        demo.say(f"{violation['policy_name']}: {violation['description']}", style="yellow")
        demo.say(f"allowed {violation['threshold']}, asked {violation['actual']}; {_needs(violation)}", style="yellow")
    words = {True: "yes", False: "no"}
    demo.say(f"approval required: {words[priced['approval_required']]}; stored: {words[priced['stored']]}")


async def read_the_handbook(demo: Demo) -> None:
    demo.heading("Look up what the sales handbook says about it")
    found = await demo.call("search_docs", query="which discount may I give myself, and who approves more", top_k=3)
    if not found["results"]:
        return
    rows = [
        (hit["metadata"]["file_path"], hit["metadata"]["heading_path"], f"{hit['score']:.2f}")
        for hit in found["results"]
    ]
    demo.table(("page", "section", "score#"), rows)
    best = found["results"][0]["metadata"]
    section = await demo.call("get_section", file_path=best["file_path"], heading_path=best["heading_path"])
    for line in section["content"].splitlines()[:8]:
        demo.say(line)


async def ask_for_approval(demo: Demo) -> None:
    """With a fixed key, so that a second demo gets the same answer; an expired request is made again."""
    if "quote" not in demo.kept:
        return
    demo.heading("Request the approval that the policy requires")
    quote_id = demo.kept["quote"]["quote_id"]
    asked = {"quote_id": quote_id, "justification": "A first order; they plan 600 seats next year."}
    answer = await demo.call("approval_request", **asked, idempotency_key="demo-pro-plan-approval")
    if (await demo.call("approval_status", quote_id=quote_id))["missing_roles"]:
        answer = await demo.call("approval_request", **asked)
    demo.kept["approval"] = answer
    demo.say(f"{answer['approval_id']}: {answer['message']}; {answer['approver_role'].replace('_', ' ')} is asked")
    demo.say(f"bound to version {answer['version']} at its price; it expires at {answer['expires_at']}")


async def see_what_waits(demo: Demo) -> None:
    if "approval" not in demo.kept:
        return
    demo.heading("See the status of the quote, and the queue of the manager")
    await _show_status(demo)
    page = await demo.call("approval_pending", approver_role="sales_manager", limit=5)
    columns = ("approval", "account", "total#", "", "asked by", "why")
    rows = [
        (
            item["approval_id"],
            item["account_name"],
            _amount(item["quote_total"], item["currency"]),
            item["currency"],
            item["requested_by"],
            item["justification"],
        )
        for item in page["items"]
    ]
    if rows:
        demo.table(columns, rows)
    demo.say(f"{page['total']} waiting for a sales manager")


async def let_a_manager_decide(demo: Demo) -> None:
    """A person with the role decides, through a server of their own; the agent may not."""
    if "approval" not in demo.kept:
        return
    demo.heading("A sales manager decides; the agent cannot")
    approval = demo.kept["approval"]
    quote_id = demo.kept["quote"]["quote_id"]
    if (await demo.call("approval_status", quote_id=quote_id))["current_status"] == QuoteStatus.APPROVED:
        demo.say("It was approved in an earlier demo, and the approval is still valid.")
        return
    try:
        with _manager() as (name, secret):
            await _approve(demo, approval, name, secret)
    except CpqError as error:
        demo.say(f"{error.message} {error.details.get('hint', '')}")
        return
    await _show_status(demo)


async def _approve(demo: Demo, approval: Body, name: str, secret: str) -> None:
    server = _server("--as", name, toolsets="approvals", **({TOKEN_VARIABLE: secret} if secret else {}))
    async with Client(server, read_timeout_seconds=CALL_TIMEOUT_SECONDS) as client:
        manager = Demo(client, demo.console)
        decided = await manager.call(
            "approval_decide",
            approval_id=approval["approval_id"],
            decision="approve",
            fingerprint=approval["fingerprint"],
            comment="Good for the start.",
        )
    demo.calls += manager.calls
    demo.say(f"{decided['decided_by']}: {decided['message']}")


async def list_the_quotes(demo: Demo) -> None:
    if "quote" not in demo.kept:
        return
    demo.heading("List the account's quotes")
    page = await demo.call("quote_list", account_id=demo.kept["quote"]["account_id"], limit=5)
    columns = ("quote", "version#", "account", "status", "total#", "", "valid until")
    rows = [
        (
            item["id"],
            item["version"],
            item["account_name"],
            item["status"],
            _amount(item["total"], item["currency"]),
            item["currency"],
            item["valid_until"],
        )
        for item in page["items"]
    ]
    demo.table(columns, rows)


async def read_the_resource(demo: Demo) -> None:
    demo.heading("Read the same product as a resource")
    product = await demo.read(f"product://{demo.kept['product']['id']}")
    demo.say(f"{product['name']}: {len(product['prices'])} prices, {len(product['options'])} options")


async def get_the_prompt(demo: Demo) -> None:
    demo.heading("Read the prompt for drafting a quote")
    wish = "150 seats of the Pro Plan for a year"
    demo.announce(f"prompts/get {PROMPT_NAME} {json.dumps({'wish': wish})}")
    messages = (await demo.client.get_prompt(PROMPT_NAME, {"wish": wish})).messages
    lines = [line for line in str(getattr(messages[0].content, "text", "")).splitlines() if line.strip()]
    for line in lines[:5]:
        demo.say(line)
    demo.say(f"… and {len(lines) - 5} more lines")


async def make_the_pdf(demo: Demo) -> None:
    if "quote" not in demo.kept:
        return
    demo.heading("Make the PDF for the customer")
    made = await demo.call("quote_pdf", quote_id=demo.kept["quote"]["quote_id"])
    demo.kept["pdf"] = made["file_path"]
    demo.say(f"{made['pages']} pages, {made['file_size_bytes']:,} bytes, {made['checksum']}")
    demo.say("stamped: " + (made["stamp"].replace("_", " ") if made["stamp"] else "no, it may be sent"))


STEPS: tuple[Callable[[Demo], Awaitable[None]], ...] = (
    list_tools,
    search_by_words,
    search_a_category,
    search_with_a_typing_error,
    search_a_plan,
    get_a_product,
    show_prices,
    heal_an_error,
    create_a_quote,
    read_the_quote,
    price_the_quote,
    read_the_handbook,
    ask_for_approval,
    see_what_waits,
    let_a_manager_decide,
    list_the_quotes,
    read_the_resource,
    get_the_prompt,
    make_the_pdf,
)
"""The steps of the demo, in order."""


async def _walk() -> None:
    async with Client(_server(), read_timeout_seconds=CALL_TIMEOUT_SECONDS) as client:
        demo = Demo(client, _console())
        for step in STEPS:
            await step(demo)
        demo.console.print()
        demo.console.print(Text(f"Done: {demo.step} steps, {demo.calls} requests over MCP on stdio.", style="bold"))
        if "pdf" in demo.kept:
            demo.console.print(Text(demo.kept["pdf"]), soft_wrap=True)


def _server(*arguments: str, toolsets: str = "quotes,docs", **variables: str) -> StdioServerParameters:
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
        app.write(app.new_call(OPERATOR), Command("token_create", Permission.ADMINISTER), create)
        try:
            yield MANAGER, secret
        finally:
            app.write(app.new_call(OPERATOR), Command("token_revoke", Permission.ADMINISTER), revoke)
    finally:
        app.close()


async def _show_status(demo: Demo) -> None:
    found = await demo.call("approval_status", quote_id=demo.kept["quote"]["quote_id"])
    demo.say(f"{found['current_status']}; can proceed: {'yes' if found['can_proceed'] else 'no'}")


def _console() -> Console:
    is_plain = bool(os.environ.get("NO_COLOR"))
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, color_system=None if is_plain else "auto", highlight=False, markup=False, emoji=False)


async def _any_product(demo: Demo) -> Body:
    """For another catalogue than the sample: the first product of the first category."""
    advice = (await demo.try_call("catalog_search", {}))["error"]["details"]["next_call"]
    items = (await demo.call(advice["tool"], **advice["arguments"]))["items"]
    if not items:
        raise CpqError(Code.NOT_FOUND, "the catalogue is empty; `cpq init --sample` fills it")
    first: Body = items[0]
    return first


def _show_page(demo: Demo, page: Body) -> None:
    if page["items"]:
        rows = [(item["id"], item["sku"], item["name"], item["product_type"]) for item in page["items"]]
        demo.table(("id", "sku", "name", "type"), rows)
    where = page["pagination"]
    demo.say(f"page {where['page']}, {len(page['items'])} of {where['total']} hits")
    if "hint" in page:
        demo.say(page["hint"], style="yellow")


def _show_lines(demo: Demo, lines: Sequence[Body], currency: str, *, price: str, amount: str) -> None:
    rows = [
        (
            line["product_name"],
            line["quantity"],
            _amount(line[price], currency),
            _amount(line[amount], currency),
            currency,
        )
        for line in lines
    ]
    demo.table(("product", "quantity#", f"{price.replace('_', ' ')}#", f"{amount.replace('_', ' ')}#", ""), rows)


def _needs(violation: Body) -> str:
    role = violation["required_approver_role"]
    return f"a {role.replace('_', ' ')} must approve" if role else str(violation["severity"])


def _kind(tool: Any) -> str:
    return "reads" if tool.annotations and tool.annotations.read_only_hint else "writes"


def _measure(spec: Body) -> str:
    return f"{spec['value']} {spec['unit']}" if spec["unit"] else str(spec["value"])


def _choices(option: Body) -> str:
    if option.get("values"):
        return ", ".join(map(str, option["values"]))
    bounds = "–".join(str(option[end]) for end in ("min", "max") if option.get(end) is not None)
    return f"{option['type']} {bounds} {option.get('unit') or ''}".strip()


def _amount(number: object, currency: str) -> str:
    return readable(Decimal(str(number)), currency)


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = failures.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


if __name__ == "__main__":
    sys.exit(main())
