"""PURE. A role that one person delegates to another for a period."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Delegation:
    """A role delegated for all quotes, for those of one account, or for one quote. People are named as callers."""

    id: str
    role: str
    delegator: str
    delegate: str
    starts_at: datetime
    ends_at: datetime
    account_id: str | None
    quote_id: str | None

    def is_active(self, now: datetime) -> bool:
        return self.starts_at <= now < self.ends_at

    def covers(self, quote_id: str, account_id: str) -> bool:
        return self.quote_id in (None, quote_id) and self.account_id in (None, account_id)
