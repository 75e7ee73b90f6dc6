"""The cookies of the console: their names and their protection, and the session that one of them names."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from cpq.app import Answer, App, Call, sessions
from cpq.app.access import ENGINE
from cpq.app.sessions import Session
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.base.settings import LOOPBACK


class Cookies:
    def __init__(self, app: App) -> None:
        self.app = app
        address = urlsplit(app.settings.console_address)
        # On every network interface, or under a name of a proxy's, the address says nothing about who listens in.
        is_local = address.scheme == "http" and address.hostname in LOOPBACK and app.settings.is_private
        self.is_secure = not is_local
        # A browser takes a name that starts so only from this very host, over https and for all its paths.
        self.prefix = "__Host-" if self.is_secure else ""

    @property
    def session_name(self) -> str:
        return f"{self.prefix}cpq_session"

    def session_of(self, request: Request) -> Session | None:
        """The session that the cookie names, if it has not ended. A bearer token is no cookie and opens nothing."""
        secret = request.cookies.get(self.session_name, "")
        if not secret or len(secret) > 200 or not secret.isascii():
            return None
        found: list[Session | None] = []

        def look(tx: Tx) -> Answer:
            found.append(sessions.find(tx, secret, idle_minutes=self.app.settings.console_idle_minutes))
            return {}

        self.app.read_unaudited(self.upkeep_call(secret), look)
        return found[-1]

    def upkeep_call(self, presented: str) -> Call:
        """The engine's own call in the tenant that a cookie or a link says it belongs to."""
        return self.app.new_call(replace(ENGINE, tenant_id=sessions.tenant_of(presented)))

    def touch(self, session: Session) -> None:
        """Note that the person is there, now and then. A busy database does not cost them the page."""
        idle = (self.app.effects.now() - session.seen_at).total_seconds()
        if idle >= sessions.TOUCH_SECONDS:
            with suppress(CpqError):
                self.app.upkeep(self.upkeep_call(session.secret), lambda tx: sessions.touch(tx, session.secret))

    def keep(self, response: Response, name: str, value: str, seconds: int) -> None:
        options: dict[str, Any] = {"httponly": True, "secure": self.is_secure, "samesite": "lax", "path": "/"}
        if self.prefix == "":
            options["path"] = "/console"
        response.set_cookie(name, value, max_age=seconds, **options)

    def drop(self, response: Response, name: str) -> None:
        self.keep(response, name, "", 0)
