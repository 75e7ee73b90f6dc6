"""Option groups of a bundle: the options and rules that they stand for, and the components that choices take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from cpq.base.late_modules import LateModule
from cpq.domain.configuration.declarations import ComponentRow, GroupRow
from cpq.domain.configuration.options import NONE

if TYPE_CHECKING:
    from cpq.domain.pricing import request
    from cpq.domain.pricing.request import ChosenComponent
else:
    request = LateModule("cpq.domain.pricing.request")

DEPTH_MAX = 4
"""Groups within components within groups."""

COMPONENTS_MAX = 200
SAY_LENGTH_MAX = 500


class Expanded(NamedTuple):
    """What groups stand for: options of the product, in order, and rules between them."""

    options: dict[str, dict[str, Any]]
    rules: list[dict[str, Any]]


def read_groups(bundle: Mapping[str, Any]) -> tuple[GroupRow, ...]:
    """The groups of a stored bundle."""
    return tuple(GroupRow.model_validate(group) for group in bundle.get("groups", ()))


def option_names(bundle: Mapping[str, Any]) -> tuple[str, ...]:
    """The options that the groups of a stored bundle stand for."""
    return tuple(expand(read_groups(bundle)).options)


def expand(groups: Sequence[GroupRow]) -> Expanded:
    """The options and rules of groups; ValueError when two have one name, or when they are too many or too deep.

    A group of at most one component is an option whose values are the names of its components. Of other groups each
    component is an option, and the bounds are a rule. Options within a component apply only while it is chosen.
    """
    count = sum(1 for _ in _all_components(groups))
    if count > COMPONENTS_MAX:
        raise ValueError(f"a bundle has at most {COMPONENTS_MAX} components to choose from, not {count}")
    named = list(_options(groups, None))
    for name, times in Counter(name for name, _ in named).items():
        if times > 1:
            raise ValueError(f"{name!r} is the name of two options of the bundle")
    return Expanded(dict(named), list(_rules(groups)))


def chosen(groups: Sequence[GroupRow], choices: Mapping[str, object]) -> tuple[ChosenComponent, ...]:
    """The components that the choices of a completed configuration take, equal ones together, in declared order."""
    found: dict[tuple[str, bool], int] = {}
    for component, quantity in _taken(groups, choices, 1):
        key = component.product_id, component.included
        found[key] = found.get(key, 0) + quantity
    return tuple(request.ChosenComponent(id_, quantity, is_included) for (id_, is_included), quantity in found.items())


def products_within(groups: Sequence[GroupRow]) -> tuple[str, ...]:
    """The products that a buyer may choose, each once."""
    return tuple(dict.fromkeys(component.product_id for component in _all_components(groups)))


def _all_components(groups: Sequence[GroupRow], depth: int = 1) -> Iterator[ComponentRow]:
    if groups and depth > DEPTH_MAX:
        raise ValueError(f"groups are at most {DEPTH_MAX} deep")
    for group in groups:
        for component in group.components:
            yield component
            yield from _all_components(component.groups, depth + 1)


def _taken(groups: Sequence[GroupRow], choices: Mapping[str, object], times: int) -> Iterator[tuple[ComponentRow, int]]:
    for group in groups:
        for component in group.components:
            pieces = times * _pieces(group, component, choices)
            if pieces:
                yield component, pieces
                yield from _taken(component.groups, choices, pieces)


def _pieces(group: GroupRow, component: ComponentRow, choices: Mapping[str, object]) -> int:
    if group.is_single and choices.get(group.name) != component.name:
        return 0
    value = choices.get(_quantity_name(component) if group.is_single else component.name)
    if isinstance(value, Decimal) and component.max_quantity is not None:
        return max(0, int(value))
    return component.quantity if group.is_single or value is True else 0


def _options(groups: Sequence[GroupRow], active_when: Mapping[str, Any] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    within = {} if active_when is None else {"active_when": active_when}
    for group in groups:
        if group.is_single:
            yield group.name, {**_single(group), **within}
        for component in group.components:
            if not group.is_single:
                yield component.name, {**_several(component), **within}
            elif component.max_quantity is not None:
                number = _number(component, component.min_quantity or 1, component.quantity)
                yield _quantity_name(component), {**number, "active_when": _is_taken(group, component)}
            yield from _options(component.groups, _is_taken(group, component))


def _single(group: GroupRow) -> dict[str, Any]:
    can_be_none = group.min == 0 and not any(component.required for component in group.components)
    names = [component.name for component in group.components]
    default = next((one.name for one in group.components if one.default or one.required), NONE if can_be_none else None)
    option: dict[str, Any] = {"type": "enum", "values": [*names, *([NONE] if can_be_none else [])]}
    option |= {"required": True} if default is None else {"default": default}
    return {**option, **({"label": group.label} if group.label else {})}


def _several(component: ComponentRow) -> dict[str, Any]:
    is_taken = component.required or component.default
    if component.max_quantity is not None:
        least = (component.min_quantity or 1) if component.required else 0
        return _number(component, least, component.quantity if is_taken else 0)
    option: dict[str, Any] = {"type": "boolean", "default": is_taken}
    if component.required:
        option = {"type": "enum", "values": [True], "default": True}
    return {**option, **({"label": component.label} if component.label else {})}


def _number(component: ComponentRow, least: int, default: int) -> dict[str, Any]:
    option = {"type": "integer", "min": least, "max": component.max_quantity, "default": default}
    return {**option, **({"label": component.label} if component.label else {})}


def _quantity_name(component: ComponentRow) -> str:
    return f"{component.name}_quantity"


def _is_taken(group: GroupRow, component: ComponentRow) -> dict[str, Any]:
    """The condition that the component is chosen."""
    if group.is_single:
        return {group.name: component.name}
    return {component.name: True if component.max_quantity is None else {"min": 1}}


def _rules(groups: Sequence[GroupRow]) -> Iterator[dict[str, Any]]:
    for group in groups:
        if not group.is_single:
            yield from _bounds(group)
        for component in group.components:
            least = component.min_quantity or 1
            if not (group.is_single or component.required) and least > 1:
                say = f"Take at least {least} of {component.label or component.name}, or none"
                yield _rule(component.name, say, forbid={component.name: {"min": 1, "max": least - 1}})
            yield from _rules(component.groups)


def _bounds(group: GroupRow) -> Iterator[dict[str, Any]]:
    names = [component.name for component in group.components]
    most = min(group.max or len(names), len(names))
    if group.min or most < len(names):
        number = str(most) if group.min == most else f"{group.min} to {most}"
        say = f"Choose {number} of {group.label or group.name}: {', '.join(names)}"
        yield _rule(group.name, say, choose={"from": names, "min": group.min, "max": most})


def _rule(name: str, say: str, **construct: object) -> dict[str, Any]:
    return {"id": f"group.{name}", "say": say[:SAY_LENGTH_MAX], **construct}
