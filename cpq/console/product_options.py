"""The configurator of a product: every value with its reason, conflicts explained, repairs with their price.

It only reads, by the same use case as the tool `product_configure`. What is chosen stands in the address, and goes from
there into the form of a line, which stores it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import quote as urlquote

from starlette.responses import Response

from cpq.app import Answer
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import bad_field
from cpq.console.draft_form import OPTION
from cpq.console.formats import spelled
from cpq.console.forms import FIELDS_MAX, clean_text
from cpq.console.quote_line import product_of
from cpq.console.template_files import link
from cpq.console.visit import Visit, quote_address
from cpq.services import configuration, quotes

CHOICES_MAX = 12
"""Values that are shown side by side; more stand in a list."""

PLACES = ("quote_id", "line_id", "account_id")


def show(visit: Visit) -> Response:
    product_id, choices = visit.named("product_id"), _choices(visit)
    asked = {name: visit.query(name)[:128] for name in PLACES}

    def work(tx: Tx) -> Answer:
        quote = quotes.get(tx, asked["quote_id"], include_pricing=False)["quote"] if asked["quote_id"] else None
        account_id = quote["account_id"] if quote else asked["account_id"] or None
        product = product_of(tx, product_id)
        names = [option["name"] for option in product.get("options", [])]
        found = configuration.configure(
            tx,
            product["id"],
            choices,
            account_id=account_id,
            currency=quote["currency"] if quote else None,
            options=names[: configuration.SHOWN_OPTIONS_MAX],
        )
        return {"product": product, "quote": quote, "found": found, "account_id": account_id}

    answer = visit.read("configure", work, subject=product_id, product_id=product_id, choices=choices, **asked)
    product, found = answer["product"], answer["found"]
    address = f"/console/products/{urlquote(product['id'])}/configure"
    ways = _ways(found, address, asked)
    # A valid configuration is the only one: the others are no repairs of it.
    chosen = ways[0] if found["outcome"] == "valid" and ways else None
    return visit.page(
        "product_options.html",
        **answer,
        asked=asked,
        address=address,
        fields=[_field(option, found, choices, chosen) for option in product.get("options", [])],
        chosen=chosen,
        repairs=[] if chosen else ways,
        target=_target(asked, product["id"]) if visit.principal.may(Permission.QUOTE) else None,
    )


def _choices(visit: Visit) -> dict[str, str]:
    """The options in the address; those that are empty are left open."""
    given = visit.request.query_params.multi_items()
    if len(given) > FIELDS_MAX:
        raise bad_field("", f"An address has at most {FIELDS_MAX} parts.", maximum=FIELDS_MAX)
    texts = ((name.removeprefix(OPTION), clean_text(name, value)) for name, value in given if name.startswith(OPTION))
    return {name: value for name, value in texts if value}


def _field(
    option: Mapping[str, Any], found: Mapping[str, Any], choices: Mapping[str, str], chosen: Mapping[str, Any] | None
) -> dict[str, Any]:
    """One option: its values with their states, and why some of them are not possible now."""
    name = option["name"]
    view = next((one for one in found["options"] if one["option"] == name), None)
    excluded = [] if view is None or _is_beside_the_conflict(view, found) else view["excluded"]
    states = {spelled(value): group for group in excluded for value in group["values"] if not isinstance(value, list)}
    listed = option.get("values") or ([True, False] if option["type"] == "boolean" else [])
    values = [_value(spelled(value), states.get(spelled(value)), choices.get(name, "")) for value in listed]
    return {
        "name": OPTION + name,
        "label": option.get("label") or name.replace("_", " "),
        "unit": option.get("unit"),
        "given": choices.get(name, ""),
        "taken": _span(chosen["configuration"][name]) if chosen and name in chosen["configuration"] else "",
        "default": spelled(option["default"]) if option.get("default") is not None else "",
        "values": values,
        "is_short": len(values) <= CHOICES_MAX,
        "ranges": [_span(value) for value in (view["possible"] if view else [])] if not values else [],
        "reasons": [_reason(group) for group in excluded],
    }


def _is_beside_the_conflict(view: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether no value of an option is possible only because other choices cannot stand together."""
    concerned = {name for conflict in found["conflicts"] for name in conflict["choices"]}
    is_apart = view["chosen"] is None or view["option"] not in concerned
    return found["outcome"] == "conflict" and not view["possible"] and is_apart


def _value(text: str, group: Mapping[str, Any] | None, given: str) -> dict[str, Any]:
    return {
        "text": text,
        "shown": {"true": "yes", "false": "no"}.get(text, text),
        "is_given": text == given,
        "is_out": group is not None,
        "is_never": group is not None and group["possibility"] == "never",
        "why": _why(group) if group else "",
    }


def _reason(group: Mapping[str, Any]) -> dict[str, str]:
    values = ", ".join(_span(value) for value in group["values"])
    return {"values": values, "why": _why(group)}


def _why(group: Mapping[str, Any]) -> str:
    """Why values are not possible now, and which other options would have to change."""
    parts = [group["why"] or "not possible with the other choices."]
    if group["possibility"] == "never":
        parts.append("Never possible.")
    elif group["instead"]:
        parts.append(f"Possible if {' and '.join(name.replace('_', ' ') for name in group['instead'])} changes.")
    return " ".join(parts)


def _span(value: Any) -> str:
    if isinstance(value, list):
        return f"{spelled(value[0])} to {spelled(value[1])}"
    text = spelled(value)
    return {"true": "yes", "false": "no"}.get(text, text)


def _ways(found: Mapping[str, Any], address: str, asked: Mapping[str, str]) -> list[dict[str, Any]]:
    """The valid configurations, each with its address and its price against the first one."""
    ways: list[dict[str, Any]] = []
    for one in found["configurations"]:
        fields = {OPTION + name: spelled(value) for name, value in one["attributes"].items()}
        first = ways[0]["price"] if ways else None
        price = one["price"]
        difference = Decimal(price["subtotal"]) - Decimal(first["subtotal"]) if price and first else None
        ways.append(
            {
                **one,
                "fields": fields,
                "address": link(address, {**asked, **fields}),
                "difference": difference,
                "steps": [*_steps(one["changes"]), *_additions(one)],
            }
        )
    return ways


def _steps(changes: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for change in changes:
        after = "left out" if change["after"] is None else _span(change["after"])
        before = "open" if change["before"] is None else _span(change["before"])
        yield f"{change['option'].replace('_', ' ')}: {before} → {after}"


def _additions(one: Mapping[str, Any]) -> Iterable[str]:
    """What a configuration gives options that were left open."""
    for name in one["added"]:
        value = one["configuration"].get(name)
        yield f"{name.replace('_', ' ')}: {'left out' if value is None else _span(value)}"


def _target(asked: Mapping[str, str], product_id: str) -> dict[str, str]:
    """The form that takes the chosen options over: of a line, of a new line, or of a new quote."""
    if asked["quote_id"]:
        place = asked["line_id"] or "new"
        path = f"{quote_address(asked['quote_id'])}/lines/{urlquote(place)}"
        return {"path": path, "product_id": "" if asked["line_id"] else product_id, "account_id": ""}
    return {"path": "/console/quotes/new", "product_id": product_id, "account_id": asked["account_id"]}
