"""The public page `/accept/CODE`: the customer reads the offer that was sent, and accepts it without an account."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from cpq.app import Answer, Command, sessions
from cpq.app.access import ENGINE, Caller, Permission
from cpq.app.tenant_registry import ClosedTenantError
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.rate_limit import RateLimiter
from cpq.console.forms import require_own_form
from cpq.console.quote import DocumentBytes
from cpq.console.security_headers import POLICY, as_header
from cpq.console.site import STATUS, Site
from cpq.services.quotes import acceptance_links
from cpq.services.quotes.acceptance_links import LinkState, Offer

LOOKS_PER_MINUTE = 30
"""Per client address: a person reads one offer."""

TRIES_PER_MINUTE = 10
"""Per link, from whichever address."""

NAME_MAX = 100
CODE_MAX = 200
LINES_SHOWN = 100

UNKNOWN = ("This link is not valid", "Ask your contact with us for a new one. Nothing was accepted.")
BUSY = ("We cannot answer now", "Nothing was accepted. Please try again in a minute.")
OVER = ("This offer is no longer current", "Ask your contact with us for the current one. Nothing was accepted.")


class AcceptPage:
    """The page, its form, the document beside it, and their limits."""

    def __init__(self, site: Site, find: DocumentBytes | None) -> None:
        self._site, self._app, self._find = site, site.app, find
        self._looks = RateLimiter(LOOKS_PER_MINUTE, site.app.effects)
        self._tries = RateLimiter(TRIES_PER_MINUTE, site.app.effects)
        self._style = site.templates.text("verify.css") + site.templates.text("accept.css")
        allowed = base64.b64encode(hashlib.sha256(self._style.encode()).digest()).decode()
        # As on `/verify` the style is inside, so that a proxy needs to show nothing of the console.
        policy = {**dict.fromkeys(POLICY, "'none'"), "style-src": f"'sha256-{allowed}'", "form-action": "'self'"}
        self._headers = {
            "Content-Security-Policy": as_header(policy),
            "Cache-Control": "no-store",
            "X-Robots-Tag": "noindex",
        }

    def show(self, request: Request, _form: Mapping[str, str]) -> Response:
        """The offer, with a form while it can be accepted."""
        try:
            return self._shown(request, self._offer(request))
        except CpqError as error:
            return self._refused(request, error)

    def take(self, request: Request, form: Mapping[str, str]) -> Response:
        """Accept what the form showed. Sending it twice accepts once."""
        try:
            offer = self._offer(request)
            self._tries.take(offer.link_id)
            require_own_form(form, _form_token(_code(request)))
            if offer.state is not LinkState.OPEN:
                return RedirectResponse(request.url.path, 303)
            problem = _problem(form, offer)
            if problem:
                return self._shown(request, offer, form, problem)
            self._accept(request, offer, form)
        except CpqError as error:
            return self._refused(request, error)
        return RedirectResponse(request.url.path, 303)

    def document(self, request: Request, _form: Mapping[str, str]) -> Response:
        """The PDF of exactly this version."""
        try:
            offer = self._offer(request)
            reader = str(Caller("customer", offer.link_id))
            call = self._app.new_call(replace(ENGINE, tenant_id=sessions.tenant_of(_code(request)), acted_by=reader))
            content = self._find(call, offer.quote_id, offer.version) if self._find else None
            if content is None:
                raise CpqError(Code.NOT_FOUND, "There is no document.")
        except CpqError as error:
            return self._refused(request, error)
        headers = {
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
            "Content-Disposition": f'inline; filename="{offer.details["quote"]["number"]}.pdf"',
            "Cache-Control": "no-store",
        }
        return Response(content, media_type="application/pdf", headers=headers)

    def _offer(self, request: Request) -> Offer:
        """What the link is for. Not audited: strangers could fill the record; accepting and documents are."""
        self._looks.take(_address(request))
        code = _code(request)
        call = self._app.new_call(replace(ENGINE, tenant_id=sessions.tenant_of(code)))
        return self._app.read_unaudited(call, lambda tx: acceptance_links.look(tx, code))

    def _accept(self, request: Request, offer: Offer, form: Mapping[str, str]) -> None:
        code, name, chosen = _code(request), form["name"], form.get("option_set") or None
        seen, address = form.get("fingerprint", ""), _address(request)

        def work(tx: Tx) -> Answer:
            moved = acceptance_links.accept(tx, code, name=name, fingerprint=seen, option_set=chosen, address=address)
            return dict(moved or {"quote_id": offer.quote_id})

        call = self._app.new_call(acceptance_links.customer(sessions.tenant_of(code), offer.link_id))
        arguments = {"version": offer.version, "name": name, "fingerprint": seen, "option_set": chosen}
        command = Command("quote_accept", Permission.READ, arguments, subject=offer.quote_id)
        # No role is asked for: the link is the right, and `accept` looks at it again in its transaction.
        with self._app.audited(call, command) as record:
            self._app.write_within(call, record, work)

    def _shown(
        self, request: Request, offer: Offer, form: Mapping[str, str] | None = None, problem: str | None = None
    ) -> Response:
        if offer.state is LinkState.OVER:
            return self._page(request, 409, state="not_current", title=OVER[0], message=OVER[1])
        quote = offer.details["quote"]
        is_open = offer.state is LinkState.OPEN
        return self._page(
            request,
            400 if problem else 200,
            state="" if is_open else "current",
            title="Our offer to you" if is_open else "You have accepted this offer",
            message=None,
            offer=offer,
            quote=quote,
            pricing=offer.details["pricing"],
            lines=offer.details["line_items"][:LINES_SHOWN],
            more=max(0, len(offer.details["line_items"]) - LINES_SHOWN),
            is_open=is_open,
            has_document=self._find is not None,
            path=request.url.path,
            form=form or {},
            problem=problem,
            form_token=_form_token(_code(request)),
            name_max=NAME_MAX,
        )

    def _refused(self, request: Request, error: CpqError) -> Response:
        if error.code is Code.CONFLICT:
            title, message = OVER
        elif isinstance(error, ClosedTenantError) and error.code is Code.FORBIDDEN:
            title, message = BUSY
        else:
            title, message = UNKNOWN if error.code in (Code.NOT_FOUND, Code.FORBIDDEN) else BUSY
        wait: Any = error.details.get("retry_after_seconds", 5)
        status = STATUS.get(error.code, 500)
        headers = {"Retry-After": str(int(wait) + 1)} if status in (429, 503) else {}
        return self._page(request, status, headers, state="unknown", title=title, message=message)

    def _page(self, request: Request, status: int, headers: Mapping[str, str] | None = None, **values: Any) -> Response:
        seller = self._site.seller(sessions.tenant_of(str(request.path_params["code"])))
        values = {"offer": None, "seller": seller, "style": self._style, **values}
        page = self._site.templates.render("accept.html", **values)
        return HTMLResponse(page, status, {**self._headers, **(headers or {})})


def _problem(form: Mapping[str, str], offer: Offer) -> str | None:
    """What is missing in the form, for the person who filled it in."""
    name = form.get("name", "")
    if not name or len(name) > NAME_MAX or "\n" in name:
        return f"Write your name, in at most {NAME_MAX} characters."
    if offer.totals and form.get("option_set") not in offer.totals:
        return "Choose one of the alternatives."
    return None if form.get("agree") == "yes" else "Tick the box if you accept the offer."


def _code(request: Request) -> str:
    code = str(request.path_params["code"])
    if len(code) > CODE_MAX or not code.isascii() or not code.isprintable():
        raise CpqError(Code.NOT_FOUND, "There is no such link.")
    return code


def _form_token(code: str) -> str:
    """Only a page of this link has it: another site can neither read the address nor make the form."""
    return sessions.derived("form", code)


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
