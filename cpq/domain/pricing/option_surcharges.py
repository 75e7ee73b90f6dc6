"""PURE. Stage 4, options: surcharges and reductions of the chosen configuration."""

from __future__ import annotations

from cpq.base.errors import Code, CpqError, bad_field
from cpq.base.money import from_micro
from cpq.domain.pricing.parts import Part, Plan
from cpq.domain.pricing.result import Stage

OPTIONS = Stage.OPTIONS


def add_options(part: Part) -> None:
    """Stage 4: add the surcharges of the chosen options, which may be negative, to the price and the list price."""
    plan = part.plan
    surcharges = plan.row.surcharges or plan.listed.surcharges
    chosen = [name for name, value in part.choices.items() if value in surcharges.get(name, ())]
    added = [surcharges[name][part.choices[name]] for name in chosen]
    if not any(added):
        return
    surcharge = listed_surcharge = part.surcharge = sum(added)
    if not plan.is_like_list:
        if surcharges is not plan.row.surcharges:
            raise _unlike_list(plan)
        listed_surcharge = _listed_surcharge(part)
        part.surcharge = surcharge if plan.costs is plan.row else listed_surcharge
    part.amount += surcharge * part.quantity
    part.listed += listed_surcharge * part.quantity
    # A reduction of a bundle reduces its components, so it may exceed the bundle's own price.
    if listed_surcharge < 0 and not plan.components:
        part.amount, part.listed = max(0, part.amount), max(0, part.listed)
    elif part.amount < 0 and not plan.components and not part.line.ramp:
        raise _below_zero(part, surcharge)
    source = ", ".join(sorted([f"{name}={part.choices[name]}" for name in chosen]))
    part.note(OPTIONS, part.amount, source, surcharge)


def _listed_surcharge(part: Part) -> int:
    surcharges = part.plan.listed.surcharges
    return sum([surcharges.get(name, {}).get(value, 0) for name, value in part.choices.items()])


def _below_zero(part: Part, surcharge: int) -> CpqError:
    return bad_field(
        "/product_id",
        f"The account's price {part.plan.row.id} of {part.plan.product_id} is below zero with the chosen options.",
        unit_price=from_micro(part.plan.row.unit_price),
        surcharge=from_micro(surcharge),
        hint="Correct the surcharges of the account's price, or leave out the options that reduce it.",
    )


def _unlike_list(plan: Plan) -> CpqError:
    return CpqError(
        Code.CONFLICT,
        f"The account's price {plan.row.id} of {plan.product_id} is billed or taxed in another way than the list "
        "price, so the list's surcharges of options do not fit it.",
        field="/product_id",
        hint="Give the account's price its own surcharges, or leave out the options that cost extra.",
    )
