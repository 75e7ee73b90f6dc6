"""`python -m mcp_facade`: the MCP server over stdio or HTTP. `cpq serve` is the same."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import anyio
import uvicorn

from cpq import access, logs
from cpq.access import LOCAL_AGENT, OPERATOR, Permission, Principal
from cpq.app import App, Command, open_app
from cpq.approvals import Sweeper
from cpq.config import Settings, read_settings
from cpq.errors import CpqError
from cpq.memory import spare_the_collector
from mcp_facade import http
from mcp_facade.server import Facade
from mcp_facade.tools import tools_of


def main(arguments: list[str] | None = None) -> int:
    options = vars(_parser().parse_args(arguments))
    as_name = options.pop("as_name")
    try:
        settings = read_settings(**options)
        logs.configure(settings.log_level, settings.log_format)
        serve(settings, as_name)
    except CpqError as error:
        sys.stderr.write(f"{error.message}\n{error.details.get('hint', '')}\n")
        return 1
    return 0


def serve(settings: Settings, as_name: str | None = None) -> None:
    """Serve until the client hangs up (stdio) or the process is told to stop (HTTP)."""
    app = open_app(settings)
    sweeper = Sweeper(app)
    try:
        facade = Facade(app, tools_of(settings.enabled_toolsets), _principal(app, as_name))
        spare_the_collector()
        sweeper.start()
        if settings.transport == "stdio":
            anyio.run(facade.serve_stdio, backend_options={"use_uvloop": _has_uvloop()})
        else:
            serve_http(app, facade)
    finally:
        sweeper.stop()
        app.close()


def serve_http(app: App, facade: Facade) -> None:
    """Listen until the process is told to stop."""
    http.require_safe_bind(app)
    endpoint = facade.http_endpoint(http.allowed_hosts(app.settings), http.allowed_origins(app.settings))
    uvicorn.run(
        http.build(app, endpoint),
        host=app.settings.host,
        port=app.settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=30,
        # h11 reads header values by the letter of the standard; httptools keeps trailing blanks in them.
        http="h11",
        ws="none",
    )


def _principal(app: App, as_name: str | None) -> Principal:
    if as_name is None:
        return LOCAL_AGENT
    found: dict[str, Principal] = {}
    command = Command("principal_find", Permission.READ, {"name": as_name})

    def look(tx: Any) -> dict[str, Any]:
        found["principal"] = access.find_principal(tx, as_name)
        return {}

    app.read(app.new_call(OPERATOR), command, look)
    return found["principal"]


def _has_uvloop() -> bool:
    return sys.platform != "win32"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mcp_facade", description=__doc__)
    parser.add_argument("--transport", choices=["stdio", "streamable-http"], help="default: MCP_TRANSPORT or stdio")
    parser.add_argument("--host", help="HTTP bind address")
    parser.add_argument("--port", type=int, help="HTTP port")
    parser.add_argument("--toolsets", help="comma list of toolsets, or `all`")
    parser.add_argument("--as", dest="as_name", metavar="NAME", help="act as this principal (stdio)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
