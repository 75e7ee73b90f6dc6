"""Faults of declared options and rules: each is named with its place and the nearest word."""

from typing import Any

import pytest

from cpq.base.errors import CpqError
from cpq.domain.configuration.model_compiler import compile_model


@pytest.mark.parametrize(
    "construct",
    [
        {"then": {"siz": 1}},
        {"when": {"siz": 1}, "then": {"hp": 1}},
        {"forbid": {"siz": 1}},
        {"table": {"columns": ["hp", "siz"], "rows": [[1, 1]]}},
        {"compare": {"left": {"hp": 1}, "op": ">=", "right": {"siz": 1}}},
        {"choose": {"from": ["siz"], "max": 1}},
        {"requires": ["hp", "siz"]},
        {"excludes": ["siz", "hp"]},
    ],
)
def test_a_rule_and_an_option_name_only_options_that_exist(construct: dict[str, Any]):
    sizes: list[dict[str, Any]] = [{"name": name, "type": "integer", "min": 0, "max": 9} for name in ("hp", "size")]
    rule = {"id": "r1", "say": "S.", **construct}
    with pytest.raises(CpqError) as error:
        compile_model(sizes, {"rules": [rule]})
    wanted = "'siz' is not an option; did you mean size?"
    assert error.value.details["problems"] == [{"field": "rules.r1", "message": wanted}]
    with pytest.raises(CpqError) as error:
        compile_model([{**sizes[0], "active_when": {"siz": 1}}, sizes[1]], {})
    assert error.value.details["problems"] == [{"field": "options.hp.active_when", "message": wanted}]
