"""PURE. Whether the chosen options of a line hold, and whether the products of a quote go together.

The check of options is exact for a full configuration and needs no solver. It never changes a value that was given, its
answer does not depend on the order of the choices, and checking a completed configuration again gives the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cpq.configuring.compiling import compile_model
from cpq.configuring.model import Checked, Model
from cpq.configuring.options import Problem, spelled
from cpq.configuring.relations import CheckedRelations, ProductRelation, QuotedProduct, Related, check_relations

__all__ = [
    "Checked",
    "CheckedRelations",
    "Model",
    "Problem",
    "ProductRelation",
    "QuotedProduct",
    "Related",
    "check",
    "check_relations",
    "compile_model",
    "spelled",
]


def check(options: Sequence[Mapping[str, Any]], rules: Mapping[str, Any], choices: Mapping[str, object]) -> Checked:
    """Complete and check the choices of one line; options and rules as the catalogue stores them."""
    return compile_model(options, rules).check(choices)
