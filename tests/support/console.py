"""The whole HTTP server with its console for tests, and people who sign in to it."""

import html
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import parse_qsl

import httpx2
import uvicorn

from cpq.app import App, sessions, tokens
from cpq.app.transaction import Tx
from cpq.base.background import Loop
from cpq.base.clock import Effects
from cpq.base.settings import Settings
from cpq.console import routes
from cpq.console.quote import DocumentBytes
from cpq.services.approvals.held_decisions import UNDO_SECONDS
from mcp_facade import http
from mcp_facade.server import Facade
from mcp_facade.toolsets import ALL_TOOLS
from tests.support import engine, loopback
from tests.support.engine import open_app

WAIT_SECONDS = 60
"""For an answer of a server on a busy machine; only what never comes is wrong."""


class Console:
    """A running server: its engine, its address, and ways in."""

    def __init__(self, app: App, url: str) -> None:
        self.app = app
        self.url = url
        self.tools = engine.Tools(app)
        self.visitors: list[httpx2.Client] = []

    def grant(self, name: str, *roles: str) -> None:
        def work(tx: Tx) -> dict[str, Any]:
            for role in roles:
                tokens.grant(tx, name=name, role=role)
            return {}

        engine.write(self.app, work)

    def link(self, name: str, **options: Any) -> str:
        """The address of a one-time link."""
        codes: list[str] = []

        def work(tx: Tx) -> dict[str, Any]:
            codes.append(sessions.new_link(tx, name, **options))
            return {}

        engine.write(self.app, work)
        return f"{self.url}/console/enter/{codes[-1]}"

    def visitor(self) -> httpx2.Client:
        """A browser without JavaScript that has not signed in; it sends the Origin that browsers send."""
        self.visitors.append(httpx2.Client(base_url=self.url, headers={"Origin": self.url}, timeout=WAIT_SECONDS))
        return self.visitors[-1]

    def signed_in(self, name: str, *roles: str) -> httpx2.Client:
        if roles:
            self.grant(name, *roles)
        visitor = self.visitor()
        address = self.link(name)
        answer = visitor.post(address, data={"form_token": form_token(visitor.get(address).text)})
        assert answer.status_code == 303, answer.text
        return visitor


def form_token(page: str) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', page)
    assert found, page
    return found[1]


def fields(page: str) -> dict[str, str]:
    """What the confirmation of a decision would send, but for the decision itself."""
    found = re.search(r'/decide\?([^"]*)"', page)
    assert found, page
    shown = dict(parse_qsl(html.unescape(found[1])))
    sent = {"approval_id": shown["approval_id"], "fingerprint": shown["fingerprint"], "version": shown["shown"]}
    return {"form_token": form_token(page), **sent}


def send(
    console: Console, visitor: httpx2.Client, quote_id: str, decision: str, comment: str = "", **changed: str
) -> Any:
    """Confirm a decision and let the time to undo it go by: the answer of its page, or why it was refused."""
    shown = fields(visitor.get(f"/console/quotes/{quote_id}").text)
    data = {**shown, "decision": decision, "comment": comment, **changed}
    return settle(console, visitor, visitor.post(f"/console/quotes/{quote_id}/decide", data=data))


def settle(console: Console, visitor: httpx2.Client, answer: Any) -> Any:
    """The result of a decision that was confirmed, once the time to undo it is over; a refusal stays as it is."""
    if answer.status_code != 303:
        return answer
    console.app.effects.advance(seconds=UNDO_SECONDS)  # type: ignore[attr-defined] # A clock that tests move.
    return visitor.get(answer.headers["location"])


@contextmanager
def serving(
    settings: Settings,
    effects: Effects | None = None,
    document: DocumentBytes | None = None,
    loops: Sequence[Loop] = (),
) -> Iterator[Console]:
    """The server on a free port of this machine, as `cpq serve` puts it together."""
    with loopback.kept_port() as port, closing(open_app(settings.model_copy(update={"port": port}), effects)) as app:
        endpoint = Facade(app, list(ALL_TOOLS)).http_endpoint(
            http.allowed_hosts(app.settings), http.allowed_origins(app.settings)
        )
        application = http.build(app, endpoint, loops, routes.build(app, document, loops))
        console = Console(app, f"http://127.0.0.1:{port}")
        with running(uvicorn.Config(application, **http.listening(app.settings), lifespan="on")):
            try:
                yield console
            finally:
                for visitor in console.visitors:
                    visitor.close()


@contextmanager
def running(config: uvicorn.Config) -> Iterator[None]:
    """The server in a thread of its own, from when it answers until it has stopped."""
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server has not started; what it said is in the log"
            time.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        thread.join()
