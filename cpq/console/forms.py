"""Forms and addresses as people send them: their fields cleaned, their size limited, their token checked."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from cpq.base.errors import Code, CpqError, bad_field
from cpq.base.text import clean, clean_identifier

FORM_BYTES_MAX = 64 * 1024
FIELDS_MAX = 200
DIGITS_MAX = 6
COMMENT_MAX = 2_000


async def read_form(request: Request) -> Mapping[str, str]:
    """The fields of a posted form; an upload or an oversized body is refused before it is read."""
    if request.method != "POST":
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise bad_field("", "This form was not sent by the console.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES_MAX:
            raise bad_field("", "The form is larger than 64 KiB.", maximum=FORM_BYTES_MAX)
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError:
        raise bad_field("", "This form was not sent by the console.") from None
    return {name: clean_text(name, value) for name, value in pairs}


def require_own_form(form: Mapping[str, str], token: str) -> None:
    """FORBIDDEN unless the form came from a console page of this session."""
    if not hmac.compare_digest(form.get("form_token", "").encode(errors="surrogatepass"), token.encode()):
        raise CpqError(
            Code.FORBIDDEN,
            "This form was not made for your session; nothing was done.",
            hint="Open the page again and repeat what you wanted to do.",
        )


def clean_text(name: str, value: str) -> str:
    try:
        return clean(value.replace("\r\n", "\n")).strip()
    except ValueError as error:
        raise bad_field(f"/{name}", f"{name} {error}.") from None


def whole(text: str | None) -> int | None:
    """A page or version number; None for anything else."""
    is_number = text is not None and 0 < len(text) <= DIGITS_MAX and text.isascii() and text.isdigit()
    return int(text or 0) or None if is_number else None


def given(form: Mapping[str, str], name: str) -> str:
    """An id that the form must have."""
    return identifier(name, form.get(name, ""))


def optional_text(form: Mapping[str, str], name: str, most: int = COMMENT_MAX) -> str | None:
    """A free text, or None when it is blank."""
    text = form.get(name, "")
    if len(text) > most:
        raise bad_field(f"/{name}", f"A text has at most {most:,} characters here.", maximum=most)
    return text or None


def typed(form: Mapping[str, str]) -> dict[str, object]:
    """The fields that a person filled in, for the audit record and the idempotency key."""
    return {name: value for name, value in form.items() if name not in ("form_token", "form_key")}


def form_key(form: Mapping[str, str]) -> str | None:
    """The idempotency key of a form: sending the same form twice does its work once."""
    key = form.get("form_key", "")
    return identifier("form_key", key) if key else None


def identifier(name: str, value: str) -> str:
    """An id as the tools accept it: trimmed, not blank, without invisible characters."""
    try:
        cleaned = clean_identifier(value)
    except ValueError as error:
        raise bad_field(f"/{name}", f"{name} {error}.") from None
    if len(cleaned) > 128:
        raise bad_field(f"/{name}", f"{name} has at most 128 characters.", maximum=128)
    return cleaned
