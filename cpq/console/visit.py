"""The door of the console: who comes in, by which cookie, with which form; and what every answer carries."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from cpq.app import Answer, App, Call, Command, sessions
from cpq.app.access import ENGINE, Permission, Principal
from cpq.app.sessions import Session
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field
from cpq.base.settings import LOOPBACK
from cpq.base.text import clean, clean_identifier
from cpq.console.template_files import Showing, link

log = logging.getLogger("cpq.console")

T = TypeVar("T")

FORM_BYTES_MAX = 64 * 1024
FIELDS_MAX = 40
DIGITS_MAX = 6
AT_ONCE_MAX = 16
"""Pages in the making at a time; the rest wait, so that they do not take the database from the tools."""
ASKING_AT_ONCE_MAX = 2
"""Pages at a time that wait for somebody else's server, which may hang; they have threads of their own."""

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "font-src": "'self'",
    "connect-src": "'self'",
    "frame-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "X-Frame-Options": "DENY",
    # With none at all a browser would send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Content-Type-Options": "nosniff",
}
STATUS = {
    Code.VALIDATION_ERROR: 400,
    Code.FORBIDDEN: 403,
    Code.NOT_FOUND: 404,
    Code.CONFLICT: 409,
    Code.RATE_LIMITED: 429,
    Code.UNAVAILABLE: 503,
    Code.TIMEOUT: 504,
}
TITLES = {
    400: "That cannot be understood",
    401: "Please sign in",
    403: "Not allowed",
    404: "Not here",
    409: "It moved",
    429: "Too fast",
    503: "Not available just now",
}


class Door:
    """Everything that pages share: the engine, the templates, the cookies and the limits."""

    def __init__(self, app: App, showing: Showing) -> None:
        self.app = app
        self.showing = showing
        address = urlsplit(app.settings.console_address)
        # On every network interface, or under a name of a proxy's, the address says nothing about who listens in.
        is_local = address.scheme == "http" and address.hostname in LOOPBACK and app.settings.is_private
        self.is_secure = not is_local
        # A browser takes a name that starts so only from this very host, over https and for all its paths.
        self.prefix = "__Host-" if self.is_secure else ""
        self._limiter = anyio.CapacityLimiter(AT_ONCE_MAX)
        self._asking_limiter = anyio.CapacityLimiter(ASKING_AT_ONCE_MAX)

    @property
    def session_cookie(self) -> str:
        return f"{self.prefix}cpq_session"

    async def run(
        self, request: Request, serve: Callable[[Request, Mapping[str, str]], Response], *, asks: bool = False
    ) -> Response:
        """Answer in a worker thread, whatever happens; and put on every answer what protects whoever reads it."""
        limiter = self._asking_limiter if asks else self._limiter
        try:
            form = await _form(request)
            response = await anyio.to_thread.run_sync(serve, request, form, limiter=limiter)
        except CpqError as error:
            response = self.refusal(request, error)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception:
            trace_id = self.app.effects.new_id("tr-")
            # What follows in the address of a link is a secret.
            path = request.url.path.partition("/enter/")[0]
            log.exception("page failed", extra={"path": path, "trace_id": trace_id})
            fault = CpqError(Code.INTERNAL_ERROR, "Something went wrong on our side.", hint=f"In the log: {trace_id}")
            response = self.refusal(request, fault)
        return protected(response)

    def refusal(self, request: Request, error: CpqError, session: Session | None = None) -> Response:
        """A failure as a page that says what to do."""
        status = STATUS.get(error.code, 500)
        title = TITLES.get(status, "Something went wrong")
        values = {"title": title, "message": error.message, "hint": error.details.get("hint"), "session": session}
        page = self.showing.render("error.html", **values, path=request.url.path)
        wait: Any = error.details.get("retry_after_seconds", 1)
        headers = {"Retry-After": str(int(wait) + 1)} if status in (429, 503) else None
        return HTMLResponse(page, status, headers)

    def session_of(self, request: Request) -> Session | None:
        """Whoever the cookie names, if they are still signed in. A bearer token is no cookie and opens nothing."""
        secret = request.cookies.get(self.session_cookie, "")
        if not secret or len(secret) > 200 or not secret.isascii():
            return None
        minutes = self.app.settings.console_idle_minutes
        return self.app.read_unaudited(
            self.upkeep_call(secret), lambda tx: sessions.find(tx, secret, idle_minutes=minutes)
        )

    def upkeep_call(self, presented: str) -> Call:
        """The engine's own call in the tenant that a cookie or a link says it belongs to."""
        return self.app.new_call(replace(ENGINE, tenant_id=sessions.tenant_of(presented)))

    def touch(self, session: Session) -> None:
        """Note that the person is there, now and then. A busy database does not cost them the page."""
        idle = (self.app.effects.now() - session.seen_at).total_seconds()
        if idle >= sessions.TOUCH_SECONDS:
            with suppress(CpqError):
                self.app.upkeep(self.upkeep_call(session.secret), lambda tx: sessions.touch(tx, session.secret))

    def keep_cookie(self, response: Response, name: str, value: str, seconds: int) -> None:
        options: dict[str, Any] = {"httponly": True, "secure": self.is_secure, "samesite": "lax", "path": "/"}
        if self.prefix == "":
            options["path"] = "/console"
        response.set_cookie(name, value, max_age=seconds, **options)

    def drop_cookie(self, response: Response, name: str) -> None:
        self.keep_cookie(response, name, "", 0)


