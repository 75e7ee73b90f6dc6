"""Configuration: checks the chosen options of a line, and the relationships between the products of a quote.

The check of options is exact for a full configuration and needs no solver. It never changes a value that was given, its
answer does not depend on the order of the choices, and checking a completed configuration again gives the same answer.

`model_compiler` makes the model of a product. It is not exported here, because it loads what reads files.
"""

from cpq.domain.configuration.model import Checked, Model
from cpq.domain.configuration.options import Problem, spelled
from cpq.domain.configuration.relations import (
    CheckedRelations,
    ProductRelation,
    QuotedProduct,
    Related,
    check_relations,
)

__all__ = [
    "Checked",
    "CheckedRelations",
    "Model",
    "Problem",
    "ProductRelation",
    "QuotedProduct",
    "Related",
    "check_relations",
    "spelled",
]
