"""The real server with one more tool that does nothing, to measure what the protocol alone costs."""

import anyio
from typing_extensions import TypedDict

from cpq.app import open_app
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base import logs
from cpq.base.settings import read_settings
from mcp_facade.registry import tool
from mcp_facade.server import Facade
from mcp_facade.toolsets import ALL_TOOLS


class Nothing(TypedDict):
    done: bool


@tool(title="Do nothing", toolset="quotes", needs=Permission.READ)
def nothing(tx: Tx) -> Nothing:
    """Do nothing."""
    return {"done": True}


if __name__ == "__main__":
    settings = read_settings()
    logs.configure(settings.log_level, settings.log_format)
    app = open_app(settings)
    anyio.run(Facade(app, [*ALL_TOOLS, nothing]).serve_stdio, backend_options={"use_uvloop": True})
    app.close()
