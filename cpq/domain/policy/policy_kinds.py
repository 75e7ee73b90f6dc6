"""The closed choices of policies: severities, tax codes, levels of rounding, and how a part of a period is charged."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum

VALIDITY_DAYS_MAX = 3650
"""The longest validity of a quote, by the policies or as asked for."""


class Severity(StrEnum):
    WARNING = "warning"
    APPROVAL_REQUIRED = "approval_required"
    BLOCK = "block"


class TaxRounding(StrEnum):
    """The level at which tax is rounded: per category code and rate, per line, or once for the document."""

    GROUP = "group"
    LINE = "line"
    DOCUMENT = "document"


class TaxCode(StrEnum):
    """Why a rate applies, by EN 16931 (a part of UNCL5305): tax groups have a code and a rate."""

    STANDARD = "S"
    ZERO = "Z"
    EXEMPT = "E"
    REVERSE_CHARGE = "AE"
    INTRA_COMMUNITY = "K"
    EXPORT = "G"
    OUTSIDE_SCOPE = "O"

    @classmethod
    def of(cls, rate: Decimal) -> TaxCode:
        """The code of a rate that names none."""
        return cls.STANDARD if rate > 0 else cls.ZERO


class PartPeriods(StrEnum):
    """How a part of a billing period is charged."""

    WHOLE_MONTHS = "whole_months"
    WHOLE_MONTHS_UP = "whole_months_up"
    ACTUAL_DAYS = "actual_days"
    THIRTY_360 = "thirty_360"
    MONTHS_AND_DAYS = "months_and_days"
