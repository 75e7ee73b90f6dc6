"""Domains of a constraint model's attributes: what they leave of the values of an option."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from cpq.domain.catalog.salesforce.losses import Fate, Outcome
from cpq.domain.configuration.options import spelled

NUMBER = r"-?\d{1,15}(?:\.\d{1,15})?"
RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})")


class _Domain(NamedTuple):
    values: tuple[str, ...]
    ranges: tuple[tuple[Decimal, Decimal], ...]

    def allows(self, value: object) -> bool:
        if isinstance(value, Decimal):
            return value in map(_number, self.values) or any(low <= value <= high for low, high in self.ranges)
        return spelled(value) in self.values


def narrow(option: dict[str, Any], written: Sequence[str]) -> Outcome:
    """Leave the values that a domain allows, unless it allows none of them; a default that is gone is left out."""
    spans = {value: match for value in written if (match := RANGE.fullmatch(value))}
    ranges = tuple((Decimal(one[1]), Decimal(one[2])) for one in spans.values())
    domain = _Domain(tuple(value for value in written if value not in spans), ranges)
    if not written:
        return Outcome(Fate.NO_COUNTERPART, "the facts do not have its values")
    if option["type"] == "enum":
        return _narrow_list(option, domain)
    if option["type"] == "number":
        return _narrow_number(option, domain)
    return Outcome(Fate.NO_COUNTERPART, f"the option is a {option['type']}, which has no list of values")


def _narrow_list(option: dict[str, Any], domain: _Domain) -> Outcome:
    values = option["values"]
    kept = [value for value in values if domain.allows(value)]
    if not kept:
        return Outcome(Fate.NO_COUNTERPART, "the option has none of its values in the export")
    if kept != values:
        option["values"] = kept
        _drop_default(option, domain)
        return Outcome(Fate.TRANSLATED, "an option, which keeps only its values")
    if set(domain.values) - {spelled(value) for value in kept}:
        return Outcome(Fate.TRANSLATED, "an option; its other values are not in the export")
    return Outcome(Fate.TAKEN, "an option with its values")


def _narrow_number(option: dict[str, Any], domain: _Domain) -> Outcome:
    if len(domain.ranges) == 1 and not domain.values:
        low, high = domain.ranges[0]
        least, most = max(option.get("min", low), low), min(option.get("max", high), high)
        if least > most:
            return Outcome(Fate.NO_COUNTERPART, "the option has none of its values in the export")
        if (option.get("min"), option.get("max")) == (least, most):
            return Outcome(Fate.TAKEN, "an option within its bounds")
        option |= {"min": least, "max": most}
        if "default" in option and not least <= option["default"] <= most:
            del option["default"]
        return Outcome(Fate.TRANSLATED, "the bounds of an option")
    numbers = [_number(value) for value in domain.values]
    if domain.ranges or "step" in option or None in numbers:
        return Outcome(Fate.NO_COUNTERPART, "the option is a number, which has no such values")
    kept = [one for one in numbers if one is not None and option.get("min", one) <= one <= option.get("max", one)]
    if not kept:
        return Outcome(Fate.NO_COUNTERPART, "the option has none of its values in the export")
    for name in ("min", "max"):
        option.pop(name, None)
    option |= {"type": "enum", "values": sorted(set(kept))}
    _drop_default(option, domain)
    return Outcome(Fate.TRANSLATED, "the values of an option")


def _drop_default(option: dict[str, Any], domain: _Domain) -> None:
    if "default" in option and not domain.allows(option["default"]):
        del option["default"]


def _number(written: str) -> Decimal | None:
    return Decimal(written) if re.fullmatch(NUMBER, written) else None
