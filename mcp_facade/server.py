"""The MCP server on top of the SDK: runs calls in worker threads, under a time limit."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server import MCPServer, ServerRequestContext
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware, get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict, ValidationError
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from cpq import __version__
from cpq.app import App, Call
from cpq.app.access import Principal
from cpq.base import traces
from cpq.base.errors import Code, CpqError
from cpq.base.rate_limit import RateLimiter
from cpq.base.settings import Settings
from cpq.services import documents
from mcp_facade import house_template, prompts, stdio
from mcp_facade.envelope import Reply, failure
from mcp_facade.fair_shares import FairShares, RefusalPause
from mcp_facade.json_repair import MESSAGE_BYTES_MAX
from mcp_facade.registry import Registry, Tool

log = logging.getLogger("cpq.server")

PROGRESS_INTERVAL_SECONDS = 0.1
RUNNING_MAX = 48
"""Calls that run at a time, cancelled ones included; fewer than the database has connections."""

CALLER_RUNNING_MAX = 24
CALLER_JOBS_MAX = 4
"""Long calls of one caller that run at a time, for example documents, which few processes render."""

CALLER_WAITING_MAX = 100
PLACE_SECONDS = 30.0
NEAR_SHARE = 0.8
"""The share of its time after which the log warns of a call that still runs."""

SESSIONS_MAX = 1000
CALLER_SESSIONS_MAX = 100

REQUESTS_PER_CALL = 5
"""HTTP requests of a caller for each call that the rate limit allows: a notification, or what cannot be parsed, is a
request that no method counts. High enough that a client reads the refusals of its calls first."""

COUNTED_BY_THE_REGISTRY = "tools/call"
"""There the refusal of a tool call is audited."""

_MARKDOWN = "text/markdown"


class Facade(MCPServer[None]):
    """The tool registry behind the SDK's server: the SDK handles the protocol, the registry answers."""

    def __init__(self, app: App, tools: list[Tool], principal: Principal | None = None) -> None:
        super().__init__(
            "quotewright",
            title="Quotewright",
            version=__version__,
            instructions=prompts.instructions({tool.name for tool in tools}),
            log_level=app.settings.log_level,
            cache_hints={"tools/list": CacheHint(ttl_ms=300_000, scope="public")},
            middleware=[_tolerate_arguments, self._limit_methods, self._list_once],
            subscriptions=False,  # Nothing is published yet.
        )
        self.middleware.insert(0, _join_trace)  # Before the SDK opens its span.
        self.app = app
        self.registry = Registry(app, tools)
        self._local_principal = principal or app.local_agent
        self.places, self._jobs = _shares(app.settings)
        self._refusals = RefusalPause()
        self._requests = RateLimiter(app.settings.rate_limit_per_minute * REQUESTS_PER_CALL, app.effects)
        self._described = [_describe(tool) for tool in tools]
        self._lists: dict[str, Any] = {}
        """The answer to `tools/list` by the version of the protocol."""
        self._limiter: anyio.CapacityLimiter | None = None
        if "catalog_get" in self.registry.tools:
            self._add_product_resource()
        if "quote_pdf" in self.registry.tools:
            self._add_pdf_resource()
        if any(name in self.registry.tools for name, _ in prompts.STEPS):
            self._add_prompt()
        if "search_line_items" in self.registry.tools:
            self._add_house_template()

    async def list_tools(self) -> list[types.Tool]:
        return [*self._described, *await super().list_tools()]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Every failure becomes the error envelope; only tools of the SDK itself (in tests) go to the SDK."""
        if name not in self.registry.tools and self._tool_manager.get_tool(name) is not None:
            return await super().call_tool(name, arguments, context)
        reply = await self._answer(name, arguments, context)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text) for text in self.registry.texts_of(name, reply)],
            structured_content=reply.body,
            is_error=reply.is_error,
        )

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[None, Any] | None = None
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Answer an unknown prompt with INVALID_PARAMS, as the protocol requires; the SDK would fail."""
        known = {prompt.name: prompt for prompt in await self.list_prompts()}
        if name not in known:
            raise MCPError(types.INVALID_PARAMS, "There is no prompt of that name.", {"allowed": sorted(known)})
        takes = {argument.name: argument.required for argument in known[name].arguments or ()}
        if missing := sorted(each for each, needed in takes.items() if needed and each not in (arguments or {})):
            raise MCPError(types.INVALID_PARAMS, f"The prompt needs {', '.join(missing)}.", {"missing": missing})
        if set(arguments or {}) - set(takes):
            raise MCPError(types.INVALID_PARAMS, "The prompt has no such argument.", {"allowed": sorted(takes)})
        return await super().get_prompt(name, arguments, context)

    async def serve_stdio(self) -> None:
        await stdio.serve(self._lowlevel_server)

    def http_endpoint(self, allowed_hosts: list[str], allowed_origins: list[str]) -> HttpEndpoint:
        """The `/mcp` endpoint as an ASGI application, and the lifespan it needs."""
        inner = self.streamable_http_app(
            transport_security=TransportSecuritySettings(allowed_hosts=allowed_hosts, allowed_origins=allowed_origins),
            max_request_body_size=MESSAGE_BYTES_MAX,
            session_idle_timeout=900,
            max_sessions=SESSIONS_MAX,
            stateless_http=self.app.settings.stateless,
        )
        identified = _Identified(AuthContextMiddleware(inner), self.session_manager, self._limit_request)
        return HttpEndpoint(identified, lambda: inner.router.lifespan_context(inner))

    async def _limit_methods(self, ctx: ServerRequestContext[Any, Any], call_next: Any) -> Any:
        """The rate limit for all that is not a tool call. A list is large, and a client keeps it for minutes."""
        if ctx.method != COUNTED_BY_THE_REGISTRY and not ctx.method.startswith("notifications/"):
            try:
                count = partial(self.registry.take_turn, self._principal(), ctx.method)
                await anyio.to_thread.run_sync(count) if self.registry.is_shared else count()
            except CpqError as error:
                await self._refusals.wait(_caller(self._principal()))
                raise MCPError(types.INTERNAL_ERROR, error.message, failure(error).body) from error
        return await call_next(ctx)

    async def _limit_request(self, subject: str) -> CpqError | None:
        """The refusal of a caller who sends far more requests than calls are allowed; after a pause."""
        try:
            self._requests.take(subject)
        except CpqError as error:
            await self._refusals.wait(subject)
            return error
        return None

    async def _list_once(self, ctx: ServerRequestContext[Any, Any], call_next: Any) -> Any:
        """Shape and check the list of tools once: it is the same for all callers, and most of what a list costs."""
        is_whole = ctx.method == "tools/list" and {*(ctx.params or {})} <= {"_meta"}
        is_strange = ctx.session.client_params is None and not self.app.settings.stateless
        if not is_whole or is_strange:  # Before the handshake, the SDK refuses it.
            return await call_next(ctx)
        if ctx.protocol_version not in self._lists:
            self._lists[ctx.protocol_version] = await call_next(ctx)
        return self._lists[ctx.protocol_version]

    async def _answer(self, name: str, arguments: Mapping[str, Any], context: Context[None, Any] | None) -> Reply:
        """Run the call in a worker thread, under the time limit; cancel it when it is late or the client has left."""
        call = self.app.new_call(self._principal(), progress=_progress_reporter(context))
        shares = [self.places]
        if (tool := self.registry.tools.get(name)) is not None and tool.is_job:
            shares = [self._jobs, self.places]
        try:
            release = await _take_all(shares, _caller(call.principal))
        except CpqError as error:
            await self._refusals.wait(_caller(call.principal))
            return self.registry.refuse(call, name, error)
        reply = await self._run(call, name, arguments, release)
        if reply.code == Code.RATE_LIMITED:
            await self._refusals.wait(_caller(call.principal))
        return reply

    async def _run(self, call: Call, name: str, arguments: Mapping[str, Any], release: Callable[[], None]) -> Reply:
        done: list[Reply] = []
        turn = threading.Lock()

        def work() -> None:
            if not turn.acquire(blocking=False):
                return  # Cancelled before it began.
            try:
                done.append(self.registry.call(call, name, arguments))
            finally:
                release()  # By the thread itself, so that cancelled work still counts.

        seconds = self.app.settings.tool_timeout_seconds
        warning = asyncio.get_running_loop().call_later(NEAR_SHARE * seconds, _warn_of_limit, call, name, seconds)
        try:
            with anyio.move_on_after(seconds):
                await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads())
        except BaseException:
            call.cancel()  # The client has left; uncommitted work is discarded.
            raise
        finally:
            warning.cancel()
            if turn.acquire(blocking=False):  # No thread has begun it, and now none will.
                release()
                self.registry.refuse(call, name, CpqError(Code.TIMEOUT, "Cancelled before it began."))
        if not done and not call.cancel():
            while not done:  # Already committing: the answer follows in a moment.
                await anyio.sleep(0.005)
        return done[0] if done else _late(call, seconds, self.registry.tools.get(name))

    def _threads(self) -> anyio.CapacityLimiter:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(RUNNING_MAX * 2)
        return self._limiter

    def _principal(self) -> Principal:
        token = get_access_token()
        return token.principal if isinstance(token, _CallerToken) else self._local_principal

    def _add_prompt(self) -> None:
        @self.prompt(prompts.PROMPT_NAME, title=prompts.PROMPT_TITLE, description=prompts.PROMPT_DESCRIPTION)
        def recommended_order(wish: str = "") -> str:
            return prompts.recommended_order(self.registry.tools, wish)

    def _add_house_template(self) -> None:
        def settings() -> Settings:
            return self.app.of(self._principal().tenant_id).settings

        @self.prompt(
            house_template.PROMPT_NAME,
            title=house_template.PROMPT_TITLE,
            description=house_template.PROMPT_DESCRIPTION,
        )
        def draft_quote(wish: str = "") -> str:
            return house_template.draft_prompt(settings(), wish)

        @self.resource("template://house/quote", name="house_template", title="House template", mime_type=_MARKDOWN)
        def quote_skeleton() -> str:
            """The skeleton of a quote, part by part."""
            return house_template.read(settings(), house_template.QUOTE)

        @self.resource(
            "template://house/conventions", name="draft_conventions", title="Draft conventions", mime_type=_MARKDOWN
        )
        def draft_conventions() -> str:
            """How a draft is written: attribution, review blocks, verbatim text, no invented prices."""
            return house_template.read(settings(), house_template.CONVENTIONS)

        @self.resource(
            "template://house/characteristics/{category}",
            name="characteristics",
            title="Characteristics of a category",
            mime_type=_MARKDOWN,
        )
        def characteristics(category: str) -> str:
            """The block of characteristics that a line of this category gets in a quote."""
            try:
                return house_template.read_characteristics(settings(), category)
            except CpqError as error:
                raise ResourceNotFoundError(error.message) from error

    def _add_product_resource(self) -> None:
        @self.resource("product://{product_id}", name="product", title="Product", mime_type="application/json")
        async def product(product_id: str) -> str:
            """One product with specs, prices, options and relationships: what `catalog_get` answers."""
            arguments = {"product_id": product_id, "include_relationships": True}
            return _resource(await self._answer("catalog_get", arguments, None)).text

    def _add_pdf_resource(self) -> None:
        @self.resource("quote://{quote_id}/pdf", name="quote_pdf", title="Quote as PDF", mime_type="application/pdf")
        async def quote_pdf(quote_id: str) -> bytes:
            """The current version of a quote as a PDF, in the account's language: what `quote_pdf` makes."""
            return await self._read_pdf(quote_id=quote_id)

        @self.resource(
            "quote://{quote_id}/pdf/{version}/{template}/{locale}",
            name="quote_pdf_of_version",
            title="Version of a quote as PDF",
            mime_type="application/pdf",
        )
        async def quote_pdf_of_version(quote_id: str, version: int, template: str, locale: str) -> bytes:
            """The document that `quote_pdf` made, under the `resource_uri` of its answer."""
            return await self._read_pdf(quote_id=quote_id, version=version, template=template, locale=locale)

    async def _read_pdf(self, **arguments: Any) -> bytes:
        made = _resource(await self._answer("quote_pdf", arguments, None)).body
        return await anyio.to_thread.run_sync(documents.read_document, self.app.settings, made["checksum"])


