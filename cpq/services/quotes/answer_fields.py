"""Fields that mean the same in every answer about quotes."""

from __future__ import annotations

from typing import Annotated, NotRequired

from typing_extensions import TypedDict

from cpq.base.described import Described
from cpq.base.money import Amount, amount

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
RequestedDiscountAmount = Annotated[
    Amount, Described("The same as an amount without tax, where it was given as one; the percentage is then 0.")
]


class ComponentView(TypedDict):
    product_id: str
    name: str
    quantity: int
    included: Annotated[bool, Described("Whether the price of the bundle includes it; else it is charged on top.")]


class ComponentsView(TypedDict):
    """What was chosen for each piece of a bundle."""

    components: NotRequired[Annotated[list[ComponentView], Described("What was chosen for each piece of a bundle.")]]


class DiscountView(TypedDict):
    """The discount on the whole quote, as it was asked for."""

    requested_discount_pct: RequestedDiscountPct
    requested_discount_amount: NotRequired[RequestedDiscountAmount]


class OrderMade(TypedDict):
    """The order that an acceptance made."""

    order_id: NotRequired[Annotated[str, Described("The order that the acceptance made.")]]
    order_number: NotRequired[str]
    agreement_id: NotRequired[Annotated[str, Described("What the customer owns from now on.")]]


def discount_view(requested_discount: int, requested_amount: int | None) -> DiscountView:
    view: DiscountView = {"requested_discount_pct": amount(requested_discount)}
    if requested_amount:
        view["requested_discount_amount"] = amount(requested_amount)
    return view


def discount_argument(requested_discount: int, requested_amount: int | None) -> dict[str, Amount]:
    """The argument of quote_price that asks for this discount."""
    if requested_amount:
        return {"requested_discount_amount": amount(requested_amount)}
    return {"requested_discount_pct": amount(requested_discount)}


Number = Annotated[
    str, Described("The quote's number for people, `2026-000123`; every tool takes it where it takes the id.")
]