def protected(response: Response) -> Response:
    """With what every answer carries."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


@dataclass(frozen=True)
class Visit:
    """One request of somebody who is signed in."""

    door: Door
    request: Request
    session: Session
    form: Mapping[str, str]
    call: Call

    @property
    def principal(self) -> Principal:
        return self.session.principal

    @property
    def app(self) -> App:
        return self.door.app

    def query(self, name: str, default: str = "") -> str:
        """A parameter of the address, trimmed; whatever is no text is refused."""
        return _text(name, self.request.query_params.get(name, default))

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
        content = self.door.showing.render(template, **shared, is_part=self.is_part, **values)
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


def visited(door: Door, page: Callable[[Visit], Response]) -> Callable[[Request], Any]:
    """An endpoint for those who are signed in; others are sent to sign in first."""

    def serve(request: Request, form: Mapping[str, str]) -> Response:
        session = door.session_of(request)
        if session is None:
            return _to_sign_in(door, request)
        if request.method == "POST":
            require_own_form(form, session.form_token)
        visit = Visit(door, request, session, form, door.app.new_call(session.principal))
        if not visit.is_live:
            door.touch(session)
        try:
            return page(visit)
        except CpqError as error:
            return door.refusal(request, error, session)

    async def endpoint(request: Request) -> Response:
        return await door.run(request, serve)

    return endpoint


def open_to_all(
    door: Door, page: Callable[[Request, Mapping[str, str]], Response], *, asks: bool = False
) -> Callable[[Request], Any]:
    """An endpoint for strangers: the way in. `asks` says that it waits for somebody else's server."""

    async def endpoint(request: Request) -> Response:
        return await door.run(request, page, asks=asks)

    return endpoint


def require_own_form(form: Mapping[str, str], token: str) -> None:
    """FORBIDDEN unless the form came from a page of ours that was made for this very browser."""
    if not hmac.compare_digest(form.get("form_token", "").encode(errors="surrogatepass"), token.encode()):
        raise CpqError(
            Code.FORBIDDEN,
            "This form was not made for your session; nothing was done.",
            hint="Open the page again and repeat what you wanted to do.",
        )


def _to_sign_in(door: Door, request: Request) -> Response:
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    target = link("/console/sign-in", next=here if request.method == "GET" else None)
    if is_part(request):
        response: Response = Response(status_code=401, headers={"HX-Redirect": "/console/sign-in"})
    elif request.method == "GET":
        response = RedirectResponse(target, 303)
    else:
        values = {"title": TITLES[401], "message": "You are signed out; nothing was done.", "hint": None}
        response = HTMLResponse(door.showing.render("error.html", **values, session=None, path=target), 401)
    if door.session_cookie in request.cookies:
        door.drop_cookie(response, door.session_cookie)
    return response


async def _form(request: Request) -> Mapping[str, str]:
    """The fields of a posted form; an upload or a flood is refused before it is read."""
    if request.method != "POST":
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise bad_field("", "This is not a form of ours.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES_MAX:
            raise bad_field("", "The form is larger than 64 KiB.", maximum=FORM_BYTES_MAX)
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError:
        raise bad_field("", "This is not a form of ours.") from None
    return {name: _text(name, value) for name, value in pairs}


def _text(name: str, value: str) -> str:
    try:
        return clean(value.replace("\r\n", "\n")).strip()
    except ValueError as error:
        raise bad_field(f"/{name}", f"{name} {error}.") from None


def whole(text: str | None) -> int | None:
    """A page's or a version's number; None of anything else, however long it is."""
    is_number = text is not None and 0 < len(text) <= DIGITS_MAX and text.isascii() and text.isdigit()
    return int(text or 0) or None if is_number else None


def identifier(name: str, value: str) -> str:
    """An id as the tools take it: trimmed, not blank, nothing invisible in it."""
    try:
        cleaned = clean_identifier(value)
    except ValueError as error:
        raise bad_field(f"/{name}", f"{name} {error}.") from None
    if len(cleaned) > 128:
        raise bad_field(f"/{name}", f"{name} has at most 128 characters.", maximum=128)
    return cleaned
