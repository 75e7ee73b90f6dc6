"""The configurator in CPU time beside clingo, which is asked the same: a product of 60 options, and feature models."""

import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from cpq.domain.configuration.model_compiler import compile_model
from cpq.domain.configuration.solver import Configurator, Goal, Possibility
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
    if clingo is not None:
        peer = Clingo(of_product(options, rules), "#minimize {V*1000,N: o(N,V)}.")
        for one in given[:3]:
            assert peer.values_of_product(one, options) == possible(configurator, one)
        assert peer.optimum() == found_cheapest(configurator)
        of_peer: dict[str, Callable[[Any], object]] = {
            "can be completed": lambda one: peer.holds([value_of(*choice) for choice in one.items()]),
            "all values": lambda one: peer.values_of_product(one, options),
            "cheapest completion": lambda _: peer.optimum(),
        }
        for name, ask in of_peer.items():
            found[f"60 options: clingo, {name} ms CPU"] = worst(ask, given)
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
        fewest = "#minimize {" + "; ".join(f"1,{name}: {name}" for name in names) + "}."
        peer = Clingo(of_feature_model(names, rules), fewest)
        figures[f"{at}: clingo, can be completed ms CPU"] = worst(lambda one: peer.holds(signed(one)), given)
        figures[f"{at}: clingo, values of {SHOWN} on screen ms CPU"] = worst(
            lambda one: peer.values_of_features(one, names[:SHOWN]), given
        )
        figures[f"{at}: clingo, default completion ms CPU"] = worst(lambda _: peer.optimum(), given[:1])
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


class Clingo:
    """A model that is grounded once, as ours is compiled once; choices are assumptions."""

    def __init__(self, program: str, minimize: str) -> None:
        self._control = self._grounded(program)
        self._best = self._grounded(program + minimize)

    def _grounded(self, program: str) -> Any:
        control = clingo.Control(["--opt-strategy=usc", "--warn=none"])
        control.add("base", [], program)
        control.ground([("base", [])])
        return control

    def holds(self, literals: list[tuple[str, bool]]) -> bool:
        return bool(self._control.solve(assumptions=self._assumed(literals)).satisfiable)

    def optimum(self) -> int:
        best: list[int] = []
        self._best.solve(on_model=lambda model: best.__setitem__(slice(None), model.cost))
        return best[0]

    def values_of_product(self, given: dict[str, Any], options: list[dict[str, Any]]) -> set[str]:
        """The values of each option if only it changes, each tried alone, which is faster than brave reasoning."""
        chosen = {name: value_of(name, value) for name, value in given.items()}
        found = set()
        for option in options:
            others = [literal for name, literal in chosen.items() if name != option["name"]]
            atoms = (value_of(option["name"], value) for value in option["values"])
            found |= {atom for atom, _ in atoms if self.holds([*others, (atom, True)])}
        return found

    def values_of_features(self, given: dict[str, bool], names: list[str]) -> list[list[bool]]:
        """Of each feature whether it can be taken, and whether it can be left out."""
        others = {
            name: signed({other: is_taken for other, is_taken in given.items() if other != name}) for name in names
        }
        return [[self.holds([*others[name], (name, taken)]) for taken in (True, False)] for name in names]

    def _assumed(self, literals: list[tuple[str, bool]]) -> list[tuple[Any, bool]]:
        return [(clingo.parse_term(atom), is_true) for atom, is_true in literals]


def value_of(name: str, value: object) -> tuple[str, bool]:
    return f"o({name},{value})", True


def signed(given: dict[str, bool]) -> list[tuple[str, bool]]:
    return list(given.items())


def possible(configurator: Configurator, given: dict[str, Any]) -> set[str]:
    domains = configurator.domains(given, reasons_max=0).domains
    now = ((d.option, answer.value) for d in domains for answer in d.values if answer.possibility is Possibility.NOW)
    return {value_of(name, value)[0] for name, value in now}


def found_cheapest(configurator: Configurator) -> int:
    return configurator.complete({}, goal=Goal.CHEAPEST, surcharges=SURCHARGES).found[0].surcharge


def of_product(options: list[dict[str, Any]], rules: dict[str, Any]) -> str:
    lines = [f"1 {{o({option['name']},0..5)}} 1." for option in options]
    for rule in rules["rules"]:
        if "then" in rule:
            ((one, _),), ((other, _),) = rule["when"].items(), rule["then"].items()
            lines.append(f":- o({one},A), A >= 4, o({other},0).")
        elif "forbid" in rule:
            (one, other) = rule["forbid"]
            lines.append(f":- o({one},5), o({other},B), B <= {rule['forbid'][other]['max']}.")
        elif "compare" in rule:
            (one, other), third = rule["compare"]["left"], next(iter(rule["compare"]["right"]))
            lines.append(f":- o({one},A), o({other},B), o({third},C), A + B > C + 7.")
        else:
            (one, other) = rule["table"]["columns"]
            lines.append(f":- o({one},A), o({other},B), |A - B| >= 4.")
    return "\n".join(lines)


def of_feature_model(names: list[str], rules: dict[str, Any]) -> str:
    lines = [f"{{{name}}}." for name in names]
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
    return "\n".join(lines)
