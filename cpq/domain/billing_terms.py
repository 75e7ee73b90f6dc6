"""PURE. What a price says besides its amount: when its periods are due, and what the end of a line gives back."""

from __future__ import annotations

from enum import StrEnum


class Billed(StrEnum):
    """When a period is due: at its start or at its end."""

    ADVANCE = "advance"
    ARREARS = "arrears"


class CancellationCredit(StrEnum):
    """What a customer gets back for the rest of a line that is cancelled."""

    NONE = "none"
    PRORATED = "prorated"
    FULL_PERIODS = "full_periods"
    """Only for periods that have not begun."""
