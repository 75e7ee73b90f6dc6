"""PURE. The request to a receiver: the body, its signature by the Standard Webhooks scheme, and the retry pauses."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime

from cpq.base.text import canonical_json, to_wire

ATTEMPTS_MAX = 12
"""About 22 hours with the pauses between; then the delivery has failed and waits for a replay."""

FIRST_PAUSE_SECONDS = 5
PAUSE_SECONDS_MAX = 6 * 3600


def message(name: str, subject: str, number: int, created_at: datetime, body: Mapping[str, object]) -> bytes:
    """The same bytes for every attempt: exact numbers, sorted names, ASCII."""
    written = {"type": name, "timestamp": to_wire(created_at), "subject": subject, "number": number, "data": body}
    return canonical_json(written).encode()


def headers(keys: Sequence[bytes], event_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The id, the time, and one signature for each key: a receiver may know the new key or the old one."""
    timestamp = str(int(at.timestamp()))
    signatures = [signature(key, event_id, timestamp, body) for key in keys]
    return {
        "content-type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(signatures),
    }


def signature(key: bytes, event_id: str, timestamp: str, body: bytes) -> str:
    signed = b".".join((event_id.encode(), timestamp.encode(), body))
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def pause_seconds(attempt: int) -> int:
    """The pause after the given number of attempts: three times as long each time, up to six hours."""
    return min(FIRST_PAUSE_SECONDS * int(3 ** (min(attempt, ATTEMPTS_MAX) - 1)), PAUSE_SECONDS_MAX)
