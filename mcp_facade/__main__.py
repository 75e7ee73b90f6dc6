"""`python -m mcp_facade`: the MCP server over stdio, or over HTTP with the console. `cpq serve` is the same."""

from __future__ import annotations

import argparse
import logging
import math
import os
import socket
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from cpq.app import App, Call, Command, open_app, tokens
from cpq.app.access import Permission, Principal
from cpq.app.health import page_loop, policy_loop
from cpq.app.policy_keeper import HASH_SHOWN
from cpq.app.transaction import Tx
from cpq.base import background, logs, traces
from cpq.base.background import Loop
from cpq.base.errors import CpqError
from cpq.base.late_modules import LateModule
from cpq.base.memory import spare_the_collector, use_one_heap
from cpq.base.settings import TOKEN_VARIABLE, Settings, read_settings, strange_variables
from cpq.retrieval import context, docs, past_quotes
from cpq.retrieval.search import table_source
from cpq.retrieval.toolset_sources import sources_of
from cpq.services import agreements, approvals, documents, quotes
from mcp_facade.server import Facade
from mcp_facade.toolsets import tools_of

if TYPE_CHECKING:
    import uvicorn

    from cpq.console import routes
    from cpq.services.catalog import index_repair
    from cpq.services.events import delivery
    from mcp_facade import http, workers
else:  # Over stdio they would only take memory.
    delivery = LateModule("cpq.services.events.delivery")
    http = LateModule("mcp_facade.http")
    index_repair = LateModule("cpq.services.catalog.index_repair")
    routes = LateModule("cpq.console.routes")
    uvicorn = LateModule("uvicorn")
    workers = LateModule("mcp_facade.workers")

log = logging.getLogger("cpq.server")

SWEEP_SECONDS = 60.0
DRAFTS_SECONDS = 3600.0
DECISION_SECONDS = 1.0
"""How often decisions of the console are looked for whose time to undo is over."""


def main(arguments: list[str] | None = None) -> int:
    options = vars(_parser().parse_args(arguments))
    as_name, inherited = options.pop("as_name"), options.pop("inherited")
    try:
        settings = read_settings(**options)
        logs.configure(settings.log_level, settings.log_format)
        for warning in strange_variables(env_file=options["env_file"]):
            log.warning(warning)
        traces.start()
        if settings.workers > 1 and settings.transport != "stdio" and inherited is None:
            workers.supervise(settings, sys.argv[1:] if arguments is None else arguments, _say_where)
        else:
            _serve_or_log(settings, as_name, inherited)
    except CpqError as error:
        sys.stderr.write(f"{error.message}\n{error.details.get('hint', '')}\n")
        return 1
    return 0


def _serve_or_log(settings: Settings, as_name: str | None, inherited: tuple[int, int] | None) -> None:
    try:
        serve(settings, as_name, inherited)
    except CpqError as error:
        log.error("server failed", extra={"code": error.code.value, "reason": error.message})
        raise


def serve(settings: Settings, as_name: str | None = None, inherited: tuple[int, int] | None = None) -> None:
    """Serve until the client disconnects (stdio) or the process is stopped (HTTP)."""
    use_one_heap()
    app = open_app(settings, with_policies=settings.serves_deals)
    loops: list[Loop] = []
    try:
        _require_roots(app)
        loops += _loops(app)
        facade = Facade(app, tools_of(settings.enabled_toolsets), _principal(app, as_name))
        spare_the_collector()
        if settings.transport == "stdio":
            log.info("server started", extra=_described(app))
            _start(loops)
            anyio.run(facade.serve_stdio, backend_options={"use_uvloop": _has_uvloop()})
        else:
            http.require_safe_bind(app)
            serve_http(app, facade, loops, inherited)
    finally:
        background.stop(loops, background.LEAVE_SECONDS)
        app.close()
    log.info("server stopped", extra={"transport": settings.transport})


def serve_http(app: App, facade: Facade, loops: Sequence[Loop] = (), inherited: tuple[int, int] | None = None) -> None:
    """Listen until the process is stopped; a worker listens on the socket of all workers."""
    with closing(socket.socket(fileno=inherited[0]) if inherited else http.listener(app.settings)) as listener:
        app.settings = app.settings.model_copy(update={"port": listener.getsockname()[1]})
        log.info("server started", extra=_described(app))
        if inherited is None:
            _say_where(app.settings)
        _start(loops)
        endpoint = facade.http_endpoint(http.allowed_hosts(app.settings), http.allowed_origins(app.settings))
        application = http.build(app, endpoint, loops, routes.build(app, partial(_document, app), loops))
        config = uvicorn.Config(application, **http.listening(app.settings))
        if inherited:
            config.timeout_graceful_shutdown = math.ceil(
                app.settings.tool_timeout_seconds
            )  # Another one serves already.
        server = workers.WorkerServer(config, inherited[1]) if inherited else uvicorn.Server(config)
        server.run(sockets=[listener])


