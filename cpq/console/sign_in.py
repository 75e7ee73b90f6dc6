"""Signing in and out: one-time links, a new session each time, and a limit on attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from cpq.app import Answer, Command, sessions
from cpq.app.access import Permission, Principal
from cpq.app.sessions import SESSION_HOURS, Session
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.base.rate_limit import RateLimiter
from cpq.console.forms import require_own_form
from cpq.console.site import Site
from cpq.console.visit import Visit

TRIES_PER_MINUTE = 20
"""Per client address: a link is used once, so people need few attempts."""

HOME = "/console/queue"
STRANGER = Principal("anonymous", "agent", frozenset())


class Entrance:
    """The pages that need no session."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._tries = RateLimiter(TRIES_PER_MINUTE, site.app.effects)

    def sign_in(self, request: Request, _form: Mapping[str, str]) -> Response:
        """Explains how to sign in; a signed-in visitor is redirected."""
        target = own_path(request.query_params.get("next", ""))
        if self.site.cookies.session_of(request) is not None:
            return RedirectResponse(target, 303)
        with_provider = bool(self.site.app.settings.oidc_issuer)
        values = {"session": None, "with_provider": with_provider, "next": target, "path": request.url.path}
        return HTMLResponse(self.site.templates.render("sign_in.html", **values))

    def look_at_link(self, request: Request, _form: Mapping[str, str]) -> Response:
        """Shows who the link is for. Only the button uses the link, so a mail scanner does not."""
        self.take_try(request)
        code = request.path_params["code"]
        principal = self._person(code)
        token = sessions.derived("enter", code)
        values = {"session": None, "principal": principal, "form_token": token, "path": request.url.path}
        return HTMLResponse(self.site.templates.render("enter.html", **values))

    def use_link(self, request: Request, form: Mapping[str, str]) -> Response:
        self.take_try(request)
        code = request.path_params["code"]
        require_own_form(form, sessions.derived("enter", code))
        return self.let_in(request, self._person(code), lambda tx: sessions.enter(tx, code))

    def take_try(self, request: Request) -> None:
        """RATE_LIMITED when a client address tries too often."""
        self._tries.take(request.client.host if request.client else "")

    def let_in(
        self, request: Request, principal: Principal, begin: Callable[[Tx], Session], target: str = HOME
    ) -> Response:
        """Begin a session for an identified person, and end the earlier session of this browser."""
        begun: list[Session] = []
        before = request.cookies.get(self.site.cookies.session_name)

        def work(tx: Tx) -> Answer:
            if before:
                sessions.end(tx, before)
            begun.append(begin(tx))  # Kept out of the answer, because answers are stored.
            return {"name": principal.name}

        command = Command("console_sign_in", Permission.READ, {"name": principal.name})
        self.site.app.write(self.site.app.new_call(principal), command, work)
        response = RedirectResponse(target, 303)
        self.site.cookies.keep(response, self.site.cookies.session_name, begun[-1].secret, SESSION_HOURS * 3600)
        return response

    def note_refusal(self, error: CpqError) -> None:
        """Record a failed attempt."""
        command = Command("console_sign_in", Permission.READ)
        self.site.app.note(self.site.app.new_call(STRANGER), command, error.code.value)

    def _person(self, code: str) -> Principal:
        try:
            call = self.site.cookies.upkeep_call(code)
            return self.site.app.read_unaudited(call, lambda tx: sessions.who_enters(tx, code))
        except CpqError as error:
            self.note_refusal(error)
            raise


def sign_out(visit: Visit) -> Response:
    """End the session on the server, then drop the cookie."""

    def work(tx: Tx) -> Answer:
        sessions.end(tx, visit.session.secret)
        return {}

    visit.write(Command("console_sign_out", Permission.READ), work)
    response = RedirectResponse("/console/sign-in", 303)
    visit.site.cookies.drop(response, visit.site.cookies.session_name)
    return response


def own_path(wanted: str) -> str:
    """The wanted page if it is a console page, else the first page: a sign-in never redirects elsewhere."""
    is_ours = wanted.startswith("/console/") and wanted.isascii() and wanted.isprintable() and "\\" not in wanted
    return wanted if is_ours and not wanted.startswith(("/console/sign-in", "/console/enter")) else HOME
