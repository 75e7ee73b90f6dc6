"""The HTTP application: Host and Origin checks, authentication, health, metrics and the MCP endpoint."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import sqlalchemy as sa
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cpq import __version__
from cpq.app import App, Call, Command
from cpq.app.access import Permission, Principal
from cpq.app.health import readiness
from cpq.app.recorded_state import StateDiffersError
from cpq.app.tenant_registry import ClosedTenantError
from cpq.base import background, logs, running_servers, traces
from cpq.base.background import Loop
from cpq.base.errors import Code, CpqError, bad_field
from cpq.base.metrics import HTTP_REJECTED, WRITE_WAIT_SECONDS, exposition
from cpq.base.rate_limit import RateLimiter
from cpq.base.running_servers import RunningServer
from cpq.base.settings import LOOPBACK, Settings
from cpq.base.text import to_wire
from cpq.services.catalog import index_repair
from mcp_facade.envelope import failure
from mcp_facade.http_protocol import PatientProtocol
from mcp_facade.json_repair import HEAL_BYTES_MAX, MESSAGE_BYTES_MAX, heal

if TYPE_CHECKING:
    from mcp_facade.server import HttpEndpoint

log = logging.getLogger("cpq.http")
for each in (log, logging.getLogger("uvicorn.error")):  # It has a line for every malformed request.
    each.addFilter(logs.Sparse(per_minute=60))

BODY_SECONDS = 30.0
"""Time for the body of a request."""

BUFFERED_BYTES_MAX = 64 * 1024 * 1024
"""Bodies that are being received, of all callers together."""

SMALL_BODY_BYTES = 64 * 1024
"""A body of this size is received however much others hold: nearly all calls are smaller."""

READY_SECONDS = 2.0
"""How long an answer of `/readyz` counts; each new one writes to the database."""

GRACE_SECONDS = 5
"""Time for open requests after SIGTERM; a half-sent one would hold the server for as long as its own deadline."""

ANONYMOUS = Principal("anonymous", "agent", frozenset())


def build(app: App, endpoint: HttpEndpoint, loops: Sequence[Loop] = (), pages: Starlette | None = None) -> ASGIApp:
    """The whole HTTP application, with the console if it is given. It stops the loops on shutdown."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with endpoint.lifespan():
            with running_servers.announced(app.settings.home, described(app)):
                yield
        # Stopped here: a signal may end the process as soon as the server has stopped.
        await anyio.to_thread.run_sync(background.stop, loops, background.LEAVE_SECONDS)
        await anyio.to_thread.run_sync(app.flush_audit)
        await anyio.to_thread.run_sync(traces.flush)

    app.database.watch_waits(WRITE_WAIT_SECONDS.observe)
    checks = anyio.CapacityLimiter(1)
    last: tuple[float, dict[str, str]] = (-READY_SECONDS, {})

    def parts_now() -> dict[str, str]:
        """The state of a moment ago, or a new one: a flood of requests must not write a row each."""
        nonlocal last
        if app.effects.monotonic() - last[0] >= READY_SECONDS:
            parts = readiness(app, loops)
            is_usable = parts["database"] == parts["migrations"] == "ok"
            last = (app.effects.monotonic(), {**parts, "index": index_repair.state(app) if is_usable else "unknown"})
        return last[1]

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__})

    async def readyz(_: Request) -> Response:
        parts = await anyio.to_thread.run_sync(parts_now, limiter=checks)
        broken = {name for name, part in parts.items() if part != "ok"}
        # Only reported: the last valid policies are in use, and what needs no damaged page or space is still answered.
        is_ready = broken <= {"disk", "policies", "pages", "background", "index"}
        status = "unready" if not is_ready else "degraded" if broken else "ok"
        return JSONResponse({"status": status, "parts": parts}, 200 if is_ready else 503)

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(exposition(), media_type="text/plain; version=0.0.4")

    async def to_console(_: Request) -> Response:
        return RedirectResponse("/console/", 303)

    routes = [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        # People sign in; the console accepts no bearer token.
        *([Route(path, to_console) for path in ("/", "/console")] if pages else []),
        *(pages.state.public if pages else []),
        *([Mount("/console", pages)] if pages else []),
        Mount(
            "/",
            _Bearer(Starlette(routes=[Route("/metrics", metrics), Mount("/", _Readable(endpoint.application))]), app),
        ),
    ]
    return _Door(Starlette(routes=routes, lifespan=lifespan), app.settings)


def described(app: App) -> RunningServer:
    """This server, for the commands that have to find it."""
    settings = app.settings
    started_at = to_wire(app.effects.now())
    return RunningServer(settings.console_address, settings.port, os.getpid(), started_at)