def _say_where(settings: Settings) -> None:
    """Print the addresses for the person at the terminal; a program reads them in the log."""
    where = settings.console_address
    addresses = {"mcp": f"{where}/mcp", "console": f"{where}/console", "health": f"{where}/healthz"}
    if settings.log_format == "json":
        log.info("listening", extra=addresses)
    else:
        sys.stderr.write("".join(f"{name:8} {address}\n" for name, address in addresses.items()))
        sys.stderr.flush()


def _loops(app: App) -> list[Loop]:
    """The background work of the server: expiry, untouched drafts, policies, decisions, events, vectors.

    A server that only searches leaves quotes to those that offer them.
    """

    def publishes() -> bool:
        """Other tenants may have webhooks where the main one has none."""
        return bool(app.settings.webhook_list) or len(app.tenants) > 0

    def sweep() -> float:
        approvals.sweep_if_due(app)
        if publishes():
            quotes.sweep(app)
        return SWEEP_SECONDS

    def sweep_drafts() -> float:
        quotes.sweep_drafts(app)
        if publishes():
            agreements.sweep(app)
        return DRAFTS_SECONDS

    def take_decisions() -> float:
        approvals.take_due(app)
        return DECISION_SECONDS

    loops: list[Loop] = []
    if app.settings.serves_deals:
        loops += [Loop("sweep", sweep), Loop("drafts", sweep_drafts), policy_loop(app)]
    loops += delivery.loops(app) if app.settings.webhook_list or app.settings.transport != "stdio" else []
    if app.settings.transport != "stdio":  # Only the console holds decisions, and a short life needs no upkeep.
        loops += [Loop("decisions", take_decisions), page_loop(app), index_repair.loop(app)]
    sources = sources_of(app.settings.enabled_toolsets)
    # Over stdio there is one caller, and few callers may not see names.
    variants = None if app.settings.transport == "stdio" else past_quotes.variants
    # Also without such toolsets: a search of the catalogue may build a corpus.
    loops.append(Loop("vectors", lambda: table_source.embed_round(app, sources, variants)))
    own = {"docs": docs.loops, "context": context.loops}
    return loops + [loop for name, make in own.items() if name in app.settings.enabled_toolsets for loop in make(app)]


def _require_roots(app: App) -> None:
    """Refuse to start when an enabled toolset has nothing to read."""
    if "docs" in app.settings.enabled_toolsets:
        docs.require(app.settings)
    if "context" in app.settings.enabled_toolsets:
        context.require(app)


def _document(app: App, call: Call, quote_id: str, version: int) -> bytes:
    """The customer's document of this version, for the console."""
    return documents.read_pdf(app, call, documents.DocumentRequest(quote_id, "standard", None, version))


def _described(app: App) -> dict[str, object]:
    """What is served and from where: a server started in the wrong folder shows itself at once."""
    settings = app.settings
    described: dict[str, object] = {
        "transport": settings.transport,
        "toolsets": ",".join(settings.enabled_toolsets),
        "home": str(settings.home.absolute()),
        "database": settings.database_name,
    }
    if settings.serves_deals:
        described["policies"] = str(app.policies.directory.absolute())
        described["policy_hash"] = app.policies.current().content_hash[:HASH_SHOWN]
        described["policy_state"] = app.policies.state()
    return described if settings.transport == "stdio" else {**described, "host": settings.host, "port": settings.port}


def _start(loops: Iterable[Loop]) -> None:
    for loop in loops:
        loop.start()


def _principal(app: App, as_name: str | None) -> Principal:
    """Who calls over stdio. To act as a person, their secret or an administrator's is needed once tokens exist."""
    if as_name is None:
        return app.local_agent
    presented = os.environ.get(TOKEN_VARIABLE, "").strip()

    def work(tx: Tx) -> Principal:
        found = tokens.find_principal(tx, as_name)
        return found if found.only_sells else tokens.act_as(tx, presented, as_name)

    return app.read(app.new_call(app.operator), Command("principal_find", Permission.READ, {"name": as_name}), work)


def _has_uvloop() -> bool:
    return sys.platform != "win32"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mcp_facade", description=__doc__)
    parser.add_argument("--transport", choices=["stdio", "streamable-http"], help="default: MCP_TRANSPORT or stdio")
    parser.add_argument("--host", help="HTTP bind address")
    parser.add_argument("--port", type=int, help="HTTP port")
    parser.add_argument("--workers", type=int, help="processes that serve HTTP; default: MCP_WORKERS or 1")
    parser.add_argument("--inherited", type=_inherited, help=argparse.SUPPRESS)
    parser.add_argument("--toolsets", help="comma list of toolsets, or `all`")
    parser.add_argument("--env-file", type=Path, metavar="FILE", help="file of settings; default: .env in CPQ_HOME")
    parser.add_argument("--as", dest="as_name", metavar="NAME", help="act as this principal (stdio)")
    return parser


def _inherited(text: str) -> tuple[int, int]:
    """The socket and the pipe that a worker gets from the process that keeps it."""
    listener, ready = map(int, text.split(","))
    return listener, ready


if __name__ == "__main__":
    sys.exit(main())
