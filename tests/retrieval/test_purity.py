"""Retrieval modules that claim to be pure touch no database, file, clock, thread, log or setting."""

import ast

import pytest

from tests.test_tidy import IMPURE_MODULES, NAMES, imports, tree

PURE = {
    name: path
    for path, name in NAMES.items()
    if name.startswith("cpq.retrieval.") and (ast.get_docstring(tree(path)) or "").startswith("PURE.")
}
RULES = [name for name in NAMES.values() if name.startswith("cpq.retrieval.web.rules")]


@pytest.mark.parametrize("module", PURE)
def test_a_module_that_claims_to_be_pure_is_pure(module: str):
    found = {name for name, _ in imports(PURE[module])}
    assert not {name.split(".")[0] for name in found} & IMPURE_MODULES
    assert not found & {"cpq.base.settings", "cpq.base.clock", "cpq.base.logs"}
    ours = {name for name in found if name.startswith("cpq.retrieval.")}
    assert ours <= PURE.keys(), "a pure module imports only pure modules of retrieval"
    assert not [node for node in ast.walk(tree(PURE[module])) if isinstance(node, ast.Name) and node.id == "open"]


def test_the_rules_of_the_web_are_pure_by_path():
    assert RULES
    assert set(RULES) <= PURE.keys()
