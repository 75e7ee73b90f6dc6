"""Compiles stored options and rules into a model, or reports all their problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pydantic import ValidationError

from cpq.base.errors import Code, CpqError
from cpq.domain.configuration.declarations import OptionRow, RuleRow
from cpq.domain.configuration.model import Model
from cpq.domain.configuration.options import Option
from cpq.domain.configuration.rules import Condition, Rule, compile_conditions, compile_rule

FAULTS_MAX = 20


def compile_model(options: Sequence[Mapping[str, Any]], rules: Mapping[str, Any]) -> Model:
    """Compile the options and rules of a product for many checks; VALIDATION_ERROR names every fault."""
    faults = _Faults()
    compiled = _options(options, faults)
    spoilt = {str(values.get("name")) for values in options} - compiled.keys()
    activity = _activity(compiled, spoilt, faults)
    order = _by_dependence(compiled, activity, faults)
    constraints, recommend = rules.get("rules", ()), rules.get("recommend", ())
    _refuse_twins("rules", (str(rule.get("id")) for rule in (*constraints, *recommend)), faults)
    model = Model(
        options=compiled,
        by_dependence=tuple((compiled[name], activity.get(name, ())) for name in order),
        rules=_rules("rules", constraints, compiled, spoilt, faults),
        recommend=_rules("recommend", recommend, compiled, spoilt, faults),
    )
    faults.raise_any()
    return model


class _Faults:
    """The faults found so far, with their places."""

    def __init__(self) -> None:
        self._found: list[dict[str, str]] = []

    def note(self, where: str, message: str) -> None:
        self._found.append({"field": where, "message": message})

    @contextmanager
    def at(self, where: str) -> Iterator[None]:
        """Record a ValueError and continue."""
        try:
            yield
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_input=False):
                place = ".".join([where, *map(str, fault["loc"])])
                self.note(place, str(fault["msg"]).removeprefix("Value error, "))
        except ValueError as error:
            self.note(where, str(error).removesuffix("."))

    def raise_any(self) -> None:
        if self._found:
            first = self._found[0]
            count = f" ({len(self._found)} faults in all)" if len(self._found) > 1 else ""
            raise CpqError(
                Code.VALIDATION_ERROR,
                f"The product cannot be configured: {first['field']}: {first['message']}{count}.",
                problems=self._found[:FAULTS_MAX],
                problem_count=len(self._found),
            )


def _options(options: Iterable[Mapping[str, Any]], faults: _Faults) -> dict[str, Option]:
    _refuse_twins("options", (str(values.get("name")) for values in options), faults)
    compiled = {}
    for values in options:
        name = str(values.get("name"))
        with faults.at(f"options.{name}"):
            row = OptionRow.model_validate({key: value for key, value in values.items() if key != "name"})
            compiled[name] = Option(name, row)
    return compiled


def _activity(options: Mapping[str, Option], spoilt: set[str], faults: _Faults) -> dict[str, tuple[Condition, ...]]:
    """The options that each conditional option depends on."""
    activity = {}
    for name, option in options.items():
        wanted = option.row.active_when
        if wanted is not None and spoilt.isdisjoint(wanted):
            with faults.at(f"options.{name}.active_when"):
                activity[name] = compile_conditions(wanted, options)
    return activity


def _by_dependence(options: Iterable[str], activity: Mapping[str, tuple[Condition, ...]], faults: _Faults) -> list[str]:
    graph = {name: [condition.option.name for condition in activity.get(name, ())] for name in options}
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        faults.note("options", f"active_when is circular: {', '.join(error.args[1])}")
        return []


def _rules(
    where: str, rows: Iterable[Mapping[str, Any]], options: Mapping[str, Option], spoilt: set[str], faults: _Faults
) -> tuple[Rule, ...]:
    compiled = []
    for values in rows:
        with faults.at(f"{where}.{values.get('id')}"):
            row = RuleRow.model_validate(values)
            if spoilt.isdisjoint(row.options_named()):
                compiled.append(compile_rule(row, options))
    return tuple(compiled)


def _refuse_twins(where: str, names: Iterable[str], faults: _Faults) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            faults.note(f"{where}.{name}", "is declared more than once")
