"""Several servers on one database, behind a load balancer that knows nothing of sessions."""

from contextlib import ExitStack

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from cpq.base.settings import Settings
from tests.support import loopback
from tests.support.round_robin import round_robin
from tests.tools.test_server import ERAS, browser, http_server

pytestmark = pytest.mark.anyio

NEW = {"account_id": "acct_acme_001", "line_items": [{"product_id": "prod_pro_v2", "quantity": 1}]}


@pytest.mark.parametrize("era", ERAS)
async def test_any_server_answers_any_call_when_no_session_is_kept(store: Settings, era):
    with ExitStack() as stack:
        port = stack.enter_context(loopback.kept_port())
        names = {"allowed_hosts": f"127.0.0.1:{port}", "auth_token": "s3cret"}
        shared = store.model_copy(update={"stateless": True, **names})
        servers = [stack.enter_context(http_server(shared)) for _ in range(2)]
        passed_on = stack.enter_context(round_robin(port, servers))
        address = f"http://127.0.0.1:{port}/mcp"
        async with (
            browser(Authorization="Bearer s3cret") as connection,
            Client(streamable_http_client(address, http_client=connection), mode=era) as client,
        ):
            assert len((await client.list_tools()).tools) > 20
            for _ in range(9):
                made = (await client.call_tool("quote_create", NEW)).structured_content
                found = (await client.call_tool("quote_get", {"quote_id": made["quote_id"]})).structured_content
                assert found["quote"]["id"] == made["quote_id"]
        assert {passed_on.count(server) >= 9 for server in servers} == {True}


async def test_a_server_without_sessions_takes_posts_only(sqlite_app):
    with http_server(sqlite_app.settings.model_copy(update={"stateless": True})) as url:
        async with browser(Accept="text/event-stream") as client:
            for method in ("GET", "DELETE"):
                refused = await client.request(method, f"{url}/mcp")
                assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
                assert refused.json()["error"]["message"] == "This server keeps no sessions."
