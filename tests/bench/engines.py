"""The same rules in other rule engines, where one is installed: how long each takes over ours, and where it differs."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from cpq.domain.policy.facts import QuoteFacts
from cpq.domain.policy.policy_set import PolicySet
from tests.bench.peers import zen

try:
    import rule_engine
except ImportError:
    rule_engine = None

Decide = Callable[[Any], list[bool]]
Engine = tuple[str, Callable[[Sequence[str]], Decide], Callable[[dict[str, Any]], Any]]


def engines() -> Iterator[Engine]:
    """Name, how to prepare conditions, and how to prepare facts, of every engine that is installed."""
    if rule_engine is not None:
        yield "rule-engine", _in_rule_engine, _exact
    if zen is not None:
        yield "zen-engine", _in_zen, _as_floats


def as_plain(policies: PolicySet, facts: QuoteFacts) -> dict[str, Any]:
    """All facts by name. What we derive when it is first read is given to the others ready-made."""
    environment = policies.environment(facts)
    derived = ("is_standard_terms", "has_term", "net_value", "gross_value", "total_value")
    plain = {**vars(facts), **{name: environment[name] for name in derived}}
    return {**plain, "lines": [dict(vars(line)) for line in facts.lines]}


def _in_rule_engine(conditions: Sequence[str]) -> Decide:
    rules = [rule_engine.Rule(_with_lists(_rewritten(text, r"$any([\1 for line in lines])"))) for text in conditions]
    return lambda facts: [bool(rule.matches(facts)) for rule in rules]


def _in_zen(conditions: Sequence[str]) -> Decide:
    """All conditions as one list, which is several times as fast as one by one."""
    texts: Iterable[str] = (_with_lists(_rewritten(text, r"some(lines, \1)")) for text in conditions)
    whole = zen.compile_expression("[" + ", ".join(f"({text.replace('line.', '#.')})" for text in texts) + "]")
    return lambda facts: list(whole.evaluate(facts))


def _rewritten(text: str, pattern: str) -> str:
    return re.sub(r"any\((.*?) for line in lines\)", pattern, text)


def _with_lists(text: str) -> str:
    return text.replace("{", "[").replace("}", "]")


def _exact(facts: dict[str, Any]) -> Any:
    return facts


def _as_floats(value: Any) -> Any:
    """It takes no decimals: an amount beyond 15 digits would reach it rounded."""
    if isinstance(value, dict):
        return {name: _as_floats(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_floats(item) for item in value]
    return float(value) if isinstance(value, Decimal) else value
