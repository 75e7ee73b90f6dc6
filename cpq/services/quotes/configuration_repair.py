"""The repair of invalid lines: why their options cannot stand together, and the nearest that can.

It is found when the refused transaction has ended: a search may take seconds, and others wait for a write.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from cpq.base.errors import CpqError, Later, next_call
from cpq.base.late_modules import LateModule
from cpq.domain.quotes.draft import DraftLine
from cpq.services.catalog.configurators import configurator_of, surcharges_of
from cpq.services.catalog.repository import AccountFacts, ProductFacts

if TYPE_CHECKING:
    from cpq.domain.configuration import solver
else:
    solver = LateModule("cpq.domain.configuration.solver")

REPAIRED_MAX = 10
"""Invalid lines for which a valid configuration is searched; more are repaired call by call."""

READING = 10
"""What a clause costs before the search: as many propagations take as long as to give it to the solver."""


class Repairs:
    """The repairs of one call. They share the work that one question may take."""

    def __init__(self, buyer: AccountFacts | None, today: date | None) -> None:
        self._buyer = buyer
        self._day = today.isoformat() if today else ""
        self._begun = 0
        self._effort: solver.Effort | None = None

    def of(self, line: DraftLine, product: ProductFacts) -> dict[str, object]:
        """Details for the refusal of the line."""
        self._begun += 1
        return {"later": Later(partial(self._search, line, product))} if self._begun <= REPAIRED_MAX else {}

    def _search(self, line: DraftLine, product: ProductFacts) -> Mapping[str, object]:
        """Why the options cannot stand together, and the nearest valid ones; nothing that the search did not prove."""
        surcharges = surcharges_of(product, self._buyer, self._day, line.selling_model or "")
        self._effort = self._effort or solver.effort_of_question()
        if self._effort.is_spent:
            return _unfinished(line, product)
        try:
            configurator = configurator_of(product, surcharges)
        except CpqError as error:
            return {"not_repaired": error.message}
        self._effort.propagations -= READING * configurator.size
        verdict = configurator.check(line.attributes, effort=self._effort)
        known: dict[str, object] = {"conflicts": [conflict.words() for conflict in verdict.conflicts]}
        # A name that no option has means something; a proposal without it would lose that.
        if line.attributes.keys() <= configurator.model.options.keys():
            found = configurator.nearest(line.attributes, surcharges=surcharges, count=1, effort=self._effort)
            if found.found and not found.found[0].needs:
                valid = dict(found.found[0].given)
                known["valid_attributes"] = valid
                known["next_call"] = next_call("product_configure", product_id=product.id, attributes=valid)
            elif found.is_timed_out:
                known |= _unfinished(line, product)
        return {name: value for name, value in known.items() if value}


def _unfinished(line: DraftLine, product: ProductFacts) -> dict[str, object]:
    return {
        "not_repaired": "The search for valid options took too long; product_configure searches for one line alone.",
        "next_call": next_call("product_configure", product_id=product.id, attributes=dict(line.attributes)),
    }