def listener(settings: Settings) -> socket.socket:
    """The socket that the server listens on; port 0 lets the system choose a free one."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((settings.host, settings.port))
    except OSError as error:
        made.close()
        raise CpqError(
            Code.UNAVAILABLE,
            f"The server cannot listen on {settings.host}, port {settings.port}: {error.strerror}.",
            hint="Stop the program that uses it, or set MCP_PORT to another port.",
        ) from None
    return made


def listening(settings: Settings) -> dict[str, Any]:
    """The settings of uvicorn. Forwarded client addresses are trusted only behind a proxy (CPQ_CONSOLE_URL)."""
    return {
        "host": settings.host,
        "port": settings.port,
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": GRACE_SECONDS,
        "proxy_headers": bool(settings.console_url),
        "forwarded_allow_ips": ["127.0.0.1", "::1"],
        # h11 parses header values as the standard says; httptools keeps trailing blanks.
        "http": PatientProtocol,
        "ws": "none",
    }


def require_safe_bind(app: App) -> None:
    """Refuse to listen on the network while no authentication is configured."""
    if app.settings.host not in LOOPBACK and not app.has_callers():
        raise CpqError(
            Code.VALIDATION_ERROR,
            f"MCP_HOST is {app.settings.host}, which others can reach, but no token exists, so anyone could call.",
            hint="Run `cpq token create --name NAME --role agent`, or set MCP_AUTH_TOKEN, or bind to 127.0.0.1.",
        )


def allowed_hosts(settings: Settings) -> list[str]:
    """Accepted Host headers: loopback and the bind address on the server port, and those the operator lists."""
    own = {*LOOPBACK, settings.host} - {"0.0.0.0", "::"}  # noqa: S104 - compared, not bound
    listed = [host.strip().lower() for host in settings.allowed_hosts.split(",") if host.strip()]
    listed += [urlsplit(settings.console_url).netloc.lower()] if settings.console_url else []
    with_port = sorted(f"{_bracketed(host)}:{settings.port}" for host in own)
    # Clients leave out a default port.
    bare = sorted(map(_bracketed, own)) if settings.port in (80, 443) else []
    return [*with_port, *bare, *listed]


def allowed_origins(settings: Settings) -> list[str]:
    return [f"{scheme}://{host}" for host in allowed_hosts(settings) for scheme in ("http", "https")]


class _Door:
    """Answers only to known host names, which prevents DNS rebinding from a page in a browser."""

    def __init__(self, application: ASGIApp, settings: Settings) -> None:
        self._application = application
        self._hosts = set(allowed_hosts(settings))
        self._origins = set(allowed_origins(settings))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if headers.get("host", "").lower() not in self._hosts:
            reason, status = "host", 421
        elif origin is not None and origin.lower() not in self._origins:
            reason, status = "origin", 403
        elif "transfer-encoding" in headers and "content-length" in headers:
            await _refuse_two_lengths(scope, receive, send)
            return
        else:
            await self._application(scope, _timely(receive), _hardened(send))
            return
        HTTP_REJECTED.labels(reason=reason).inc()
        log.warning("request refused", extra={"reason": reason, "value": headers.get(reason, "")[:100]})
        error = CpqError(
            Code.FORBIDDEN,
            f"This {reason.capitalize()} is not served here.",
            hint="The operator lists the names that clients may use in MCP_ALLOWED_HOSTS.",
        )
        await JSONResponse(failure(error).body, status)(scope, receive, send)


async def _refuse_two_lengths(scope: Scope, receive: Receive, send: Send) -> None:
    """A proxy may read another length than we do, and take the rest of the body for the next request."""
    HTTP_REJECTED.labels(reason="length").inc()
    error = bad_field("", "A request has a Content-Length or a Transfer-Encoding, not both.")
    await JSONResponse(failure(error).body, 400, {"Connection": "close"})(scope, receive, send)


class _Bearer:
    """Authenticates the caller. On a loopback address without any token, that is the operator's own agent."""

    def __init__(self, application: ASGIApp, app: App) -> None:
        self._application = application
        self._app = app
        self._shared = _digest(app.settings.auth_token) if app.settings.auth_token else None
        self._strangers = RateLimiter(app.settings.rate_limit_per_minute, app.effects)
        # Separate from the threads of the tools, so that busy tools do not delay authentication.
        self._threads = anyio.CapacityLimiter(8)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app.settings.is_private and _is_metrics_of_this_machine(scope):
            await self._application(scope, receive, send)
            return
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        presented = token.strip() if scheme.lower() == "bearer" else ""
        try:
            principal = await anyio.to_thread.run_sync(self._identify, presented, limiter=self._threads)
        except StateDiffersError as error:
            await self._refuse(scope, receive, send, error)
            return
        except ClosedTenantError as error:
            HTTP_REJECTED.labels(reason="tenant").inc()
            await JSONResponse(failure(error).body, 403)(scope, receive, send)
            return
        except (CpqError, sa.exc.SQLAlchemyError) as error:
            log.warning("caller not identified: the database does not answer", extra={"reason": type(error).__name__})
            down = CpqError(Code.UNAVAILABLE, "The database does not answer.", hint="Try again.", retry_after_seconds=5)
            await JSONResponse(failure(down).body, 503, {"Retry-After": "5"})(scope, receive, send)
            return
        if principal is not None:
            await self._application({**scope, "cpq.principal": principal}, receive, send)
            return
        await self._refuse(scope, receive, send)

    def _identify(self, presented: str) -> Principal | None:
        if self._shared and presented and hmac.compare_digest(_digest(presented), self._shared):
            return self._app.local_agent
        if presented:
            return self._app.identify(presented)
        # A proxy in front also calls from loopback, for other callers.
        is_open = self._app.settings.is_private and not self._app.has_callers()
        return self._app.local_agent if is_open else None

    async def _refuse(
        self, scope: Scope, receive: Receive, send: Send, problem: StateDiffersError | None = None
    ) -> None:
        HTTP_REJECTED.labels(reason="token").inc()
        error: CpqError = problem or CpqError(
            Code.FORBIDDEN, "A valid bearer token is needed.", hint="Send the header `Authorization: Bearer …`."
        )
        status = 401
        try:
            self._strangers.take(ANONYMOUS.caller)
            call = Call(ANONYMOUS, self._app.effects.new_id("tr-"))
            await anyio.to_thread.run_sync(
                self._app.note, call, Command("authenticate", Permission.READ), Code.FORBIDDEN.value
            )
        except CpqError as limited:
            error, status = limited, 429
        wait = str(error.details.get("retry_after_seconds", 1)).partition(".")[0]
        headers = (
            {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            if status == 401
            else {"Retry-After": str(int(wait) + 1)}
        )
        await JSONResponse(failure(error).body, status, headers)(scope, receive, send)


class _Readable:
    """Passes on a body that the SDK can parse, so that hostile values reach validation."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application
        self._buffered = 0
        """Bytes of all bodies that are being received."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self._application(scope, receive, send)
            return
        body = bytearray()
        try:
            refusal = await self._receive(body, receive)
        finally:
            self._buffered -= len(body)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        readable = await self._readable(bytes(body))
        await self._application(_with_length(scope, readable), _again(readable, receive), send)

    async def _receive(self, body: bytearray, receive: Receive) -> ASGIApp | None:
        """Fill the body; returns the answer to a request that cannot be taken."""
        is_more = True
        while is_more:
            message = await receive()
            if message["type"] != "http.request":
                return _nothing  # The client has left.
            part = message.get("body", b"")
            body += part
            self._buffered += len(part)
            is_more = bool(message.get("more_body"))
            if len(body) > MESSAGE_BYTES_MAX:
                error = bad_field("", "The request is larger than 4 MiB.", maximum=MESSAGE_BYTES_MAX)
                return JSONResponse(failure(error).body, 413)
            if self._buffered > BUFFERED_BYTES_MAX and len(body) > SMALL_BODY_BYTES:
                busy = CpqError(
                    Code.UNAVAILABLE, "Too many large requests arrive.", hint="Try again.", retry_after_seconds=5
                )
                return JSONResponse(failure(busy).body, 503, {"Retry-After": "5"})
        return None

    async def _readable(self, body: bytes) -> bytes:
        try:
            from_json(body)  # The parser the SDK uses.
        except ValueError:
            if len(body) <= HEAL_BYTES_MAX:
                return await anyio.to_thread.run_sync(heal, body)
        return body


async def _nothing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """The answer to a client that has left."""


def _timely(receive: Receive) -> Receive:
    """A slow body ends like a lost connection; waiting for what comes after the body has no limit."""
    deadline: float | None = None
    is_more = True

    async def receiving() -> Message:
        nonlocal is_more, deadline
        message: Message = {"type": "http.disconnect"}
        if not is_more:
            return await receive()
        if deadline is None:  # From the first look on: a body that waits here already is no slow one.
            deadline = anyio.current_time() + BODY_SECONDS
        with anyio.move_on_after(deadline - anyio.current_time()):
            message = await receive()
        is_more = bool(message.get("more_body"))
        return message

    return receiving


def _again(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _is_metrics_of_this_machine(scope: Scope) -> bool:
    """Whether a program on this machine reads the metrics; others need a token once there are any."""
    client = scope.get("client")
    return scope["path"] == "/metrics" and client is not None and client[0] in LOOPBACK


def _with_length(scope: Scope, body: bytes) -> Scope:
    length = (b"content-length", str(len(body)).encode())
    others = [pair for pair in scope["headers"] if pair[0] not in (b"content-length", b"transfer-encoding")]
    return {**scope, "headers": [*others, length]}


def _hardened(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            extra = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
            present = {name.lower() for name, _ in message.get("headers", ())}
            headers = [*message.get("headers", ()), *(pair for pair in extra if pair[0] not in present)]
            message = {**message, "headers": headers}
        await send(message)

    return sending


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
