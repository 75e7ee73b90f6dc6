"""One visit: the request of somebody who is signed in, and the endpoints that let visitors in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from cpq.app import Answer, App, Call, Command
from cpq.app.access import Permission, Principal
from cpq.app.sessions import Session
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.console.forms import clean_text, identifier, require_own_form, whole
from cpq.console.site import TITLES, Site
from cpq.console.template_files import link

T = TypeVar("T")

PAGE_ROWS = 50
"""Rows of a list on one page."""


@dataclass(frozen=True)
class Visit:
    """One request of somebody who is signed in."""

    site: Site
    request: Request
    session: Session
    form: Mapping[str, str]
    call: Call

    @property
    def principal(self) -> Principal:
        return self.session.principal

    @property
    def app(self) -> App:
        return self.site.app

    def query(self, name: str, default: str = "") -> str:
        """A parameter of the address, trimmed; whatever is no text is refused."""
        return clean_text(name, self.request.query_params.get(name, default))

    def named(self, name: str) -> str:
        """An id in the path of the address."""
        return identifier(name, self.request.path_params[name])

    def page_number(self) -> int:
        return min(whole(self.query("page")) or 1, 100_000)

    def read(self, name: str, work: Callable[[Tx], T], *, subject: str | None = None, **asked: Any) -> T:
        """Read as this person; like every call it is allowed by role and left on record."""
        needs = asked.pop("needs", Permission.READ)
        return self.app.read(self.call, Command(f"console_{name}", needs, asked, subject=subject), work)

    def write(self, command: Command, work: Callable[[Tx], Answer]) -> Answer:
        return self.app.write(self.call, command, work).answer

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        shared = {"session": self.session, "now": self.app.effects.now(), "path": self.request.url.path}
        content = self.site.templates.render(template, **shared, is_part=self.is_part, **values)
        return HTMLResponse(content, status)

    @property
    def is_part(self) -> bool:
        return is_part(self.request)

    @property
    def is_live(self) -> bool:
        """True for what a page asks by itself: nobody is there because of it."""
        return "live" in self.request.query_params


def is_part(request: Request) -> bool:
    """True when a page asks for a piece of itself. Going back asks alike, but puts the answer in place of all."""
    return "hx-request" in request.headers and "hx-history-restore-request" not in request.headers


def visited(site: Site, page: Callable[[Visit], Response]) -> Callable[[Request], Any]:
    """An endpoint for those who are signed in; others are sent to sign in first."""

    def serve(request: Request, form: Mapping[str, str]) -> Response:
        session = site.cookies.session_of(request)
        if session is None:
            return _to_sign_in(site, request)
        if request.method == "POST":
            require_own_form(form, session.form_token)
        visit = Visit(site, request, session, form, site.app.new_call(session.principal))
        if not visit.is_live:
            site.cookies.touch(session)
        try:
            return page(visit)
        except CpqError as error:
            return site.refusal(request, error, session)

    async def endpoint(request: Request) -> Response:
        return await site.run(request, serve)

    return endpoint


def open_to_all(
    site: Site, page: Callable[[Request, Mapping[str, str]], Response], *, asks: bool = False
) -> Callable[[Request], Any]:
    """An endpoint for strangers: the way in. `asks` says that it waits for somebody else's server."""

    async def endpoint(request: Request) -> Response:
        return await site.run(request, page, asks=asks)

    return endpoint


def _to_sign_in(site: Site, request: Request) -> Response:
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    target = link("/console/sign-in", next=here if request.method == "GET" else None)
    if is_part(request):
        response: Response = Response(status_code=401, headers={"HX-Redirect": "/console/sign-in"})
    elif request.method == "GET":
        response = RedirectResponse(target, 303)
    else:
        values = {"title": TITLES[401], "message": "You are signed out; nothing was done.", "hint": None}
        response = HTMLResponse(site.templates.render("error.html", **values, session=None, path=target), 401)
    if site.cookies.session_name in request.cookies:
        site.cookies.drop(response, site.cookies.session_name)
    return response
