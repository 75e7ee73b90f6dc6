"""Laws of checking a configuration, over small random models, and a second opinion by brute force."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cpq.base.text import canonical_json
from cpq.domain.configuration import Checked
from cpq.domain.configuration.model_compiler import compile_model

NAMES = ("p", "q", "r")
DOMAINS: dict[str, list[Any]] = {
    "integer": [0, 1, 2, 3],
    "number": [Decimal("0.5"), 1, Decimal("2.5")],
    "enum": ["none", "one", "two"],
    "mixed": ["1", 1, True],
    "boolean": [False, True],
}

Domain = dict[str, list[Any]]
_PAIRED = ["requires", "excludes"]


@st.composite
def conditions(draw: st.DrawFn, domain: Domain, size: int = 2) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(sorted(domain)), min_size=1, max_size=size, unique=True))
    return {name: draw(wishes(domain[name])) for name in names}


@st.composite
def wishes(draw: st.DrawFn, values: list[Any]) -> Any:
    some = st.lists(st.sampled_from(values), min_size=1, max_size=len(values) - 1, unique_by=canonical_json)
    ways = [st.sampled_from(values), some, some.map(lambda listed: {"not": listed})]
    if is_number(values):
        bound = st.sampled_from(values)
        ways += [bound.map(lambda low: {"min": low}), bound.map(lambda high: {"max": high})]
    return draw(st.one_of(ways))


@st.composite
def constructs(draw: st.DrawFn, domain: Domain) -> dict[str, Any]:
    names = st.lists(st.sampled_from(sorted(domain)), min_size=1, max_size=3, unique=True)
    numbers = [name for name in sorted(domain) if is_number(domain[name])]
    kinds = ["then", "forbid", "table", "choose", *["compare"] * bool(numbers), *_PAIRED * (len(domain) > 1)]
    kind = draw(st.sampled_from(kinds))
    if kind in _PAIRED:
        return {kind: draw(st.permutations(sorted(domain)))[:2]}
    if kind == "table":
        columns = draw(names)
        every = list(product(*(domain[name] for name in columns)))
        return {"table": {"columns": columns, "rows": draw(st.lists(st.sampled_from(every), min_size=1, max_size=6))}}
    if kind == "choose":
        group = draw(names)
        low = draw(st.integers(0, len(group)))
        return {"choose": {"from": group, "min": low, "max": draw(st.integers(low, len(group)))}}
    if kind == "compare":
        side = st.dictionaries(
            st.sampled_from([*numbers, "const"]), st.sampled_from([-1, 1, 2, Decimal("0.5")]), min_size=1, max_size=2
        )
        left = {numbers[0]: 1, **draw(side)}
        return {"compare": {"left": left, "op": draw(st.sampled_from([">=", "<=", "=="])), "right": draw(side)}}
    return {kind: draw(conditions(domain))}


@st.composite
def models(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    domain: Domain = {}
    options = []
    for name in NAMES:
        kind = draw(st.sampled_from(sorted(DOMAINS)))
        option: dict[str, Any] = {"name": name, "type": "enum" if kind == "mixed" else kind}
        option |= {} if kind == "boolean" else {"values": DOMAINS[kind]}
        option |= {"default": draw(st.sampled_from(DOMAINS[kind]))} if draw(st.booleans()) else {}
        option |= {"required": True} if draw(st.integers(0, 4)) == 0 else {}
        option |= {"active_when": draw(conditions(domain))} if len(domain) and draw(st.booleans()) else {}
        options.append(option)
        domain[name] = DOMAINS[kind]
    rules = []
    for index in range(draw(st.integers(1, 4))):
        when = {"when": draw(conditions(domain))} if draw(st.booleans()) else {}
        rules.append({"id": f"R{index}", "say": f"Sentence {index}.", **when, **draw(constructs(domain))})
    declared = draw(st.permutations(options))
    return declared, {"rules": rules, "recommend": [{**one, "id": f"A{one['id']}"} for one in rules]}


def is_number(values: list[Any]) -> bool:
    return all(isinstance(value, int | Decimal) and not isinstance(value, bool) for value in values)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, _SCALARS) and isinstance(other, _SCALARS):
        return kind_of(one) is kind_of(other) and bool(one == other)
    return canonical_json(one) == canonical_json(other)


def kind_of(value: bool | int | Decimal | str) -> type:
    """True is no number to us, and 1 is the same whole or decimal."""
    return Decimal if type(value) is int else type(value)


_SCALARS = (bool, int, Decimal, str)


def complete(options: list[dict[str, Any]], choices: Mapping[str, Any]) -> tuple[dict[str, Any], set[str], set[str]]:
    """The second opinion: values, inactive options, and options with a problem; by name, which is how they depend."""
    values: dict[str, Any] = {}
    inactive: set[str] = set()
    troubled: set[str] = set()
    for option in sorted(options, key=lambda option: option["name"]):
        name, needs = option["name"], option.get("active_when", {})
        certain = {other: wish for other, wish in needs.items() if other not in troubled}
        if not all(other in values and fits(values[other], wish) for other, wish in certain.items()):
            inactive.add(name)
        elif len(certain) < len(needs):
            troubled.add(name)
        elif name in choices:
            values[name] = choices[name]
        elif "default" in option:
            values[name] = option["default"]
        elif option.get("required"):
            troubled.add(name)
    return values, inactive, troubled


def fits(value: Any, wish: Any) -> bool:
    if isinstance(wish, dict):
        wanted = wish.get("not", [])
        return (
            not any(same(value, other) for other in wanted)
            and ("min" not in wish or value >= wish["min"])
            and ("max" not in wish or value <= wish["max"])
        )
    return any(same(value, other) for other in (wish if isinstance(wish, list) else [wish]))


def broken(one: Mapping[str, Any], values: dict[str, Any], inactive: set[str], troubled: set[str]) -> bool:
    """The second opinion on one rule, with fractions and plain loops."""

    def met(wishes: Mapping[str, Any]) -> Iterator[bool]:
        return (name in values and fits(values[name], wish) for name, wish in wishes.items())

    unbound = inactive | troubled
    if not all(met(one.get("when", {}))):
        return False
    if "requires" in one:
        first, *others = one["requires"]
        return is_taken(values, first) and not all(is_taken(values, name) or name in troubled for name in others)
    if "excludes" in one:
        return sum(is_taken(values, name) for name in one["excludes"]) > 1
    if "then" in one:
        return not all(met({name: wish for name, wish in one["then"].items() if name not in unbound}))
    if "forbid" in one:
        return all(met(one["forbid"]))
    if "table" in one:
        columns = one["table"]["columns"]
        chosen = [values.get(name) for name in columns]
        return unbound.isdisjoint(columns) and not any(same(list(row), chosen) for row in one["table"]["rows"])
    if "choose" in one:
        group = one["choose"]["from"]
        taken = sum(is_taken(values, name) for name in group)
        perhaps = sum(name in troubled for name in group)
        is_wrong = taken > one["choose"]["max"] or taken + perhaps < one["choose"]["min"]
        return is_wrong and not unbound.issuperset(group)
    sides = [one["compare"][side] for side in ("left", "right")]
    named = {name for side in sides for name in side} - {"const"}
    if not unbound.isdisjoint(named):
        return False
    if not named <= values.keys():
        return True
    known = {**values, "const": 1}
    left, right = (sum(Fraction(known[name]) * Fraction(factor) for name, factor in side.items()) for side in sides)
    return not {">=": left >= right, "<=": left <= right, "==": left == right}[one["compare"]["op"]]


def is_taken(values: Mapping[str, Any], name: str) -> bool:
    return name in values and values[name] not in (0, "none")


def every_choice(options: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    domains = [[None, *option.get("values", [False, True])] for option in options]
    for chosen in product(*domains):
        pairs = zip(options, chosen, strict=True)
        yield {option["name"]: value for option, value in pairs if value is not None}


@given(models())
def test_rules_hold_exactly_when_plain_loops_say_so(model: Any):
    options, rules = model
    compiled = compile_model(options, rules)
    for choices in every_choice(options):
        checked = compiled.check(choices)
        values, inactive, troubled = complete(options, choices)
        expected = [one for one in rules["rules"] if broken(one, values, inactive, troubled)]
        assert [p.rule_id for p in checked.problems if p.rule_id] == [one["id"] for one in expected]
        assert checked.advice == tuple(one["say"] for one in expected)
        assert {p.option for p in checked.problems if not p.rule_id} == {
            option["name"]
            for option in options
            if option["name"] in (inactive & choices.keys())
            or (option["name"] in troubled - choices.keys() and is_missing(option, values, troubled))
        }
        assert same({**choices, **values}, checked.choices)


def is_missing(option: Mapping[str, Any], values: Mapping[str, Any], troubled: set[str]) -> bool:
    return bool(option.get("required")) and troubled.isdisjoint(option.get("active_when", {}))


hostile = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.decimals(),
    st.floats(),
    st.sampled_from(["NaN", "1", "true", "none", "one", "-0", "1e999", "\0", "9" * 400]),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)
any_choices = st.dictionaries(st.sampled_from([*NAMES, "P", "unknown"]) | st.text(max_size=3), hostile, max_size=6)


@given(models(), any_choices)
def test_checking_the_completed_choices_changes_nothing(model: Any, choices: dict[str, Any]):
    compiled = compile_model(*model)
    once = compiled.check(choices)
    twice = compiled.check(once.choices)
    assert shape(twice) == shape(once)
    assert list(twice.choices) == list(once.choices)


@given(models(), any_choices, st.randoms())
def test_the_order_of_the_choices_means_nothing(model: Any, choices: dict[str, Any], random: Any):
    names = list(choices)
    random.shuffle(names)
    compiled = compile_model(*model)
    assert shape(compiled.check({name: choices[name] for name in names})) == shape(compiled.check(choices))


@given(models(), any_choices)
def test_a_given_value_is_never_changed_and_nothing_valid_is_lost(model: Any, choices: dict[str, Any]):
    checked = compile_model(*model).check(choices)
    given_names = {name for name, value in choices.items() if value is not None}
    assert given_names <= checked.choices.keys()
    refused = {problem.option for problem in checked.problems if problem.rule_id is None}
    for name in given_names & set(NAMES) - refused:
        assert str(checked.choices[name]).lower() == str(choices[name]).lower() or checked.choices[name] == Decimal(
            str(choices[name])
        )


@given(models(), st.sampled_from(NAMES))
def test_a_rule_called_broken_beside_a_refused_value_is_broken_whatever_the_value(model: Any, name: str):
    options, rules = model
    compiled = compile_model(options, rules)
    refused = next(option for option in options if option["name"] == name)
    for choices in every_choice([option for option in options if option["name"] != name]):
        doubted = compiled.check({**choices, name: ["refused"]})
        if name in {problem.option for problem in doubted.problems if "applies only" in problem.message}:
            continue
        surely = rule_ids(doubted)
        for value in refused.get("values", [False, True]):
            assert surely <= rule_ids(compiled.check({**choices, name: value}))


@given(models())
def test_a_broken_then_or_table_names_values_that_mend_it(model: Any):
    options, rules = model
    compiled = compile_model(options, rules)
    simple = {one["id"] for one in rules["rules"] if ("table" in one or len(one.get("then", ())) == 1)}
    watched = {name for option in options for name in option.get("active_when", {})}
    for choices in every_choice(options):
        for problem in compiled.check(choices).problems:
            asks: Mapping[str, Any] = next(
                (one.get("when", {}) for one in rules["rules"] if one["id"] == problem.rule_id), {}
            )
            if problem.rule_id in simple and problem.option not in {None, *watched, *asks}:
                assert problem.allowed
                for value in problem.allowed:
                    assert problem.rule_id not in rule_ids(compiled.check({**choices, str(problem.option): value}))


def shape(checked: Checked) -> str:
    """Everything an answer says, as text: a NaN is not equal to itself."""
    return repr(checked)


def rule_ids(checked: Checked) -> set[str | None]:
    return {problem.rule_id for problem in checked.problems} - {None}
