"""Where the HTTP server listens, and who may call it there without saying who they are."""

import socket

import pytest

from cpq.app import Command, tokens
from cpq.app.access import OPERATOR, Permission
from cpq.base.errors import CpqError
from cpq.base.settings import Settings
from mcp_facade import http
from tests.support.engine import open_app
from tests.tools.test_server import browser, http_server, new_token

pytestmark = pytest.mark.anyio


def test_binding_to_the_network_without_a_token_refuses_to_start(store: Settings):
    app = open_app(store.model_copy(update={"host": "0.0.0.0"}))
    with pytest.raises(CpqError, match="no token"):
        http.require_safe_bind(app)
    app.close()
    new_token(store, "robo", "agent")
    app = open_app(store.model_copy(update={"host": "0.0.0.0"}))
    http.require_safe_bind(app)
    app.close()


@pytest.mark.parametrize("reached", [{"console_url": "https://cpq.example.com"}, {"allowed_hosts": "cpq.example.com"}])
async def test_behind_a_proxy_nobody_calls_without_a_token(store: Settings, reached: dict[str, str]):
    """The proxy is on this machine, too, so that the address says nothing of who calls."""
    with http_server(store.model_copy(update=reached)) as url:
        async with browser() as stranger:
            headers = {"Host": "cpq.example.com", "X-Forwarded-For": "203.0.113.7"}
            refused = await stranger.post(f"{url}/mcp", json={}, headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, "FORBIDDEN")


def test_a_port_that_is_taken_is_told_with_the_way_out(store: Settings):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        settings = store.model_copy(update={"port": other.getsockname()[1]})
        with pytest.raises(CpqError, match="cannot listen on") as refused:
            http.listener(settings)
    assert "MCP_PORT" in str(refused.value.details["hint"])


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
async def test_a_server_stays_shut_when_its_last_token_is_revoked(store: Settings, host: str):
    token = new_token(store, "robo", "agent")
    with http_server(store.model_copy(update={"host": host})) as url:
        app = open_app(store)

        def revoke(tx) -> dict:
            tokens.revoke_token(tx, token.split("_")[1])
            return {}

        app.write(app.new_call(OPERATOR), Command("token_revoke", Permission.ADMINISTER), revoke)
        app.close()
        async with browser() as client:
            for headers in ({}, {"Authorization": f"Bearer {token}"}):
                assert (await client.post(f"{url}/mcp", json={}, headers=headers)).status_code == 401
