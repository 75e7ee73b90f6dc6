"""The security headers of every answer."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

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


def as_header(policy: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {value}" for name, value in policy.items())


HEADERS = {
    "Content-Security-Policy": as_header(POLICY),
    "X-Frame-Options": "DENY",
    # With `no-referrer` a browser would send `Origin: null` with the console's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Content-Type-Options": "nosniff",
}


def protected(response: Response) -> Response:
    """The response with the security headers."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response
