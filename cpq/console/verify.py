"""The public page `/verify`: whether a scanned document was issued here, and whether it is current. Nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from cpq.app.access import ENGINE
from cpq.app.tenant_registry import ClosedTenantError
from cpq.base.errors import Code, CpqError
from cpq.base.rate_limit import RateLimiter
from cpq.base.tenant_folders import MAIN_TENANT
from cpq.console.security_headers import POLICY, as_header
from cpq.console.site import STATUS, Site
from cpq.services import documents
from cpq.services.documents import Standing

LOOKS_PER_MINUTE = 30
"""Per client address: a person scans a few papers."""

TEXTS = {
    Standing.CURRENT: ("Issued by us, and current", "We issued this document, and it is current."),
    Standing.NOT_CURRENT: (
        "Issued by us, not current",
        "We issued this document, but it is not current, or no longer. Ask your contact with us for the current one.",
    ),
    Standing.UNKNOWN: (
        "Not issued by us",
        "We issued no such document. Ask your contact with us before you rely on it.",
    ),
}
BUSY = ("We cannot say now", "Nothing was checked. Please try again in a minute.")


class VerifyPage:
    """The page and its limit. Every answer has the same form, and names neither quote nor customer nor price."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._looks = RateLimiter(LOOKS_PER_MINUTE, site.app.effects)
        self._style = site.templates.text("verify.css")
        allowed = base64.b64encode(hashlib.sha256(self._style.encode()).digest()).decode()
        # The page has its style inside, so that a proxy may show `/verify` to the world and nothing of the console.
        policy = {**dict.fromkeys(POLICY, "'none'"), "style-src": f"'sha256-{allowed}'"}
        self._headers = {
            "Content-Security-Policy": as_header(policy),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Robots-Tag": "noindex",
        }

    def show(self, request: Request, _form: Mapping[str, str]) -> Response:
        try:
            self._looks.take(request.client.host if request.client else "")
            standing = self._standing(request)
        except CpqError as error:
            wait: Any = error.details.get("retry_after_seconds", 5)
            return self._page(request, "busy", BUSY, STATUS.get(error.code, 500), {"Retry-After": str(int(wait) + 1)})
        return self._page(request, standing.value, TEXTS[standing])

    def _standing(self, request: Request) -> Standing:
        code = documents.read_code(request.query_params)
        if code is None:
            return Standing.UNKNOWN
        # Not audited: strangers could fill the record, and they see nothing of a quote.
        call = self._site.app.new_call(replace(ENGINE, tenant_id=code.tenant_id))
        try:
            return self._site.app.read_unaudited(call, lambda tx: documents.standing(tx, code))
        except ClosedTenantError as closed:
            if closed.code is Code.NOT_FOUND:
                return Standing.UNKNOWN
            raise

    def _page(
        self,
        request: Request,
        state: str,
        texts: tuple[str, str],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        code = documents.read_code(request.query_params)
        seller = self._site.seller(code.tenant_id if code else MAIN_TENANT)
        title, message = texts
        page = self._site.templates.render(
            "verify.html", seller=seller, state=state, title=title, message=message, style=self._style
        )
        return HTMLResponse(page, status, {**self._headers, **(headers or {})})
