"""What all pages share: engine, templates, session cookie, worker threads and the error page."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from cpq.app import App
from cpq.app.sessions import Session
from cpq.base import traces
from cpq.base.errors import Code, CpqError
from cpq.base.tenant_folders import MAIN_TENANT
from cpq.console.cookies import Cookies
from cpq.console.forms import read_form
from cpq.console.security_headers import protected
from cpq.console.template_files import Templates
from cpq.services import documents

log = logging.getLogger("cpq.console")

AT_ONCE_MAX = 16
"""Pages that are made at a time; the rest wait, so that pages do not starve the tools of connections."""

ASKING_AT_ONCE_MAX = 2
"""Pages at a time that wait for another server, which may hang; they have threads of their own."""

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
    400: "Invalid request",
    401: "Please sign in",
    403: "Not allowed",
    404: "Not found",
    409: "It has changed",
    429: "Too many requests",
    503: "Not available",
}


class Site:
    """The engine, the templates, the cookies, and the limits on concurrent pages."""

    def __init__(self, app: App, templates: Templates) -> None:
        self.app = app
        self.templates = templates
        self.cookies = Cookies(app)
        self._limiter = anyio.CapacityLimiter(AT_ONCE_MAX)
        self._asking_limiter = anyio.CapacityLimiter(ASKING_AT_ONCE_MAX)

    async def run(
        self,
        request: Request,
        serve: Callable[[Request, Mapping[str, str]], Response],
        *,
        page: str,
        asks: bool = False,
    ) -> Response:
        """Answer in a worker thread; every outcome becomes a response with security headers.

        `page` is its name in traces.
        """
        limiter = self._asking_limiter if asks else self._limiter
        try:
            form = await read_form(request)
            with traces.joined(request.headers), traces.span(f"console {page}", method=request.method):
                response = await anyio.to_thread.run_sync(serve, request, form, limiter=limiter)
        except CpqError as error:
            response = self.refusal(request, error)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception:
            trace_id = self.app.effects.new_id("tr-")
            # The rest of the address of a link is a secret.
            path = request.url.path.partition("/enter/")[0].partition("/accept/")[0]
            log.exception("page failed", extra={"path": path, "trace_id": trace_id})
            fault = CpqError(Code.INTERNAL_ERROR, "Something went wrong on the server.", hint=f"In the log: {trace_id}")
            response = self.refusal(request, fault)
        return protected(response)

    def seller(self, tenant_id: str) -> str:
        """The name on public pages; empty for a tenant that was not answered yet: strangers make up links."""
        if tenant_id != MAIN_TENANT and tenant_id not in self.app.tenants:
            return ""
        return documents.design_of(self.app.of(tenant_id).settings).brand.company.name

    def refusal(self, request: Request, error: CpqError, session: Session | None = None) -> Response:
        """The error page, with what to do."""
        status = STATUS.get(error.code, 500)
        title = TITLES.get(status, "Something went wrong")
        values = {"title": title, "message": error.message, "hint": error.details.get("hint"), "session": session}
        page = self.templates.render("error.html", **values, path=request.url.path)
        wait: Any = error.details.get("retry_after_seconds", 1)
        headers = {"Retry-After": str(int(wait) + 1)} if status in (429, 503) else None
        return HTMLResponse(page, status, headers)
