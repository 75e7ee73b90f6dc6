"""The code that a document prints for scanning: what it stands for, its address, and how it is read again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from cpq.base.text import canonical_json

QUOTE_LENGTH_MAX = 128

_CODE = re.compile(r"([A-Za-z0-9_-]{1,64})\.([0-9a-f]{32})")
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_VERSION = re.compile(r"[1-9][0-9]{0,5}")


class ScanCode(NamedTuple):
    """A code as somebody sends it: well formed, but perhaps of no document."""

    tenant_id: str
    quote_id: str
    version: int
    code: str
    """Empty in the form of older documents, which have the fingerprint of the price instead."""
    fingerprint: str

    def is_of(self, content: Mapping[str, Any]) -> bool:
        """Whether a document with this content prints the code."""
        quote = content["quote"]
        return bool(quote.get("code") == self.code if self.code else quote["fingerprint"] == self.fingerprint)


def make_code(tenant_id: str, quote: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> str:
    """The code of a document: another price, text or stamp gives another code, and nobody can guess it."""
    content = canonical_json({"quote": quote, "lines": lines}).encode()
    return f"{tenant_id}.{hashlib.sha256(content).hexdigest()[:32]}"


def code_text(verify_url: str, quote: Mapping[str, Any]) -> str:
    """The text of the QR code. Older content has no code: quote, version and fingerprint stand for it."""
    named = "code" if "code" in quote else "fingerprint"
    known = {"quote": quote["id"], "version": quote["version"], named: quote[named]}
    joint = "" if verify_url.endswith(("?", "&", "#")) else "&" if "?" in verify_url or "#" in verify_url else "?"
    return f"{verify_url}{joint}{urlencode(known)}"


def read_code(given: Mapping[str, str]) -> ScanCode | None:
    """The code in the parameters of an address; None when it cannot be one of ours."""
    quote_id, version = given.get("quote", ""), given.get("version", "")
    code, fingerprint = given.get("code", ""), given.get("fingerprint", "")
    if not (0 < len(quote_id) <= QUOTE_LENGTH_MAX and quote_id.isprintable() and _VERSION.fullmatch(version)):
        return None
    if found := _CODE.fullmatch(code):
        return ScanCode(found[1], quote_id, int(version), code, "")
    if not code and _FINGERPRINT.fullmatch(fingerprint):
        return ScanCode("main", quote_id, int(version), "", fingerprint)
    return None
