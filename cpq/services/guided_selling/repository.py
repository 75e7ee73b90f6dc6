"""Reads and writes guides, and reads the products that they choose from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, nearest, next_call
from cpq.base.late_modules import LateModule
from cpq.base.text import fingerprint
from cpq.domain.configuration import Model
from cpq.domain.configuration.options import Scalar, number
from cpq.domain.guided_selling.guide import GuideShape
from cpq.domain.guided_selling.product_fit import Candidate
from cpq.services.catalog import repository as catalog
from cpq.storage.schema import tables

if TYPE_CHECKING:
    from cpq.domain.configuration import solver
    from cpq.domain.configuration.solver import Configurator
else:
    solver = LateModule("cpq.domain.configuration.solver")

CANDIDATES_MAX = 5_000
ANSWERS_KEPT_MAX = 5_000


def guides(tx: Tx) -> dict[str, GuideShape]:
    """Every guide of the tenant, in the order of ids."""
    query = sa.select(tables.guide.c.content).where(tx.own(tables.guide)).order_by(tables.guide.c.id)
    found = [GuideShape.model_validate(content) for content in tx.connection.scalars(query)]
    return {guide.id: guide for guide in sorted(found, key=lambda guide: guide.id)}


def guide(tx: Tx, id_: str) -> GuideShape:
    """The guide in use with this id; NOT_FOUND names the others."""
    mine = tx.own(tables.guide)
    content = tx.connection.scalar(sa.select(tables.guide.c.content).where(mine, tables.guide.c.id == id_))
    found = GuideShape.model_validate(content) if content is not None else None
    if found is not None and found.active:
        return found
    known = [one.id for one in guides(tx).values() if one.active]
    raise CpqError(
        Code.NOT_FOUND,
        f"There is no guide {id_!r}.",
        field="/guide",
        allowed=known,
        nearest=nearest(id_, known) or None,
        next_call=next_call("guided_selling"),
    )


def store(tx: Tx, found: Collection[GuideShape]) -> dict[str, str]:
    """Store guides; the result says of each whether it was `created`, `updated` or is `unchanged`."""
    query = sa.select(tables.guide.c.id, tables.guide.c.content_hash).where(tx.own(tables.guide))
    known: dict[str, str] = dict(tx.connection.execute(query).all())
    outcome = {}
    for one in found:
        content = one.content()
        values = {"content": content, "content_hash": fingerprint(content), "updated_at": tx.now}
        mine = tx.own(tables.guide) & (tables.guide.c.id == one.id)
        if one.id not in known:
            tx.connection.execute(sa.insert(tables.guide).values(tenant_id=tx.tenant_id, id=one.id, **values))
        elif known[one.id] != values["content_hash"]:
            tx.connection.execute(sa.update(tables.guide).where(mine).values(**values))
        is_same = known.get(one.id) == values["content_hash"]
        outcome[one.id] = "created" if one.id not in known else "unchanged" if is_same else "updated"
    return outcome


def candidates(tx: Tx, categories: Collection[str]) -> list[Candidate]:
    """The active products of categories, as one revision of the catalogue has them."""
    key, revision = (tx.tenant_id, "guided", tuple(sorted(categories))), catalog.revision_of(tx)
    kept: tuple[str, list[Candidate]] | None = tx.kept.get(key)
    if kept is None or kept[0] != revision:
        tx.kept[key] = kept = (revision, _read(tx, categories))
    return kept[1]


def declared(tx: Tx, categories: Collection[str]) -> dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The specs and attributes that each category declares, without those that do not exist."""
    category = tables.category.c
    query = sa.select(category.id, category.specs, category.attributes)
    rows = tx.connection.execute(query.where(tx.own_among(category.id, sorted(categories))))
    return {row.id: (row.specs, row.attributes) for row in rows}


def category_ids(tx: Tx) -> list[str]:
    return sorted(tx.connection.scalars(sa.select(tables.category.c.id).where(tx.own(tables.category))))


def _read(tx: Tx, categories: Collection[str]) -> list[Candidate]:
    product = tables.product.c
    columns = (product.id, product.sku, product.name, product.options, product.rules, product.specs)
    rows = tx.connection.execute(
        sa.select(*columns, product.attributes, product.content_hash)
        .where(
            tx.own_among(product.category_id, sorted(categories)),
            product.active == sa.literal(True, product.active.type),
        )
        .limit(CANDIDATES_MAX + 1)
    ).all()
    if len(rows) > CANDIDATES_MAX:
        raise CpqError(
            Code.VALIDATION_ERROR,
            f"The categories {', '.join(sorted(categories))} have more than {CANDIDATES_MAX:,} products, and a guide "
            "chooses from fewer.",
            maximum=CANDIDATES_MAX,
            hint="Use search_equipment or catalog_search.",
        )
    return sorted(map(_candidate, rows), key=lambda one: one.id)


def _candidate(row: Any) -> Candidate:
    model = catalog.compiled(row.content_hash, row.options, row.rules)
    facts = {**row.attributes, **row.specs}
    return Candidate(
        row.id,
        row.sku,
        row.name,
        model.options,
        {name: value if isinstance(value, bool | str) else number(value) for name, value in facts.items()},
        _Rules(model).allow,
    )


class _Rules:
    """Which choices the rules of one product allow together; what was asked is kept, because answers repeat it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._configurator: Configurator | None = None
        self._known: dict[frozenset[tuple[str, Scalar]], bool] = {}

    def allow(self, choices: Mapping[str, Scalar]) -> bool:
        """Whether some valid configuration has these choices; what cannot be searched is left to the buyer."""
        if not self._model.rules:
            return True
        key = frozenset(choices.items())
        if key not in self._known:
            if len(self._known) >= ANSWERS_KEPT_MAX:
                self._known.clear()
            self._known[key] = self._search(choices)
        return self._known[key]

    def _search(self, choices: Mapping[str, Scalar]) -> bool:
        try:
            self._configurator = self._configurator or solver.Configurator(self._model)
        except solver.ModelTooLargeError:
            return True
        return self._configurator.check(choices).can_be_completed is not False