def _resource(reply: Reply) -> Reply:
    """The reply to a resource read, where failures are protocol errors."""
    if reply.is_error:
        kind = ResourceNotFoundError if reply.code == Code.NOT_FOUND else ResourceError
        raise kind(reply.body["error"]["message"])
    return reply


@dataclass(frozen=True)
class HttpEndpoint:
    application: ASGIApp
    lifespan: Callable[[], Any]


class _CallerToken(AccessToken):
    """The SDK's token with the principal inside. The SDK binds sessions to the principal that opened them."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    principal: Principal


class _Identified:
    """Passes the principal that the HTTP layer has verified to the SDK."""

    def __init__(
        self,
        application: ASGIApp,
        sessions: StreamableHTTPSessionManager,
        limit: Callable[[str], Awaitable[CpqError | None]],
    ) -> None:
        self._application = application
        self._sessions = sessions
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal: Principal | None = scope.get("cpq.principal")
        if (
            self._sessions.stateless and scope["method"] != "POST"
        ):  # The SDK would hold a stream on which nothing comes.
            await JSONResponse(failure(_no_sessions()).body, 405, {"Allow": "POST"})(scope, receive, send)
            return
        if principal is not None:
            subject = _caller(principal)
            if (limited := await self._limit(subject)) is not None:
                seconds = int(str(limited.details["retry_after_seconds"]).partition(".")[0]) + 1
                await JSONResponse(failure(limited).body, 429, {"Retry-After": str(seconds)})(scope, receive, send)
                return
            if MCP_SESSION_ID_HEADER not in Headers(scope=scope) and self._has_many(subject):
                await JSONResponse(failure(_too_many_sessions()).body, 503, {"Retry-After": "60"})(scope, receive, send)
                return
            token = _CallerToken(token="", client_id=subject, scopes=[], subject=subject, principal=principal)
            scope = {**scope, "user": AuthenticatedUser(token)}
        await self._application(scope, receive, send)

    def _has_many(self, subject: str) -> bool:
        """Whether the caller has as many sessions as one caller may; the SDK only limits those of all callers."""
        owners = self._sessions._session_owners.values()  # The SDK shows them nowhere else.
        return sum(owner["subject"] == subject for owner in owners) >= CALLER_SESSIONS_MAX


def _shares(settings: Settings) -> tuple[FairShares, FairShares]:
    """The places of all calls, and those of long ones. Over stdio there is one caller, who may have them all."""
    is_shared = settings.transport != "stdio"
    return tuple(
        FairShares(
            places=RUNNING_MAX,
            per_caller=per_caller if is_shared else RUNNING_MAX,
            waiting_max=CALLER_WAITING_MAX,
            wait_seconds=min(PLACE_SECONDS, settings.tool_timeout_seconds),
        )
        for per_caller in (CALLER_RUNNING_MAX, CALLER_JOBS_MAX)
    )  # type: ignore[return-value] # Two of them.


async def _take_all(shares: Sequence[FairShares], caller: str) -> Callable[[], None]:
    """Take a place in each, and return what gives them back."""
    taken: list[FairShares] = []

    def release() -> None:
        while taken:
            taken.pop().give_back(caller)

    try:
        for share in shares:
            await share.take(caller)
            taken.append(share)
    except BaseException:
        release()
        raise
    return release


def _caller(principal: Principal) -> str:
    return f"{principal.tenant_id}/{principal.caller}"


def _too_many_sessions() -> CpqError:
    return CpqError(
        Code.UNAVAILABLE,
        f"This caller has {CALLER_SESSIONS_MAX} open sessions.",
        hint="Use one session for many calls, and end it with DELETE.",
        retry_after_seconds=60,
    )


def _no_sessions() -> CpqError:
    return CpqError(Code.VALIDATION_ERROR, "This server keeps no sessions.", hint="Send each message by POST.")


async def _join_trace(ctx: ServerRequestContext[Any, Any], call_next: Any) -> Any:
    """Continue the trace of the HTTP request. One that `_meta` names goes before it."""
    with traces.joined(ctx.request.headers if isinstance(ctx.request, HTTPConnection) else {}):
        return await call_next(ctx)


async def _tolerate_arguments(ctx: ServerRequestContext[Any, Any], call_next: Any) -> Any:
    """Pass a name or arguments of a wrong type to the registry, which answers with the error envelope.

    Remaining protocol errors carry the envelope as their data.
    """
    if ctx.method == "tools/call":
        params = dict(ctx.params or {})
        params["name"] = params["name"] if isinstance(params.get("name"), str) else ""
        params["arguments"] = _as_object(params.get("arguments"))
        ctx = replace(ctx, params=params)
    try:
        return await call_next(ctx)
    except MCPError as error:
        data = error.data if isinstance(error.data, dict) else {}
        raise MCPError(error.code, error.message, _protocol_error(error.message) | data) from error
    except ValidationError as error:
        message = "The request's parameters have the wrong shape."
        raise MCPError(types.INVALID_PARAMS, message, _protocol_error(message)) from error


def _protocol_error(message: str) -> dict[str, Any]:
    return failure(CpqError(Code.VALIDATION_ERROR, message)).body


def _as_object(arguments: Any) -> dict[str, Any]:
    if arguments is None:
        return {}
    with suppress(ValueError, RecursionError):  # Some clients send the object as its JSON text.
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    return dict(arguments) if isinstance(arguments, Mapping) else {"arguments": arguments}


def _describe(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.writes and not tool.is_open_world,
            destructive_hint=tool.is_destructive,
            idempotent_hint=not tool.makes_new,
            open_world_hint=tool.is_open_world,
        ),
    )


def _progress_reporter(context: Context[None, Any] | None) -> Callable[..., None]:
    """Reports progress from worker threads, forward only and at a limited rate.

    The start of a phase is always reported.
    """
    if context is None:
        return lambda _done, _total, _message, **_options: None
    last = {"at": -math.inf, "done": -1}

    def report(done: int, total: int, message: str, *, is_phase: bool = False) -> None:
        now = time.monotonic()
        is_due = is_phase or now - last["at"] >= PROGRESS_INTERVAL_SECONDS or done >= total
        if done > last["done"] and is_due:
            last.update(at=now, done=done)
            anyio.from_thread.run(context.report_progress, done, total, message)

    return report


def _warn_of_limit(call: Call, name: str, seconds: float) -> None:
    extra = {"tool": name[:64], "limit_seconds": seconds, "trace_id": call.trace_id}
    log.warning("time limit is near", extra=extra)


def _late(call: Call, seconds: float, tool: Tool | None) -> Reply:
    log.error("call given up", extra={"tool": tool.name if tool else "unknown", "trace_id": call.trace_id})
    advice = tool.late_hint if tool else None
    kept = "what was read so far is kept" if tool and tool.is_open_world else "nothing was changed"
    return failure(
        CpqError(
            Code.TIMEOUT,
            f"The call took longer than {seconds:g} seconds and was given up; {kept}.",
            trace_id=call.trace_id,
            hint=advice or "Ask for less at once, or try again with the same idempotency_key.",
        )
    )
