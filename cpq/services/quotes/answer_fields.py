"""Fields that mean the same in every answer about quotes."""

from __future__ import annotations

from typing import Annotated

from cpq.base.described import Described
from cpq.base.money import Amount

DiscountPct = Annotated[
    Amount,
    Described("All discounts together, the line's own and the requested one, in percent of the regular price."),
]
"""The one meaning of `discount_pct` in every answer, list and document."""
LineDiscountPct = Annotated[
    Amount, Described("The line's own discount, as it was asked for; send this one back as `discount_pct`.")
]
RequestedDiscountPct = Annotated[
    Amount, Described("The discount on the whole quote that is in force, on top of the line discounts.")
]
Number = Annotated[
    str, Described("The quote's number for people, `2026-000123`; every tool takes it where it takes the id.")
]
