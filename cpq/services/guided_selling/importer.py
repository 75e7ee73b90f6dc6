"""Imports guides from a file, all or none, and exports them as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from cpq.app.transaction import Tx
from cpq.domain.guided_selling import product_fit
from cpq.domain.guided_selling.dialogue import Dialogue
from cpq.domain.guided_selling.guide import GuideShape
from cpq.domain.guided_selling.guide_file import GuidesRead, invalid, known_names
from cpq.domain.yaml_source import Problem
from cpq.services.catalog import ImportReport
from cpq.services.guided_selling import repository


def import_guides(tx: Tx, read: GuidesRead) -> ImportReport:
    """Store the guides of a file; others stay. VALIDATION_ERROR names what the catalogue does not have."""
    categories = repository.category_ids(tx)
    problems: list[Problem] = []
    for place, guide in enumerate(read.guides):
        problems += read.problems(place, _names(tx, guide), categories)
    if problems:
        raise invalid(problems)
    outcome = Counter(repository.store(tx, read.guides).values())
    report = ImportReport()
    for change in ("created", "updated", "unchanged"):
        getattr(report, change)["guides"] = outcome[change]
    report.warnings = [warning for guide in read.guides if guide.active for warning in _dead_ends(tx, guide)]
    return report


def export_guides(tx: Tx) -> list[dict[str, Any]]:
    """Every guide as an import accepts it and finds it unchanged."""
    return [guide.content() for guide in repository.guides(tx).values()]


def _names(tx: Tx, guide: GuideShape) -> dict[str, Any]:
    declared = repository.declared(tx, guide.categories).values()
    options = (option for one in repository.candidates(tx, guide.categories) for option in one.options.values())
    return known_names([specs for specs, _ in declared], [attributes for _, attributes in declared], options)


def _dead_ends(tx: Tx, guide: GuideShape) -> Iterator[str]:
    """Answers that no product of the catalogue meets, whatever the other answers are."""
    candidates = repository.candidates(tx, guide.categories)
    if not product_fit.count(candidates, Dialogue(guide, {})):
        yield f"{guide.id}: no active product meets what the guide demands of all"
        return
    for question in guide.questions:
        for answer in question.options:
            if not product_fit.count(candidates, Dialogue(guide, {question.id: answer.id})):
                yield f"{guide.id}: no active product meets the answer {answer.id} to {question.id}"
