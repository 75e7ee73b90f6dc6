"""The configurator in CPU time: a product of 60 options, and feature models beside clingo."""

import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from cpq.domain.configuration.model_compiler import compile_model
from cpq.domain.configuration.solver import Configurator, Goal
from tests.bench.peers import clingo

FEATURES = (1_000, 5_000, 10_000)
SHOWN = 20
QUESTIONS = 10

ASKED = ("check with conflicts", "nearest, three", "all values", "cheapest completion")
ASKED_OF_FEATURES = (
    "check with conflicts",
    "nearest, three",
    f"values of {SHOWN} on screen",
    "default completion",
)

T = TypeVar("T")


def measure() -> dict[str, float]:
    found: dict[str, float] = {}
    options, rules = product()
    configurator = Configurator(compile_model(options, rules))
    given = [choices(seed, options) for seed in range(QUESTIONS)]
    asks: dict[str, Callable[[Any], object]] = {
        "check with conflicts": configurator.check,
        "nearest, three": configurator.nearest,
        "all values": lambda one: configurator.domains(one, reasons_max=0),
        "all values, 200 reasons": configurator.domains,
        "cheapest completion": lambda _: configurator.complete({}, goal=Goal.CHEAPEST, surcharges=SURCHARGES),
    }
    for name, ask in asks.items():
        found[f"60 options: {name} ms CPU"] = worst(ask, given)
    for count in FEATURES:
        found |= of_features(count)
    return found


def of_features(count: int) -> dict[str, float]:
    options, rules = feature_model(count)
    model = compile_model(options, rules)
    started = time.process_time()
    configurator = Configurator(model)
    compiled = (time.process_time() - started) * 1000
    names = [option["name"] for option in options]
    given = [{name: bool(seed % 2) for name in random.Random(seed).sample(names[1:], 10)} for seed in range(3)]
    at = f"{count:,} features"
    figures = {
        f"{at}: compile ms CPU": compiled,
        f"{at}: check with conflicts ms CPU": worst(configurator.check, given),
        f"{at}: nearest, three ms CPU": worst(configurator.nearest, given),
        f"{at}: values of {SHOWN} on screen ms CPU": worst(
            lambda one: configurator.domains(one, options=names[:SHOWN], reasons_max=0), given
        ),
        f"{at}: default completion ms CPU": worst(lambda _: configurator.complete({}), given[:1]),
    }
    if clingo is not None:
        figures[f"{at}: clingo, default completion ms CPU"] = worst(lambda _: by_clingo(options, rules), given[:1])
    return figures


def worst(ask: Callable[[T], object], given: list[T]) -> float:
    """Of the questions, each asked once before."""
    slowest = 0.0
    for one in given:
        ask(one)
        started = time.process_time()
        ask(one)
        slowest = max(slowest, (time.process_time() - started) * 1000)
    return slowest


SURCHARGES = {f"o{place}": {str(value): value * 1000 for value in range(6)} for place in range(60)}


def product() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Sixty options of six values, with 80 rules of every kind."""
    draw = random.Random(60)
    names = [f"o{place}" for place in range(60)]
    options = [{"name": name, "type": "integer", "values": list(range(6)), "default": 0} for name in names]
    rules: list[dict[str, Any]] = []
    for place in range(80):
        one, other, third = draw.sample(names, 3)
        kind = place % 4
        construct: dict[str, Any] = {"when": {one: {"min": 4}}, "then": {other: {"min": 1}}}
        if kind == 1:
            construct = {"forbid": {one: 5, other: {"max": draw.randrange(2)}}}
        elif kind == 2:
            construct = {"compare": {"left": {one: 1, other: 1}, "op": "<=", "right": {third: 1, "const": 7}}}
        elif kind == 3:
            rows = [[a, b] for a in range(6) for b in range(6) if abs(a - b) < 4]
            construct = {"table": {"columns": [one, other], "rows": rows}}
        rules.append({"id": f"R{place}", "say": f"Sentence {place}.", **construct})
    return options, {"rules": rules}


def choices(seed: int, options: list[dict[str, Any]]) -> dict[str, Any]:
    draw = random.Random(seed)
    return {option["name"]: draw.choice(option["values"]) for option in draw.sample(options, 12)}


def feature_model(count: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A tree of features: optional, mandatory, alternative and or-groups, and constraints across it."""
    draw = random.Random(7)
    names = [f"f{place}" for place in range(count)]
    rules: list[dict[str, Any]] = [{"id": "ROOT", "say": "The root is there.", "then": {"f0": True}}]
    parents, place = [0], 1
    while place < count:
        parent = names[parents.pop(0)]
        inside = list(range(place, min(count, place + draw.randint(2, 6))))
        place, parents = inside[-1] + 1, parents + inside
        kind = draw.choice(["optional", "optional", "mandatory", "alternative", "or"])
        for child in inside:
            taken = {names[child]: True}
            rules.append({"id": f"P{child}", "say": "It needs its parent.", "when": taken, "then": {parent: True}})
            if kind == "mandatory":
                rules.append({"id": f"M{child}", "say": "It is mandatory.", "when": {parent: True}, "then": taken})
        if kind in ("alternative", "or"):
            most = 1 if kind == "alternative" else len(inside)
            choose = {"from": [names[child] for child in inside], "min": 1, "max": most}
            rules.append({"id": f"G{parent}", "say": "A group.", "when": {parent: True}, "choose": choose})
    for cross in range(count // 10):
        one, other = draw.sample(names[1:], 2)
        construct = draw.choice([{"when": {one: True}, "then": {other: True}}, {"forbid": {one: True, other: True}}])
        rules.append({"id": f"X{cross}", "say": "Across the tree.", **construct})
    return [{"name": name, "type": "boolean", "default": False} for name in names], {"rules": rules}


def by_clingo(options: list[dict[str, Any]], rules: dict[str, Any]) -> int:
    """The fewest features that can be taken, which is what the default completion of such a model has."""
    lines = [f"{{{option['name']}}}." for option in options]
    for rule in rules["rules"]:
        when = [*rule.get("when", ())]
        if "then" in rule:
            (head,) = rule["then"]
            lines.append(f":- {', '.join([*when, f'not {head}'])}.")
        elif "forbid" in rule:
            lines.append(f":- {', '.join(rule['forbid'])}.")
        else:
            group = rule["choose"]
            lines.append(f":- {', '.join(when)}, not {group['min']} {{{'; '.join(group['from'])}}} {group['max']}.")
    lines.append("#minimize {" + "; ".join(f"1,{option['name']}: {option['name']}" for option in options) + "}.")
    control = clingo.Control(["--opt-strategy=usc"])
    control.add("base", [], "\n".join(lines))
    control.ground([("base", [])])
    best: list[int] = []
    control.solve(on_model=lambda model: best.__setitem__(slice(None), model.cost))
    return best[0]
