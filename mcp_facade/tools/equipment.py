"""The equipment toolset: find products by words and hard limits, and read their specs. Agents read the docstrings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import bad_field
from cpq.retrieval import equipment
from cpq.retrieval.equipment import EquipmentDetail, EquipmentFound, EquipmentRows
from mcp_facade.arguments import Identifier, Listed, Part, Question, Size, TopK, Word, clamped
from mcp_facade.registry import tool

TOP_K_DEFAULT = 5

Model = Annotated[Identifier, Field(description="A model, SKU or product id: `QMB30`.")]


def _as_word(value: object) -> object:
    """Accept whole numbers for words that look like numbers, such as voltages and phases."""
    return str(value) if type(value) is int else value


class SpecLimit(Part):
    """A condition on one spec: `min` and `max` (inclusive) for a number, `is` for a word."""

    spec: Annotated[
        Word, Field(description="The name of the spec, for example `noise_dba`, `voltage`, `dew_point_f`, `type`.")
    ]
    min: Size | None = None
    max: Size | None = None
    is_: Annotated[Word | None, Field(alias="is"), BeforeValidator(_as_word)] = None

    @model_validator(mode="after")
    def _has_one_condition(self) -> Self:
        has_bound = self.min is not None or self.max is not None
        if has_bound == (self.is_ is not None):
            raise ValueError("a condition needs min, max or both, or else `is`")
        return self


@tool(title="Search equipment", toolset="equipment", needs=Permission.READ)
def search_equipment(
    tx: Tx,
    *,
    query: Annotated[Question, Field(description="The purpose or the product: `quiet compressor for a dental lab`.")],
    cfm_min: Annotated[
        Size | None, Field(description="Air flow, cubic feet a minute; or with a unit: `10 m³/min`, `160 l/s`.")
    ] = None,
    cfm_max: Size | None = None,
    psi_min: Annotated[Size | None, Field(description="Pressure; or with a unit: `8 bar`.")] = None,
    psi_max: Size | None = None,
    hp_min: Annotated[
        Size | None,
        Field(description="Power; for exactly 100 HP set hp_min and hp_max to 100. Or with a unit: `75 kW`."),
    ] = None,
    hp_max: Size | None = None,
    lubrication: Annotated[
        Word | None,
        Field(description="Only this kind; unknown ones are excluded. Set it for food, pharma or breathing air."),
        WithJsonSchema({"type": "string", "enum": ["oilless", "oil-free", "oil-flooded"]}),
    ] = None,
    category: Annotated[Word | None, Field(description="Only this category, for example `compressors`.")] = None,
    specs: Annotated[Sequence[SpecLimit], Field(max_length=20, description="Conditions on other specs."), Listed] = (),
    top_k: TopK = TOP_K_DEFAULT,
) -> EquipmentFound:
    """Find products by purpose, within hard limits on their specs.

    Limits apply first: only products that meet them are ranked. A product whose spec is unknown does not meet a limit
    on that spec. Use limits for what must be true and the query for the rest. `confidence` is `likely_good`, `analog`
    or `probable_miss`; when all hits are `probable_miss`, nothing suitable was found. `eligible` is the number of
    products that meet the limits. A product that is not sold any more (`active` false) comes only when the query names
    its model. Limits in other units are converted exactly, and amounts in the query are also
    searched in the products' units; `conversions` says how.
    """
    named = {"cfm": (cfm_min, cfm_max), "psi": (psi_min, psi_max), "hp": (hp_min, hp_max)}
    bounds: dict[str, equipment.Bounds] = {name: pair for name, pair in named.items() if pair != (None, None)}
    words = {} if lubrication is None else {"lubrication": lubrication}
    for place, limit in enumerate(specs):
        if limit.spec in bounds or limit.spec in words:
            raise bad_field(f"/specs/{place}/spec", f"There are two conditions on {limit.spec}.")
        if limit.is_ is None:
            bounds[limit.spec] = (limit.min, limit.max)
        else:
            words[limit.spec] = limit.is_
    return equipment.search(tx, query, bounds=bounds, words=words, category_id=category, top_k=clamped(top_k))


@tool(title="Get equipment", toolset="equipment", needs=Permission.READ, subject="model")
def get_product(tx: Tx, *, model: Model) -> EquipmentDetail:
    """Read one product by its model: every spec with its unit, attributes such as dimensions and motor, description.

    `unknown_specs` have no value: do not guess them. An unknown model is an error that names the nearest models. Prices
    are not included; quote_price computes them.
    """
    return equipment.get(tx, model)


@tool(title="Compare equipment", toolset="equipment", needs=Permission.READ)
def get_specs(
    tx: Tx,
    *,
    models: Annotated[
        list[Identifier],
        Field(min_length=1, max_length=equipment.MODELS_MAX, description="Models, SKUs or ids, in any order."),
        Listed,
    ],
) -> EquipmentRows:
    """Compare several products, one row per model in the order of `models`; every model must exist."""
    return equipment.compare(tx, models)


TOOLS = (search_equipment, get_product, get_specs)
