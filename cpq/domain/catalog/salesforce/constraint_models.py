"""Facts of Salesforce's constraint models: what of each is here, what became something else, what has no counterpart.

The models themselves are programs and are not read. A file of facts has for each model its types, relations, domains of
attributes and pairs of types that require, exclude or recommend each other, and how many statements it has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cpq.domain.catalog.salesforce import domains
from cpq.domain.catalog.salesforce.attribute_options import ProductAttributes
from cpq.domain.catalog.salesforce.component_groups import Bounds
from cpq.domain.catalog.salesforce.exported import ExportedFile, ExportedRow, Record
from cpq.domain.catalog.salesforce.losses import Fate, Losses, Outcome

PARTS_MAX = 10_000
NUMBER_MAX = 10**9

NO_PRODUCT = Outcome(Fate.NO_COUNTERPART, "one of its types is no product of the export")
LISTED_AS = {"requires": "require", "excludes": "exclude", "recommends": "rule"}
"""The kind of statement that a pair was; statements beyond the pairs are counted by their kind."""

Word = Annotated[str, Field(max_length=200)]
Whole = Annotated[int, Field(ge=0, le=NUMBER_MAX)]


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True, extra="ignore")


class TypeFact(_Fact):
    name: Word


class RelationFact(_Fact):
    owner: Word
    name: Word
    type: Word
    min: Whole | None = None
    max: Whole | None = None


class AttributeFact(_Fact):
    owner: Word
    name: Word
    values: Annotated[tuple[Word, ...], Field(max_length=PARTS_MAX)] = ()


class PairFact(_Fact):
    if_: Annotated[Word, Field(alias="if")]
    then: Word


Pairs = Annotated[tuple[PairFact, ...], Field(max_length=PARTS_MAX)]


class ModelFacts(_Fact):
    model: Word
    path: Annotated[str, Field(max_length=1000)]
    """Where the model lies, seen from the file of facts; the tables beside it say which products its types are."""
    types: Annotated[tuple[TypeFact, ...], Field(max_length=PARTS_MAX)]
    relations: Annotated[tuple[RelationFact, ...], Field(max_length=PARTS_MAX)] = ()
    attributes: Annotated[tuple[AttributeFact, ...], Field(max_length=PARTS_MAX)] = ()
    requires: Pairs = ()
    excludes: Pairs = ()
    recommends: Pairs = ()
    counts: Annotated[dict[Word, Whole], Field(max_length=PARTS_MAX)] = Field(default_factory=dict)


class PartCount(NamedTuple):
    """Parts of one model with the same fate for the same reason."""

    model: str
    part: str
    """`type`, `relation`, `attribute`, `requires`, `excludes`, `recommends`, or `statement: ` with its kind."""
    fate: Fate
    reason: str
    parts: int


class _Model(NamedTuple):
    row: ExportedRow
    facts: ModelFacts
    folder: str
    is_active: bool
    skus: dict[str, str]
    """The product of each type that names exactly one."""


class ConstraintModels:
    """The models of an export, with the products that their types name."""

    def __init__(self, files: Sequence[ExportedFile], described: Mapping[str, Record]) -> None:
        self._files = {file.name: file for file in files}
        self._skus = _skus_by_name(described)
        self._models: list[_Model] = []
        self._found: Counter[tuple[str, str, Outcome]] = Counter()
        for file in files:
            for row, item in zip(file.rows, file.items, strict=False):
                if facts := _facts(item):
                    self._models.append(self._model(row, facts))
        for model in self._models:
            self._count_types(model)
            self._count_pairs(model)
            self._count_statements(model)

    def pairs(self, kind: str) -> dict[str, list[str]]:
        """The SKUs of the products that each product requires, excludes or recommends."""
        found: dict[str, dict[str, None]] = {}
        for model in self._models:
            for pair in getattr(model.facts, kind):
                if _pair_outcome(model, pair).fate is not Fate.NO_COUNTERPART:
                    found.setdefault(model.skus[pair.if_], {})[model.skus[pair.then]] = None
        return {sku: list(others) for sku, others in found.items()}

    def bounds(self) -> dict[tuple[str, str], Bounds]:
        """How many pieces of a product another one may have, where models say it; several models all hold."""
        found: dict[tuple[str, str], Bounds] = {}
        for model, one in self._relations():
            if one.owner in model.skus and one.type in model.skus and (one.min, one.max) != (None, None):
                pair = model.skus[one.owner], model.skus[one.type]
                found[pair] = found.get(pair, Bounds()).within(Bounds(one.min or 0, one.max))
        return found

    def narrow(self, own: Mapping[str, ProductAttributes]) -> None:
        """Leave of the options of products the values that the domains of the models allow."""
        for model in self._models:
            for one in model.facts.attributes:
                self._found[model.facts.model, "attribute", self._narrowed(model, one, own)] += 1

    def settle(self, losses: Losses, related: Mapping[tuple[str, str], Outcome]) -> None:
        """Account for the relations, by what became of the components, and for the rows of the models' files."""
        for model, one in self._relations():
            self._found[model.facts.model, "relation", _relation_outcome(model, one, related)] += 1
        read = {(model.row.file, model.row.line): model for model in self._models}
        folders = {model.folder for model in self._models}
        for file in self._files.values():
            if file.is_constraint_model:
                for row in file.rows:
                    losses.settle_row(row, self._row_outcome(row, read.get((row.file, row.line)), folders))

    def parts(self) -> list[PartCount]:
        """What became of every part of every model."""
        places = {model.facts.model: place for place, model in enumerate(self._models)}
        found = [PartCount(model, part, *outcome, count) for (model, part, outcome), count in self._found.items()]
        return sorted(found, key=lambda one: (places[one.model], one.part.startswith("statement")))

    def _row_outcome(self, row: ExportedRow, model: _Model | None, folders: Set[str]) -> Outcome:
        if row.file.rpartition("/")[0] in folders and not row.file.endswith(".json"):
            return Outcome(Fate.NO_COUNTERPART, "it only says what the types of a constraint model are")
        if row.file.endswith(".csv"):
            return Outcome(Fate.NO_COUNTERPART, "a constraint model is a program, and only facts about it are read")
        if model is None:
            return Outcome(Fate.NO_COUNTERPART, "not the facts of a constraint model")
        fates = {outcome.fate for name, _, outcome in self._found if name == model.facts.model}
        if fates <= {Fate.NO_COUNTERPART}:
            return Outcome(Fate.NO_COUNTERPART, "a constraint model; nothing of it is here")
        return Outcome(Fate.TRANSLATED, "a constraint model; its parts are accounted for one by one")

    def _relations(self) -> Iterator[tuple[_Model, RelationFact]]:
        return ((model, one) for model in self._models for one in model.facts.relations)

    def _count_types(self, model: _Model) -> None:
        for one in model.facts.types:
            if not model.is_active:
                outcome = _INACTIVE
            elif one.name in model.skus:
                outcome = Outcome(Fate.TAKEN, "a product")
            else:
                outcome = Outcome(Fate.NO_COUNTERPART, "it is not exactly one product of the export")
            self._found[model.facts.model, "type", outcome] += 1

    def _count_pairs(self, model: _Model) -> None:
        for kind in LISTED_AS:
            for pair in getattr(model.facts, kind):
                self._found[model.facts.model, kind, _pair_outcome(model, pair)] += 1

    def _count_statements(self, model: _Model) -> None:
        listed = {statement: len(getattr(model.facts, kind)) for kind, statement in LISTED_AS.items()}
        why = Outcome(Fate.NO_COUNTERPART, "a statement in the model's own language")
        for kind, count in model.facts.counts.items():
            if left := max(0, count - listed.get(kind, 0)):
                self._found[model.facts.model, f"statement: {kind}", why] += left

    def _narrowed(self, model: _Model, one: AttributeFact, own: Mapping[str, ProductAttributes]) -> Outcome:
        if not model.is_active:
            return _INACTIVE
        if one.owner not in model.skus:
            return Outcome(Fate.NO_COUNTERPART, "its type is no product of the export")
        attributes = own[model.skus[one.owner]]
        wanted = _plain(one.name)
        named = {name for name in attributes.options if _plain(name) == wanted}
        named |= {name for code, name in attributes.names.items() if _plain(code) == wanted}
        if len(named) != 1:
            return Outcome(Fate.NO_COUNTERPART, "the product has no option of this name")
        return domains.narrow(attributes.options[named.pop()], one.values)

    def _model(self, row: ExportedRow, facts: ModelFacts) -> _Model:
        """The facts with the product of each type that names one, by the tables beside the model."""
        folder = "/".join([*row.file.split("/")[:-1], facts.path.rpartition("/")[0].removesuffix("/blobs")])
        versions = self._cells(f"{folder}/ExpressionSetDefinitionVersion.csv")
        statuses = {one.get("Status", "").casefold() for one in versions}
        is_active = not statuses or not statuses.isdisjoint(("", "active"))
        names = {one.get("Id", ""): one.get("Name", "") for one in self._cells(f"{folder}/Product2.csv")}
        found: dict[str, set[str | None]] = {}
        for one in self._cells(f"{folder}/ExpressionSetConstraintObj.csv") if is_active else ():
            if one.get("ConstraintModelTagType") == "Type":
                sku = self._skus.get(names.get(one.get("ReferenceObjectId", ""), ""))
                found.setdefault(one.get("ConstraintModelTag", ""), set()).add(sku)
        skus = {name: sku for name, one in found.items() if len(one) == 1 and (sku := next(iter(one)))}
        return _Model(row, facts, folder, is_active, skus)

    def _cells(self, name: str) -> Iterator[Mapping[str, str]]:
        file = self._files.get(name)
        return (row.cells for row in file.rows) if file else iter(())


