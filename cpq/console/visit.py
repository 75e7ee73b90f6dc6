"""One visit: a request of a signed-in person, and the endpoints for visitors and strangers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote as urlquote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from cpq.app import Answer, App, Call, Command
from cpq.app.access import Permission, Principal
from cpq.app.policy_keeper import PolicyKeeper
from cpq.app.sessions import Session
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.console.cookies import zone_of
from cpq.console.forms import clean_text, identifier, require_own_form, whole
from cpq.console.site import TITLES, Site
from cpq.console.template_files import link
from cpq.services import quotes

T = TypeVar("T")

PAGE_ROWS = 50
"""Rows of a list on one page."""

EXPORT_MAX = 10_000
"""Rows of a list in one file."""


@dataclass(frozen=True)
class Visit:
    """One request of a signed-in person."""

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

    @property
    def policies(self) -> PolicyKeeper:
        """Those of the person's tenant."""
        return self.app.of(self.principal.tenant_id).policies

    def query(self, name: str, default: str = "") -> str:
        """A parameter of the address, trimmed; invalid text is refused."""
        return clean_text(name, self.request.query_params.get(name, default))

    def named(self, name: str) -> str:
        """An id in the path of the address; a quote may be named by its number."""
        given = identifier(name, self.request.path_params[name])
        if name != "quote_id":
            return given
        return self.app.read_unaudited(self.call, lambda tx: quotes.id_of(tx, given))

    def page_number(self) -> int:
        return min(whole(self.query("page")) or 1, 100_000)

    @property
    def is_export(self) -> bool:
        """Whether the list is asked for as a file."""
        return self.query("format") == "csv"

    def shown_rows(self) -> dict[str, Any]:
        """The part of a list to read: a page of it, or for a file all of it up to a limit."""
        return {"limit": EXPORT_MAX, "page": 1} if self.is_export else {"limit": PAGE_ROWS, "page": self.page_number()}

    def chosen(self, name: str, allowed: Collection[str], default: str) -> str:
        """A choice in the address, or the default when it is not one of those allowed."""
        value = self.query(name)
        return value if value in allowed else default

    def read(self, name: str, work: Callable[[Tx], T], *, subject: str | None = None, **asked: Any) -> T:
        """Read as this person; permission is checked and the call is audited."""
        needs = asked.pop("needs", Permission.READ)
        return self.app.read(self.call, Command(f"console_{name}", needs, asked, subject=subject), work)

    def write(self, command: Command, work: Callable[[Tx], Answer]) -> Answer:
        return self.app.write(self.call, command, work).answer

    def new_form_key(self) -> str:
        """A key for one form, so that sending it twice does its work once."""
        return self.app.effects.new_id("form-")

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        shared: dict[str, Any] = {"session": self.session, "now": self.app.effects.now(), "path": self.request.url.path}
        shared["may_quote"] = self.principal.may(Permission.QUOTE)
        shared["zone"] = zone_of(self.request)
        content = self.site.templates.render(template, **shared, is_part=self.is_part, **values)
        return HTMLResponse(content, status)

    @property
    def is_part(self) -> bool:
        return is_part(self.request)

    @property
    def is_live(self) -> bool:
        """True for polling by the page itself, which is no activity of the person."""
        return "live" in self.request.query_params


def quote_address(quote_id: str) -> str:
    """The address of the page of a quote."""
    return f"/console/quotes/{urlquote(quote_id)}"


def is_part(request: Request) -> bool:
    """True when a page asks for a part of itself. History navigation replaces the whole page, so it does not count."""
    return "hx-request" in request.headers and "hx-history-restore-request" not in request.headers


def visited(site: Site, page: Callable[[Visit], Response]) -> Callable[[Request], Any]:
    """An endpoint for signed-in people; others are redirected to sign in."""

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
        return await site.run(request, serve, page=page.__name__)

    return endpoint


def open_to_all(
    site: Site, page: Callable[[Request, Mapping[str, str]], Response], *, asks: bool = False
) -> Callable[[Request], Any]:
    """An endpoint without a session, for signing in. `asks` marks one that waits for another server."""

    async def endpoint(request: Request) -> Response:
        return await site.run(request, page, page=page.__name__, asks=asks)

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
