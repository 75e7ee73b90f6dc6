"""The tools of a real server in a process of its own, called by a real MCP client over stdio."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters

from mcp_facade.envelope import Reply
from tests.support.engine import Tools


class RemoteTools(Tools):
    """Has the face of `Tools`, so that the same tests go through both doors."""

    def __init__(self, client: Client, portal: BlockingPortal) -> None:
        self._client = client
        self._portal = portal

    def reply(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        result = self._portal.call(partial(self._client.call_tool, name, dict(arguments)))
        assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
        return Reply(result.structured_content, bool(result.is_error))


def server(env: Mapping[str, str]) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-m", "mcp_facade"], env=dict(env))


def environment(home: Path, **settings: str) -> dict[str, str]:
    """What a server is started with: nothing of ours but these."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CPQ_", "MCP_", "CORTEX_"))}
    return {**env, "CPQ_HOME": str(home), "MCP_RATE_LIMIT_PER_MINUTE": "0", **settings}


@contextmanager
def served(env: Mapping[str, str]) -> Iterator[RemoteTools]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server(env))) as client:
        yield RemoteTools(client, portal)
