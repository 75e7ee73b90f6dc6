"""Documents over MCP: with progress while they are made, and as a resource that a client can open."""

import base64
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import Client, MCPError

from mcp_facade.server import Facade
from mcp_facade.toolsets import tools_of
from tests.support import papers
from tests.support.engine import Tools

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_q35_the_pdf_is_made_with_progress_and_is_also_a_resource(desk: Tools, era: Any):
    """Q-35 over the wire; its resource has the same bytes, with template, locale and version, also after a revision."""
    told: list[tuple[float, float | None]] = []

    async def listen(done: float, total: float | None, _message: str | None) -> None:
        told.append((done, total))

    facade = Facade(desk.app, tools_of(("quotes", "deals")))
    async with Client(facade, mode=era) as client:
        call: Callable[..., Awaitable[Any]] = client.call_tool
        created = await call("quote_create", {"account_id": "acct_acme_001", "line_items": list(papers.MACHINES)})
        quote_id = created.structured_content["quote_id"]
        made = (await call("quote_pdf", {"quote_id": quote_id}, progress_callback=listen)).structured_content
        template = (await client.list_resource_templates()).resource_templates
        content = (await client.read_resource(made["resource_uri"])).contents[0]
        with pytest.raises(MCPError, match="Q-none"):
            await client.read_resource("quote://Q-none/pdf")
        german = {"quote_id": quote_id, "template": "detailed", "locale": "de", "version": 1}
        made_in_german = (await call("quote_pdf", german)).structured_content
        await call("quote_revise", {"quote_id": quote_id, "expected_version": 1})
        same = (await client.read_resource(made_in_german["resource_uri"])).contents[0]
    assert made_in_german["resource_uri"] == f"quote://{quote_id}/pdf/1/detailed/de"
    read = base64.b64decode(getattr(same, "blob", ""))
    assert f"sha256:{hashlib.sha256(read).hexdigest()}" == made_in_german["checksum"]
    assert "quote://{quote_id}/pdf" in {one.uri_template for one in template}
    assert content.mime_type == "application/pdf"
    pdf = base64.b64decode(getattr(content, "blob", ""))
    assert f"sha256:{hashlib.sha256(pdf).hexdigest()}" == made["checksum"]
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
