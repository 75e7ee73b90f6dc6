"""PURE. Selling models: the ways in which a product is sold, and which of them a line picks."""

from __future__ import annotations

from collections.abc import Sequence

from cpq.base.errors import CpqError, bad_field, nearest
from cpq.base.money import amount, readable
from cpq.domain.billing_periods import is_recurring, spelling
from cpq.domain.pricing.price_selection import PriceSelection
from cpq.domain.pricing.request import PriceRow

EVERGREEN, TERM, USAGE = "_evergreen", "_term", "_usage"


def pick(selection: PriceSelection, product_id: str, asked: str | None, default: str | None) -> str:
    """The selling model whose prices compete for a line; empty where the product has only one.

    A line may ask by the model itself, or by a billing period, a kind (`term`, `evergreen`, `usage`) or a name that
    fits only one. Left out, or where several fit, the product's default decides; without one the line is refused with
    the choices. The account's own prices follow the same choice.
    """
    sold = selection.sold_as(product_id)
    if sold.is_in_one_way:
        charged = selection.of(product_id).charged
        if charged is None or asked is None or fits(charged.selling_model, asked):
            return ""
    fitting = _fitting(sold.models, asked) if asked is not None else list(sold.models)
    if len(fitting) != 1 and default is not None:
        fitting = _fitting(fitting, default) or fitting
    if len(fitting) == 1:
        return fitting[0]
    raise _which(selection, product_id, asked, fitting or list(sold.models))


def pick_part(selection: PriceSelection, product_id: str, model_of_bundle: str, default: str | None) -> str:
    """The selling model of a component: that of its bundle where it has it, else as for a line that asks for none."""
    models = selection.sold_as(product_id).models
    period = model_of_bundle.partition(":")[0]
    asked = next((word for word in (model_of_bundle, period) if _fitting(models, word)), None)
    return pick(selection, product_id, asked, default)


def fits(model: str, asked: str) -> bool:
    """Whether a word of a caller means the model: the model itself, its name, its period or its kind, or both.

    Periods may be written as anybody does: `month`, `2 weeks`.
    """
    sold, _, name = model.partition(":")
    period = sold.removesuffix(EVERGREEN).removesuffix(USAGE)
    kind = "evergreen" if is_evergreen(model) else "term" if is_recurring(period) else period
    if is_usage(model):
        kind = "usage"
    words = (
        model.casefold(),
        name.casefold() or None,
        sold,
        period,
        kind,
        f"{period}_{kind}",
        f"{period}:{name}".casefold(),
    )
    return asked.strip().casefold() in words or _respelled(asked) in words


def in_one_word(selling_model: str | None, billing_period: str | None) -> str | None:
    """What a line asks for that gives both apart: `evergreen` and `month` are `monthly_evergreen`."""
    if selling_model is None or billing_period is None:
        return selling_model or billing_period
    period = spelling(billing_period) or billing_period.strip()
    asked = selling_model.strip()
    sold = _respelled(asked).partition(":")[0]
    if period in (asked, sold.removesuffix(EVERGREEN).removesuffix(TERM).removesuffix(USAGE)):
        return asked
    return f"{period}_{asked}" if asked.casefold() in ("term", "evergreen", "usage") else f"{period}:{asked}"


def is_evergreen(model: str) -> bool:
    return model.partition(":")[0].endswith(EVERGREEN)


def is_usage(model: str) -> bool:
    return model.partition(":")[0].endswith(USAGE)


def _respelled(asked: str) -> str:
    """The word of a caller with its period in the one spelling."""
    sold, colon, name = asked.strip().casefold().partition(":")
    for ending in (EVERGREEN, TERM, USAGE, ""):
        period = spelling(sold.removesuffix(ending)) if sold.endswith(ending) else None
        if period:
            return f"{period}{ending}{colon}{name}"
    return f"{sold}{colon}{name}"


def _fitting(models: Sequence[str], asked: str) -> list[str]:
    """The model of exactly this word, else all that it may mean."""
    exact = [model for model in models if model.casefold() == asked.strip().casefold()]
    return exact or [model for model in models if fits(model, asked)]


def _which(selection: PriceSelection, product_id: str, asked: str | None, models: Sequence[str]) -> CpqError:
    currency = selection.currency
    rows = [row for model in models if (row := selection.of(product_id, model).charged) is not None]
    offers = [f"{row.selling_model} at {currency} {readable(amount(row.unit_price), currency)}" for row in rows]
    is_unknown = asked is not None and not _fitting(models, asked)
    reason = f"is not sold as {asked!r}" if is_unknown else "is sold in several ways"
    return bad_field(
        "/selling_model",
        f"{product_id} {reason}: {', '.join(offers)}.",
        allowed=list(models),
        nearest=(nearest(asked, models) or None) if asked is not None and is_unknown else None,
        choices=[_choice(row, currency) for row in rows],
        hint="Send one of them as the line's selling_model.",
    )


def _choice(row: PriceRow, currency: str) -> dict[str, object]:
    return {
        "selling_model": row.selling_model,
        "billing_period": row.billing_period,
        "unit_price": amount(row.unit_price),
        "currency": currency,
    }
