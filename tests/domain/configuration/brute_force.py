"""Small random models, and every answer about them by trying all configurations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import reduce
from itertools import product
from operator import or_
from random import Random
from typing import Any, NamedTuple

from cpq.domain.configuration.options import spelled
from tests.domain.configuration.test_laws import broken, fits, is_number, kind_of, same

KINDS: dict[str, list[Any]] = {
    "integer": [0, 1, 2, 3],
    "number": [Decimal("0.5"), 1, Decimal("2.5")],
    "enum": ["none", "one", "two"],
    "mixed": ["1", 1, True],
    "boolean": [False, True],
    "range": [2, 4, 6],
}

LONG: list[Any] = [0, 2, 4, 6, 8, 10, 12, 14, 16]
"""A range that is cut at the constants of the rules, where a short one is very short."""

INACTIVE = "inactive"
UNSET = "unset"
_STATES = {INACTIVE: 0, UNSET: 2}


class Case(NamedTuple):
    options: list[dict[str, Any]]
    rules: dict[str, Any]
    surcharges: dict[str, dict[str, int]]


def case(seed: int, *, has_long: bool = False) -> Case:
    """A random model of three to five options: every construct, defaults, groups in groups, numbers that compare."""
    random = Random(seed)
    kinds = {**KINDS, **({"long": LONG} if has_long else {})}
    names = "pqrst"[: 3 if has_long else random.choice([3, 3, 4, 4, 5])]
    domain: dict[str, list[Any]] = {}
    options: list[dict[str, Any]] = []
    for name in names:
        kind = random.choice([*sorted(kinds), *["long"] * 4 * has_long])
        option: dict[str, Any] = {"name": name, "type": _TYPES.get(kind, kind)}
        if kind in ("range", "long"):
            option |= {"min": kinds[kind][0], "max": kinds[kind][-1], "step": 2}
        elif kind != "boolean":
            option["values"] = random.sample(kinds[kind], len(kinds[kind]))
        if random.random() < 0.5:
            option["default"] = random.choice(kinds[kind])
        if random.random() < 0.2:
            option["required"] = True
        if random.random() < 0.3:
            option["keep"] = random.randint(2, 4)
        if domain and random.random() < 0.4:
            option["active_when"] = conditions(random, domain, 2)
        options.append(option)
        domain[name] = kinds[kind]
    rules = [
        {"id": f"R{place}", "say": f"Sentence {place}."}
        | ({"when": conditions(random, domain, 2)} if random.random() < 0.5 else {})
        | construct(random, domain)
        for place in range(random.randint(1, 5))
    ]
    recommend = [{"id": "A", "say": "Advice."} | construct(random, domain) for _ in range(random.randint(0, 1))]
    surcharges = {
        name: {spelled(_typed(value)): random.choice([0, 5, 5, 7, -3]) for value in some(random, values)}
        for name, values in domain.items()
        if random.random() < 0.5
    }
    random.shuffle(options)
    return Case(options, {"rules": rules, "recommend": recommend}, surcharges)


_TYPES = {"mixed": "enum", "range": "integer", "long": "integer"}


def some(random: Random, values: list[Any]) -> list[Any]:
    """All of a few values; of many only two."""
    return values if len(values) < len(LONG) else random.sample(values, 2)


def choices(seed: int, case_: Case) -> dict[str, Any]:
    """Some choices, mostly ones that options have."""
    random = Random(seed)
    picked = {}
    for option in random.sample(case_.options, len(case_.options)):
        if random.random() < 0.65:
            picked[option["name"]] = random.choice(values_of(option))
    if random.random() < 0.08:
        picked[random.choice(case_.options)["name"]] = random.choice([17, "onee", "nothing", -1])
    if random.random() < 0.1 and (ranges := [one["name"] for one in case_.options if "step" in one]):
        picked[random.choice(ranges)] = random.choice([5, 7, 13, 40])
    return picked


def values_of(option: Mapping[str, Any]) -> list[Any]:
    if option["type"] == "boolean":
        return [False, True]
    return list(
        option["values"] if "values" in option else range(option["min"], option["max"] + 1, option.get("step", 1))
    )


def conditions(random: Random, domain: Mapping[str, list[Any]], most: int) -> dict[str, Any]:
    names = random.sample(sorted(domain), random.randint(1, min(most, len(domain))))
    return {name: _wish(random, domain[name]) for name in names}


def _wish(random: Random, values: list[Any]) -> Any:
    some = random.sample(values, random.randint(1, len(values) - 1))
    ways = [random.choice(values), some, {"not": some}]
    if is_number(values):
        ways += [{"min": random.choice(values)}, {"max": random.choice(values)}]
    return random.choice(ways)


def construct(random: Random, domain: Mapping[str, list[Any]]) -> dict[str, Any]:
    names = random.sample(sorted(domain), random.randint(1, min(3, len(domain))))
    numbers = [name for name in sorted(domain) if is_number(domain[name])]
    paired = ["requires", "excludes"] * (len(names) > 1)
    kind = random.choice(["then", "forbid", "table", "choose", *["compare"] * bool(numbers), *paired])
    if kind in paired:
        return {kind: names}
    if kind == "table":
        every = list(product(*(domain[name] for name in names)))
        rows = [list(row) for row in random.sample(every, random.randint(1, min(8, len(every))))]
        return {"table": {"columns": names, "rows": rows}}
    if kind == "choose":
        low = random.randint(0, len(names))
        return {"choose": {"from": names, "min": low, "max": random.randint(low, len(names))}}
    if kind == "compare":
        sides = [
            {name: random.choice([-1, 1, 2, Decimal("0.5")]) for name in random.sample([*numbers, "const"], count)}
            for count in (random.randint(1, min(3, len(numbers) + 1)), 1)
        ]
        left = {numbers[0]: 1, **sides[0]}
        return {"compare": {"left": left, "op": random.choice([">=", "<=", "=="]), "right": sides[1]}}
    return {kind: conditions(random, domain, 2)}


class Oracle:
    """All states of all options, tried one by one with the plain loops of the other laws.

    What each state, rule and demand leaves of them is kept as the bits of a number, so that thousands are quick.
    """

    def __init__(self, case_: Case) -> None:
        self.options = case_.options
        self.rules = case_.rules
        self.surcharges = case_.surcharges
        self.names = [option["name"] for option in case_.options]
        self.everything = list(self._every())
        self.demands = {
            *((option["name"], "active") for option in self.options if "active_when" in option),
            *((option["name"], "required") for option in self.options if self._must_be_chosen(option)),
        }
        self._of_state: dict[tuple[str, type, Any], int] = defaultdict(int)
        for place, one in enumerate(self.everything):
            for name, state in one.items():
                self._of_state[name, kind_of(state), state] |= 1 << place
        self._of_rule = {one["id"]: self._where({one["id"]}, set()) for one in self.rules["rules"]}
        self._of_demand = {demand: self._where(set(), {demand}) for demand in self.demands}
        self._valid = self.open_to({}, self._of_rule, self.demands)
        self.valid = list(self._among(self._valid))

    def open_to(self, states: Mapping[str, list[Any]], rules: Iterable[str], demands: Iterable[tuple[str, str]]) -> int:
        """The configurations with one of these states of each option, where these rules and demands hold, as bits."""
        found = (1 << len(self.everything)) - 1
        for name, listed in states.items():
            found &= reduce(or_, (self._of_state.get((name, kind_of(state), state), 0) for state in listed))
        for rule in rules:
            found &= self._of_rule[rule]
        for demand in demands:
            found &= self._of_demand[demand]
        return found

    def _where(self, rules: set[str], demands: set[tuple[str, str]]) -> int:
        return sum(1 << place for place, one in enumerate(self.everything) if self.holds(one, rules, demands))

    def _among(self, bits: int) -> Iterator[Mapping[str, Any]]:
        return (one for place, one in enumerate(self.everything) if bits >> place & 1)

    def holds(self, states: Mapping[str, Any], rules: set[str], demands: set[tuple[str, str]]) -> bool:
        """Whether these rules and these demands of options hold."""
        values = {name: state for name, state in states.items() if state not in (INACTIVE, UNSET)}
        inactive = {name for name, state in states.items() if state == INACTIVE}
        for option in self.options:
            name, needs = option["name"], option.get("active_when")
            if (name, "active") in demands:
                assert needs is not None
                met = all(other in values and fits(values[other], wish) for other, wish in needs.items())
                if met == (name in inactive):
                    return False
            if (name, "required") in demands and states[name] == UNSET:
                return False
        return not any(broken(one, values, inactive, set()) for one in self.rules["rules"] if one["id"] in rules)

    def with_choices(self, given: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """The valid configurations that keep the choices."""
        wanted = {name: [value] for name, value in given.items()}
        return self._among(self._valid & self.open_to(wanted, (), ()))

    def has_valid(self, given: Mapping[str, Any]) -> bool:
        return bool(self._valid & self.open_to({name: [value] for name, value in given.items()}, (), ()))

    def domain(self, given: Mapping[str, Any], name: str) -> list[Any]:
        """The states of an option if only it changes, each once."""
        others = {other: value for other, value in given.items() if other != name}
        states = [state for of, _, state in self._of_state if of == name]
        return [state for state in states if self.has_valid({**others, name: state})]

    def best(self, given: Mapping[str, Any], goal: str, among: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        return min(among, key=lambda one: self.cost(given, goal, one), default=None)

    def cost(self, given: Mapping[str, Any], goal: str, one: Mapping[str, Any]) -> tuple[Any, ...]:
        price = sum(self.surcharges.get(name, {}).get(spelled(_typed(state)), 0) for name, state in one.items())
        deviations = sum(self._deviates(option, given, one[option["name"]]) for option in self.options)
        values = {name: state for name, state in one.items() if state not in (INACTIVE, UNSET)}
        inactive = {name for name, state in one.items() if state == INACTIVE}
        advice = sum(broken(rule, values, inactive, set()) for rule in self.rules["recommend"])
        ties = tuple(self._rank(option, one[option["name"]]) for option in self.options)
        if goal != "nearest":
            levels = {"cheapest": (price, deviations), "default": (deviations, price)}
            return (*levels.get(goal, (advice, deviations, price)), *ties)
        changes = sum(self._change(option, given, one) for option in self.options)
        steps = sum(self._distance(option, given, one) for option in self.options)
        return changes, steps, deviations, price, *ties

    def _change(self, option: Mapping[str, Any], given: Mapping[str, Any], one: Mapping[str, Any]) -> int:
        name, keep = option["name"], option.get("keep", 1)
        if name not in given or same(given[name], one[name]):
            return 0
        if not is_offered(option, given[name]):
            return 0 if _is_taken(one[name]) else keep
        return keep * (1 + (_is_taken(given[name]) and not _is_taken(one[name])))

    def _distance(self, option: Mapping[str, Any], given: Mapping[str, Any], one: Mapping[str, Any]) -> int:
        name, state = option["name"], one[option["name"]]
        numbers = sorted(values_of(option)) if is_number(values_of(option)) else []
        if name not in given or state in (INACTIVE, UNSET):
            return 0
        if numbers and isinstance(given[name], int | Decimal):
            if is_offered(option, given[name]):
                return abs(numbers.index(state) - numbers.index(given[name]))
            if "step" in option:
                near = min(numbers, key=lambda number: abs(number - given[name]))
                return abs(numbers.index(state) - numbers.index(near))
            gaps = sorted({abs(number - given[name]) for number in numbers})
            return gaps.index(abs(state - given[name]))
        alike = {"onee": "one", 17: 1, -1: 1}.get(given[name]) if not is_offered(option, given[name]) else None
        return int(not same(state, alike)) if any(same(value, alike) for value in values_of(option)) else 0

    def _deviates(self, option: Mapping[str, Any], given: Mapping[str, Any], state: Any) -> int:
        default = option.get("default", UNSET)
        if option["name"] in given or state == INACTIVE or self._must_be_chosen(option) or same(state, default):
            return 0
        return int(option.get("keep", 1)) * (1 + (_is_taken(default) and not _is_taken(state)))

    def _rank(self, option: Mapping[str, Any], state: Any) -> int:
        if state in _STATES:
            return _STATES[state]
        declared = [False, True] if option["type"] == "boolean" else values_of(option)
        return (
            1
            if "default" in option and same(state, option["default"])
            else 3 + [same(state, v) for v in declared].index(True)
        )

    def _must_be_chosen(self, option: Mapping[str, Any]) -> bool:
        return bool(option.get("required")) and "default" not in option

    def _every(self) -> Iterator[dict[str, Any]]:
        states = [
            [INACTIVE] * ("active_when" in option) + [UNSET] * ("default" not in option) + values_of(option)
            for option in self.options
        ]
        for one in product(*states):
            yield dict(zip(self.names, one, strict=True))


def is_offered(option: Mapping[str, Any], value: Any) -> bool:
    return any(same(value, offered) for offered in values_of(option))


def _is_taken(state: Any) -> bool:
    return state not in (INACTIVE, UNSET, "none", 0)


def _typed(value: Any) -> Any:
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value
