"""PURE. What an order does: it begins an agreement, or changes one."""

from __future__ import annotations

from enum import StrEnum


class OrderKind(StrEnum):
    NEW = "new"
    AMENDMENT = "amendment"
    RENEWAL = "renewal"
    CANCELLATION = "cancellation"
