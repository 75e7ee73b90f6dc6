"""The JSON schema of the policy files, for editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from cpq.domain.policy.facts import LINE_FACTS, QUOTE_FACTS, Declaration
from cpq.domain.policy.files.cases import CasesShape
from cpq.domain.policy.files.shapes import FILES, Shape
from cpq.domain.policy.language.nodes import Kind

_TYPES: dict[Kind, dict[str, Any]] = {
    Kind.NUMBER: {"type": ["number", "string", "null"]},
    Kind.TEXT: {"type": "string"},
    Kind.BOOLEAN: {"type": "boolean"},
}
_BOUNDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum"}
_DERIVED = {
    *("is_standard_terms", "has_term", "gross_value", "net_value", "total_value", "discount_value", "currency_rate"),
    *("deal_net_value", "deal_discount", "deal_discount_value", "account_net_value", "account_discount_value"),
    *("account_discount_90_days", "account_credit_value", "credit_value", "delta_value"),
    "line_count",
}
"""Facts that are derived from others, so that a case does not give them."""


def json_schema() -> dict[str, Any]:
    """One schema for all policy files; the first line of each file points to its entry in `$defs`."""
    models: list[type[Shape]] = [*FILES.values(), CasesShape]
    _, schema = models_json_schema([(model, "validation") for model in models], title="Policy files")
    definitions = schema["$defs"]
    words = ", ".join([*QUOTE_FACTS, *(f"line.{name}" for name in LINE_FACTS)])
    for model in ("RuleShape", "PricingRuleShape"):
        definitions[model]["properties"]["when"]["description"] += f". Facts: {words}"
    definitions["LineFacts"] = _facts_schema(LINE_FACTS, attributes={"type": "object"})
    lines = {"type": "array", "items": {"$ref": "#/$defs/LineFacts"}}
    others = {f"{group}_gross": _TYPES[Kind.NUMBER] for group in ("deal_others", "account_others", "account_90_days")}
    others |= dict.fromkeys(("delta", "account_90_days_credit"), _TYPES[Kind.NUMBER])
    definitions["QuoteFacts"] = _facts_schema(QUOTE_FACTS, **others, lines=lines)
    definitions["DecisionCase"]["properties"]["facts"] = {"$ref": "#/$defs/QuoteFacts"}
    for name, facts in (("quote", "QuoteFacts"), ("line", "LineFacts")):
        definitions["AdjustmentCase"]["properties"][name] = {"$ref": f"#/$defs/{facts}"}
    references = [{"$ref": f"#/$defs/{model.__name__}"} for model in models]
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "anyOf": references}
    return {name: _with_bounds(part) for name, part in whole.items()}


def _with_bounds(schema: Any) -> Any:
    """Rename the bounds of exact numbers: pydantic uses its own names for them, which no editor knows."""
    if isinstance(schema, list):
        return [_with_bounds(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {_BOUNDS.get(name, name): _with_bounds(part) for name, part in schema.items()}


def _facts_schema(facts: Mapping[str, Declaration], **more: object) -> dict[str, Any]:
    given = {
        name: {**_TYPES[fact.kind], "description": fact.meaning}
        for name, fact in facts.items()
        if fact.kind in _TYPES and name not in _DERIVED
    }
    return {"type": "object", "additionalProperties": False, "properties": {**given, **more}}
