"""The cookies of the console: names, protection, and the session behind the session cookie."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo, available_timezones

from starlette.requests import Request
from starlette.responses import Response

from cpq.app import Answer, App, Call, sessions
from cpq.app.access import ENGINE
from cpq.app.sessions import Session
from cpq.app.tenant_registry import ClosedTenantError
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.settings import LOOPBACK

ZONE_NAME = "cpq_zone"
"""The cookie of the reader's time zone. It is no secret: the script of the pages sets it where it is missing."""

_ZONE = re.compile(r"[A-Za-z0-9_+/-]{1,64}")


def zone_of(request: Request) -> ZoneInfo:
    """The time zone that the cookie names; UTC without a valid one."""
    name = unquote(request.cookies.get(ZONE_NAME, ""))
    return ZoneInfo(name) if _ZONE.fullmatch(name) and name in known_zones() else ZoneInfo("UTC")


@lru_cache(maxsize=1)
def known_zones() -> frozenset[str]:
    return frozenset(available_timezones())


class Cookies:
    def __init__(self, app: App) -> None:
        self.app = app
        address = urlsplit(app.settings.console_address)
        # A loopback address proves nothing when the server listens on every interface or behind a proxy.
        is_local = address.scheme == "http" and address.hostname in LOOPBACK and app.settings.is_private
        self.is_secure = not is_local
        # Browsers accept a `__Host-` cookie only from this host, over https and for all its paths.
        self.prefix = "__Host-" if self.is_secure else ""

    @property
    def session_name(self) -> str:
        return f"{self.prefix}cpq_session"

    def session_of(self, request: Request) -> Session | None:
        """The session that the cookie names, if it has not ended. A bearer token is not accepted here."""
        secret = request.cookies.get(self.session_name, "")
        if not secret or len(secret) > 200 or not secret.isascii():
            return None
        found: list[Session | None] = []

        def look(tx: Tx) -> Answer:
            found.append(sessions.find(tx, secret, idle_minutes=self.app.settings.console_idle_minutes))
            return {}

        try:
            self.app.read_unaudited(self.upkeep_call(secret), look)
        except ClosedTenantError as closed:
            if closed.code is Code.NOT_FOUND:
                return None  # Their tenant was deleted, or somebody made the cookie up.
            raise
        return found[-1]

    def upkeep_call(self, presented: str) -> Call:
        """A call by the engine in the tenant named by a cookie or a link."""
        return self.app.new_call(replace(ENGINE, tenant_id=sessions.tenant_of(presented)))

    def touch(self, session: Session) -> None:
        """Record activity from time to time. A failure is ignored, so a busy database does not break the page."""
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
