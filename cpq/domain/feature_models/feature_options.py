"""A feature model as a configurable product: an option for each feature, and rules that allow the same choices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cpq.domain.feature_models.feature_model import Constraint, Feature, FeatureModel, Formula, Group, Loss, Operator

CLAUSES_MAX = 64
"""A constraint that needs more rules than this is left out."""

NAME_LENGTH_MAX = 64
LABEL_LENGTH_MAX = 200
SAY_LENGTH_MAX = 500

Literal = tuple[str, bool]
Clause = frozenset[Literal]


class TranslatedModel(NamedTuple):
    options: dict[str, dict[str, Any]]
    rules: list[dict[str, Any]]
    losses: list[Loss]


def translate(model: FeatureModel) -> TranslatedModel:
    """Options and rules; a choice of features is valid by them exactly if it is by the model without its losses."""
    return _Work(model).done()


@dataclass
class _Work:
    model: FeatureModel
    names: dict[str, str] = field(default_factory=dict)
    """The option of each feature."""
    rules: list[dict[str, Any]] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    def done(self) -> TranslatedModel:
        self.losses += self.model.losses
        taken: set[str] = set()
        for feature in self.model.features():
            self.names[feature.name] = _free_name(feature.name, taken)
            taken.add(self.names[feature.name])
        always, default = self._always(), self._default()
        options = {
            self.names[one.name]: _option(one, self.names[one.name], one.name in always, one.name in default)
            for one in self.model.features()
        }
        for feature in self.model.features():
            for group in feature.groups:
                self._take_group(feature, group, always)
        for constraint in self.model.constraints:
            self._take_constraint(constraint)
        return TranslatedModel(options, self.rules, sorted(self.losses, key=lambda loss: loss.line))

    def _always(self) -> set[str]:
        """The features of every product of the tree."""
        return self._reached(lambda group: group.members if group.kind == "mandatory" else [])

    def _default(self) -> set[str]:
        """The features of the smallest product that the tree allows, of groups the first ones."""
        return self._reached(
            lambda group: group.members if group.kind == "mandatory" else group.members[: group.minimum]
        )

    def _reached(self, chosen: Any) -> set[str]:
        found, waiting = set(), [self.model.root]
        while waiting:
            feature = waiting.pop()
            found.add(feature.name)
            waiting += [one for group in feature.groups for one in chosen(group)]
        return found

    def _take_group(self, parent: Feature, group: Group, always: set[str]) -> None:
        above, members = self.names[parent.name], [self.names[one.name] for one in group.members]
        is_always = parent.name in always
        for member, name in zip(group.members, members, strict=True):
            if not is_always:
                self._add(f"{name} belongs to {above}", {"forbid": {name: True, above: False}})
            if group.kind == "mandatory" and member.name not in always:
                self._add(f"{above} has {name}", {"forbid": {above: True, name: False}})
        if group.kind in ("mandatory", "optional"):
            return
        most = min(len(members), len(members) if group.maximum is None else group.maximum)
        if group.minimum == 0 and most == len(members):
            return
        number = str(most) if group.minimum == most else f"{group.minimum} to {most}"
        when = {} if is_always else {"when": {above: True}}
        say = f"{above} has {number} of {', '.join(members)}"
        self._add(say, {**when, "choose": {"from": members, "min": group.minimum, "max": most}})

    def _take_constraint(self, constraint: Constraint) -> None:
        clauses = _clauses(constraint.formula)
        if clauses is None:
            reason = f"it would need more than {CLAUSES_MAX} rules"
            self.losses.append(Loss(constraint.line, constraint.text[:200], reason))
            return
        for clause in clauses:
            self._add(constraint.text, self._rule(clause))

    def _rule(self, clause: Clause) -> dict[str, Any]:
        """A clause: when all its negated features are chosen, at least one of the others is."""
        refused = {self.names[name]: True for name, is_chosen in sorted(clause) if not is_chosen}
        wanted = [self.names[name] for name, is_chosen in sorted(clause) if is_chosen]
        if not wanted:
            return {"forbid": refused}
        when = {"when": refused} if refused else {}
        return {**when, "choose": {"from": wanted, "min": 1}}

    def _add(self, say: str, construct: Mapping[str, Any]) -> None:
        sentence = " ".join(say.split())
        self.rules.append({"id": f"r{len(self.rules) + 1}", "say": f"{sentence[: SAY_LENGTH_MAX - 1]}.", **construct})


def _option(feature: Feature, name: str, is_always: bool, is_default: bool) -> dict[str, Any]:
    label = {"label": feature.name[:LABEL_LENGTH_MAX]} if feature.name != name else {}
    if is_always:
        return {"type": "enum", "values": [True], "default": True, **label}
    return {"type": "boolean", "default": is_default, **label}


def _free_name(name: str, taken: set[str]) -> str:
    """The name of an option: that of the feature, or, where that is too long or taken, its beginning with a number."""
    clean = " ".join(name.split())[:NAME_LENGTH_MAX].strip()
    if clean and clean not in taken:
        return clean
    number = 2
    while (found := f"{clean[: NAME_LENGTH_MAX - 8]}_{number}") in taken:
        number += 1
    return found


def _clauses(formula: Formula) -> list[Clause] | None:
    """The formula as clauses that all hold; None when there are too many."""
    try:
        return _Clauses().of(formula, is_true=True)
    except _TooManyError:
        return None


class _TooManyError(Exception):
    pass


class _Clauses:
    """The clauses of a formula. Those of a part are worked out once, however often `<=>` repeats the part."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], list[Clause]] = {}
        """By the identity of a part, which the whole formula keeps alive."""

    def of(self, formula: Formula, *, is_true: bool) -> list[Clause]:
        """The clauses of the formula, or of its opposite."""
        key = (id(formula), is_true)
        if key not in self._known:
            self._known[key] = self._worked_out(formula, is_true)
        return self._known[key]

    def _worked_out(self, formula: Formula, is_true: bool) -> list[Clause]:
        operator, parts = formula.operator, formula.parts
        if operator is None:
            return [frozenset([(formula.name, is_true)])]
        if operator is Operator.NOT:
            return self.of(parts[0], is_true=not is_true)
        if operator is Operator.EQUALS:
            left, right = parts
            one = _either([self.of(left, is_true=not is_true), self.of(right, is_true=True)])
            return _bounded([*one, *_either([self.of(left, is_true=is_true), self.of(right, is_true=False)])])
        if operator is Operator.IMPLIES:
            sides = [self.of(parts[0], is_true=not is_true), self.of(parts[1], is_true=is_true)]
            return _either(sides) if is_true else _bounded([*sides[0], *sides[1]])
        inner = [self.of(part, is_true=is_true) for part in parts]
        if (operator is Operator.AND) == is_true:
            return _bounded(clause for clauses in inner for clause in clauses)
        return _either(inner)


def _either(inner: list[list[Clause]]) -> list[Clause]:
    """The clauses that hold where all clauses of one of the lists hold."""
    found: list[Clause] = [frozenset()]
    for clauses in inner:
        found = _bounded(one | other for one in found for other in clauses)
    return found


def _bounded(clauses: Iterable[Clause]) -> list[Clause]:
    """Each clause once, without those that always hold."""
    found = [
        clause
        for clause in dict.fromkeys(clauses)
        if not any((name, not is_chosen) in clause for name, is_chosen in clause)
    ]
    if len(found) > CLAUSES_MAX:
        raise _TooManyError
    return found
