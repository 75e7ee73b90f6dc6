"""Identifiers here for names in Salesforce, which may have blanks and other signs."""

from __future__ import annotations

import hashlib
import re

LENGTH_MAX = 64
DIGEST_LENGTH = 8


def identifier(name: str) -> str:
    """The name with dashes for signs that an identifier has not; a long one is cut and ends in its digest."""
    spelled = re.sub(r"[^A-Za-z0-9_.:-]+", "-", name).strip("-._:")
    if spelled and len(spelled) <= LENGTH_MAX:
        return spelled
    digest = hashlib.blake2b(name.encode(), digest_size=DIGEST_LENGTH // 2).hexdigest()
    return f"{spelled[: LENGTH_MAX - DIGEST_LENGTH - 1]}-{digest}" if spelled else f"x-{digest}"
