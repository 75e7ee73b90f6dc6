"""Webhooks as a setting writes them: the addresses that receive events, and the secrets that sign these."""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit


class Webhook(NamedTuple):
    """An address that receives events, and its name in the deliveries."""

    name: str
    url: str


WEBHOOKS_MAX = 20
_NAMED = re.compile(r"([A-Za-z0-9_.-]{1,64})=(.*)", re.DOTALL)


@lru_cache(maxsize=8)
def read_webhooks(text: str) -> tuple[Webhook, ...]:
    """The webhooks of a comma list; the host is the name of one without a name. ValueError says what is wrong."""
    found: dict[str, Webhook] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        named = _NAMED.fullmatch(part)
        webhook = _webhook(named[1] if named else None, named[2] if named else part)
        if webhook.name in found:
            raise ValueError(f"two webhooks are called {webhook.name}; write name=url to give each its own name")
        found[webhook.name] = webhook
    if len(found) > WEBHOOKS_MAX:
        raise ValueError(f"there are {len(found)} webhooks; {WEBHOOKS_MAX} are allowed")
    return tuple(found.values())


def _webhook(name: str | None, url: str) -> Webhook:
    """Read one webhook. A refusal names at most the host, because the rest of the address may be secret."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("a webhook has an address that cannot be read") from None
    if not host or parts.scheme not in ("http", "https"):
        raise ValueError("a webhook is an address that starts with http:// or https://, or name=address")
    if parts.username is not None or parts.fragment or not (url.isascii() and url.isprintable()) or " " in url:
        raise ValueError(f"the webhook at {host} has a user, a fragment, a blank or a special character in its address")
    if not _is_host(host):
        raise ValueError(f"the webhook at {host} has an invalid host")
    return Webhook(name or (host if port is None else f"{host}:{port}"), url)


def _is_host(host: str) -> bool:
    """Whether the host can be resolved: no part is empty or too long."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return not host.startswith(".")


@lru_cache(maxsize=8)
def read_secrets(text: str) -> tuple[bytes, ...]:
    """The keys of a comma list of secrets: each `whsec_` and base64 of 24 to 64 bytes; otherwise ValueError."""
    keys = []
    for part in filter(None, map(str.strip, text.split(","))):
        try:
            key = base64.b64decode(part.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            key = b""
        if not part.startswith("whsec_") or not 24 <= len(key) <= 64:
            raise ValueError("a secret is whsec_ and base64 of 24 to 64 bytes: echo whsec_$(openssl rand -base64 32)")
        keys.append(key)
    return tuple(keys)