_INACTIVE = Outcome(Fate.NO_COUNTERPART, "the model is not active")


def _pair_outcome(model: _Model, pair: PairFact) -> Outcome:
    if not model.is_active:
        return _INACTIVE
    if pair.if_ not in model.skus or pair.then not in model.skus:
        return NO_PRODUCT
    if model.skus[pair.if_] == model.skus[pair.then]:
        return Outcome(Fate.NO_COUNTERPART, "both types are the same product")
    return Outcome(Fate.TRANSLATED, "a relationship of the product, also outside of the model's bundle")


def _relation_outcome(model: _Model, one: RelationFact, related: Mapping[tuple[str, str], Outcome]) -> Outcome:
    if not model.is_active:
        return _INACTIVE
    if one.owner not in model.skus or one.type not in model.skus:
        return NO_PRODUCT
    found = related.get((model.skus[one.owner], model.skus[one.type]))
    if found is None:
        return Outcome(Fate.NO_COUNTERPART, "the export has no such component")
    if found.fate is Fate.NO_COUNTERPART or (one.min, one.max) != (None, None):
        return found
    return Outcome(Fate.TAKEN, "a component of the export")


def _skus_by_name(described: Mapping[str, Record]) -> dict[str, str]:
    """The products by their names; a name of several products names none of them."""
    found: dict[str, list[str]] = {}
    for sku, one in described.items():
        found.setdefault(one.text("Name"), []).append(sku)
    return {name: skus[0] for name, skus in found.items() if len(skus) == 1}


def _plain(name: str) -> str:
    """A name without the signs in which a model spells it differently: `Base_Core_Count` is `Base Core Count`."""
    return re.sub(r"[\W_]", "", name).casefold()


def _facts(item: Any) -> ModelFacts | None:
    try:
        return ModelFacts.model_validate(item)
    except ValidationError:
        return None
