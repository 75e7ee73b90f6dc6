"""Notices of an action: the warnings of its answer, shown once, on the page of the quote after the redirect.

They travel in a cookie, so that neither the address repeats them nor a server has to keep them. The cookie is sealed
with the secret of the session, because other hosts of the same domain may set cookies here.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import RedirectResponse, Response

from cpq.console.template_files import link
from cpq.console.visit import Visit, quote_address

COOKIE = "cpq_notices"
BYTES_MAX = 2_500
"""Of the texts; a browser keeps about 4,000 bytes, and Base64 adds a third."""

SECONDS = 300


def to_quote(visit: Visit, quote_id: str, done: str, answer: Mapping[str, Any]) -> Response:
    """Go to the page of the quote, which shows what was done and the warnings of the answer."""
    response = RedirectResponse(link(quote_address(quote_id), done=done), 303)
    if answer.get("warnings"):
        content = base64.urlsafe_b64encode(json.dumps(_fitting(answer["warnings"])).encode()).decode()
        _keep(visit, response, quote_id, f"{content}.{_seal(visit, quote_id, content)}", SECONDS)
    return response


def take(visit: Visit, quote_id: str) -> list[str]:
    """The notices for the page of the quote; empty when there are none, or when the cookie is not of this session."""
    content, _, seal = visit.request.cookies.get(COOKIE, "").partition(".")
    if not hmac.compare_digest(seal.encode(), _seal(visit, quote_id, content).encode()):
        return []
    try:
        return [str(one) for one in json.loads(base64.urlsafe_b64decode(content))]
    except (binascii.Error, ValueError):
        return []


def forget(visit: Visit, response: Response, quote_id: str) -> None:
    """Remove the notices that the page has shown."""
    if COOKIE in visit.request.cookies:
        _keep(visit, response, quote_id, "", 0)


def _fitting(warnings: Sequence[str]) -> list[str]:
    """The warnings that fit into a cookie; the last one says how many are left out."""
    fitting = list(warnings)
    while len(json.dumps(fitting)) > BYTES_MAX:
        fitting.pop()
    left = len(warnings) - len(fitting)
    return [*fitting, f"And {left:,} more."] if left else fitting


def _seal(visit: Visit, quote_id: str, content: str) -> str:
    return hmac.new(visit.session.form_token.encode(), f"{quote_id}.{content}".encode(), "sha256").hexdigest()


def _keep(visit: Visit, response: Response, quote_id: str, value: str, seconds: int) -> None:
    is_secure = visit.site.cookies.is_secure
    address = quote_address(quote_id)
    response.set_cookie(COOKIE, value, max_age=seconds, path=address, httponly=True, secure=is_secure, samesite="lax")
