"""Rules over the lines of a quote: sets of products, totals over them, and what is missing or too much."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, NamedTuple

from cpq.base.errors import nearest
from cpq.domain.configuration.options import EXACT, number, scalar, shown

if TYPE_CHECKING:
    from cpq.domain.configuration.declarations import QuoteRuleRow, SetRow

LINES = "lines"
PIECES = ""


class QuotedItem(NamedTuple):
    """A product of a line, or a component of it, with everything that a rule may ask about."""

    line: int
    """The index of its line."""

    product_id: str
    category: str
    quantity: Decimal
    values: Mapping[str, object]
    """Its specs and attributes, and the chosen options of a line."""


class Total(NamedTuple):
    """What is counted over a set: pieces, lines, or the sum of a number."""

    set_name: str
    measure: str

    def __str__(self) -> str:
        return f"{self.set_name}.{self.measure}" if self.measure else self.set_name


class Need(NamedTuple):
    """How much of a total is missing, or, where negative, too much."""

    total: Total
    missing: Decimal


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that does not hold: the lines concerned, and what would make it hold."""

    rule_id: str
    message: str
    is_required: bool
    lines: tuple[int, ...]
    needs: tuple[Need, ...]
    add: str | None
    found: str
    """The totals in words: `dryers.capacity_cfm is 400, and 500 is needed`."""


@dataclass(frozen=True)
class ProductSet:
    """A compiled set."""

    products: frozenset[str]
    listed: tuple[str, ...]
    categories: frozenset[str]
    where: tuple[tuple[str, Callable[[object], bool]], ...]

    def holds(self, product_id: str, category: str, values: Mapping[str, object]) -> bool:
        if self.products and product_id not in self.products:
            return False
        if self.categories and category not in self.categories:
            return False
        return all(name in values and meets(_typed(values[name])) for name, meets in self.where)


Bounds = tuple[Decimal | None, Decimal | None]


@dataclass(frozen=True)
class QuoteRule:
    """A compiled rule. `terms` and `constant` are its comparison, as a sum that is compared with 0."""

    id: str
    say: str
    is_required: bool
    sets: Mapping[str, ProductSet]
    when: tuple[tuple[Total, Bounds], ...]
    then: tuple[tuple[Total, Bounds], ...]
    forbid: tuple[tuple[Total, Bounds], ...]
    excludes: tuple[Total, ...]
    terms: tuple[tuple[Total, Decimal], ...]
    constant: Decimal
    operator: str
    add: str | None


class _UnknownNumberError(Exception):
    def __init__(self, item: QuotedItem, total: Total) -> None:
        super().__init__(f"{item.product_id} has no number {total.measure}, so {total} is not known")
        self.item = item


def check_quote_rules(items: Sequence[QuotedItem], rules: Iterable[QuoteRule]) -> list[Finding]:
    """The rules that do not hold for these products, in the order of the rules.

    A total is exact: where a product of a set lacks the number that is summed up, the rule does not hold for that
    reason, because nobody knows whether it does.
    """
    found = []
    for rule in rules:
        inside = {
            name: [item for item in items if one.holds(item.product_id, item.category, item.values)]
            for name, one in rule.sets.items()
        }
        finding = _check(rule, inside)
        if finding is not None:
            found.append(finding)
    return found


def compile_quote_rule(row: QuoteRuleRow) -> QuoteRule:
    """Compile a rule; ValueError when it uses a word or a set that does not exist."""
    sets = {name: _set(name, one) for name, one in row.sets.items()}
    then = () if row.then is None else _conditions(row.then, sets)
    forbid = () if row.forbid is None else _conditions(row.forbid, sets)
    when = () if row.when is None else _conditions(row.when, sets)
    one_or_more: Bounds = (Decimal(1), None)
    if row.requires is not None:
        first, *others = (_total(name, sets) for name in row.requires)
        when += ((first, one_or_more),)
        then = tuple((total, one_or_more) for total in others)
    excludes = tuple(_total(name, sets) for name in row.excludes or ())
    terms, constant, operator = ((), Decimal(0), "") if row.compare is None else _comparison(row.compare, sets)
    is_required = row.severity == "required"
    return QuoteRule(
        row.id, row.say, is_required, sets, when, then, forbid, excludes, terms, constant, operator, row.add
    )


def addition(missing: Decimal, offered: Iterable[tuple[str, Decimal]]) -> tuple[str, int] | None:
    """The product that gives what is missing with the fewest pieces; then the one that exceeds it least, then by id.

    `offered` has what one piece of each product gives.
    """
    ways = []
    for product_id, each in offered:
        if each > 0:
            pieces = int((missing / each).to_integral_value(ROUND_CEILING))
            ways.append((pieces, each * pieces - missing, product_id))
    if not ways:
        return None
    pieces, _, product_id = min(ways)
    return product_id, pieces


def measured(total: Total, values: Mapping[str, object]) -> Decimal:
    """What one piece of a product adds to a total; 0 where it lacks the number."""
    if total.measure in (PIECES, LINES):
        return Decimal(1)
    value = values.get(total.measure)
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else Decimal(0)


Inside = Mapping[str, Sequence[QuotedItem]]


def _check(rule: QuoteRule, inside: Inside) -> Finding | None:
    try:
        if not all(_is_within(_count(total, inside), bounds) for total, bounds in rule.when):
            return None
        if rule.forbid:
            return _forbidden(rule, inside)
        if rule.excludes:
            return _exclusive(rule, inside)
        return _compared(rule, inside) if rule.operator else _required(rule, inside)
    except _UnknownNumberError as unknown:
        return _finding(rule, [unknown.item.line], [], str(unknown))


def _required(rule: QuoteRule, inside: Inside) -> Finding | None:
    needs, words = [], []
    for total, (low, high) in rule.then:
        count = _count(total, inside)
        bound = low if low is not None and count < low else high if high is not None and count > high else None
        if bound is not None:
            needs.append(Need(total, bound - count))
            how, end = ("least", "needed") if count < bound else ("most", "allowed")
            verb = "are" if total.measure in (PIECES, LINES) and bound != 1 else "is"
            words.append(f"{total} is {shown(count)}, and at {how} {shown(bound)} {verb} {end}")
    if not needs:
        return None
    totals = [total for total, _ in (*rule.when, *rule.then)]
    return _finding(rule, _lines(totals, inside), needs, "; ".join(words))


def _forbidden(rule: QuoteRule, inside: Inside) -> Finding | None:
    counts = [(total, _count(total, inside), bounds) for total, bounds in rule.forbid]
    if not all(_is_within(count, bounds) for _, count, bounds in counts):
        return None
    # What only has an upper bound is too little; otherwise the last one is too much.
    total, count, (low, high) = next((one for one in counts if one[2][0] is None), counts[-1])
    missing = (high or Decimal(0)) + 1 - count if low is None else low - 1 - count
    words = " and ".join(f"{one} is {shown(number)}" for one, number, _ in counts)
    return _finding(rule, _lines([one for one, _, _ in counts], inside), [Need(total, missing)], words)


def _exclusive(rule: QuoteRule, inside: Inside) -> Finding | None:
    counts = {total: count for total in rule.excludes if (count := _count(total, inside)) > 0}
    if len(counts) < 2:
        return None
    words = " and ".join(f"{total} is {shown(count)}" for total, count in counts.items())
    needs = [Need(total, -count) for total, count in list(counts.items())[1:]]
    return _finding(rule, _lines(counts, inside), needs, words)


def _compared(rule: QuoteRule, inside: Inside) -> Finding | None:
    counts = [(total, factor, _count(total, inside)) for total, factor in rule.terms]
    balance = rule.constant
    for _, factor, count in counts:
        balance = EXACT.fma(factor, count, balance)
    if balance == 0 or (balance > 0 and rule.operator == ">=") or (balance < 0 and rule.operator == "<="):
        return None
    # The side that is too small grows; where it is a constant, the other one shrinks. What has to be equal follows its
    # first total: a plan for each machine, not a machine for each plan.
    small = [] if rule.operator == "==" else [one for one in counts if (one[1] > 0) == (balance < 0)]
    total, factor, _ = (small or counts)[0]
    missing = EXACT.divide(-balance, factor)
    words = ", ".join(f"{one} is {shown(count)}" for one, _, count in counts)
    return _finding(rule, _lines([one for one, _, _ in counts], inside), [Need(total, missing)], words)


def _finding(rule: QuoteRule, lines: Iterable[int], needs: Sequence[Need], found: str) -> Finding:
    return Finding(rule.id, rule.say, rule.is_required, tuple(sorted({*lines})), tuple(needs), rule.add, found)


def _lines(totals: Iterable[Total], inside: Inside) -> list[int]:
    return [item.line for total in totals for item in inside[total.set_name]]


def _count(total: Total, inside: Inside) -> Decimal:
    items = inside[total.set_name]
    if total.measure == LINES:
        return Decimal(len({item.line for item in items}))
    count = Decimal(0)
    for item in items:
        each = Decimal(1)
        if total.measure != PIECES:
            value = item.values.get(total.measure)
            if isinstance(value, bool) or not isinstance(value, int | Decimal):
                raise _UnknownNumberError(item, total)
            each = Decimal(value)
        count = EXACT.fma(item.quantity, each, count)
    return count


def _typed(value: object) -> object:
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _is_within(count: Decimal, bounds: Bounds) -> bool:
    low, high = bounds
    return (low is None or count >= low) and (high is None or count <= high)


def _set(name: str, row: SetRow) -> ProductSet:
    if "." in name or name == "const":
        raise ValueError(f"{shown(name)} cannot be the name of a set: it has a dot, or is the word for a constant")
    where = tuple((value, _meets(value, wanted)) for value, wanted in row.where.items())
    return ProductSet(frozenset(row.products), row.products, frozenset(row.categories), where)


def _meets(name: str, wanted: object) -> Callable[[object], bool]:
    """The check of one condition: a value, a list of values, or a mapping of `min`, `max` and `not`."""
    if not isinstance(wanted, Mapping):
        return _is_among(name, wanted)
    _known_words(wanted, ("min", "max", "not"))
    if not wanted:
        raise ValueError(f"the condition on {name} is empty")
    low, high = _bound(name, wanted, "min"), _bound(name, wanted, "max")
    excluded = _is_among(name, wanted["not"]) if "not" in wanted else lambda _value: False

    def meets(value: object) -> bool:
        if (low is not None or high is not None) and not (
            isinstance(value, Decimal) and _is_within(value, (low, high))
        ):
            return False
        return not excluded(value)

    return meets


def _is_among(name: str, wanted: object) -> Callable[[object], bool]:
    listed = wanted if isinstance(wanted, list | tuple) else [wanted]
    try:
        among = [(type(value), value) for value in map(scalar, listed)]
    except ValueError as error:
        raise ValueError(f"the condition on {name} {error}") from None
    if not among:
        raise ValueError(f"the condition on {name} lists no value")
    return lambda value: (type(value), value) in among


def _conditions(wanted: Mapping[str, object], sets: Mapping[str, ProductSet]) -> tuple[tuple[Total, Bounds], ...]:
    if not wanted:
        raise ValueError("a condition names at least one total")
    return tuple((_total(name, sets), _bounds(name, value)) for name, value in wanted.items())


def _bounds(name: str, wanted: object) -> Bounds:
    if not isinstance(wanted, Mapping):
        exact = _number(f"the condition on {name}", wanted)
        return exact, exact
    _known_words(wanted, ("min", "max"))
    low, high = _bound(name, wanted, "min"), _bound(name, wanted, "max")
    if low is None and high is None:
        raise ValueError(f"the condition on {name} is empty")
    if low is not None and high is not None and low > high:
        raise ValueError(f"no number meets the condition on {name}")
    return low, high


def _bound(name: str, wanted: Mapping[str, object], word: str) -> Decimal | None:
    return _number(f"the {word} of {name}", wanted[word]) if word in wanted else None


def _number(what: str, value: object) -> Decimal:
    try:
        return number(value)
    except ValueError as error:
        raise ValueError(f"{what} {error}") from None


def _total(name: str, sets: Mapping[str, ProductSet]) -> Total:
    set_name, _, measure = name.partition(".")
    if set_name not in sets:
        like = nearest(set_name, sets)
        raise ValueError(f"{shown(set_name)} is not a set of this rule{f'; did you mean {like[0]}?' if like else ''}")
    if name.endswith("."):
        raise ValueError(f"{shown(name)} names no number after the dot")
    return Total(set_name, measure)


def _comparison(
    wanted: Mapping[str, object], sets: Mapping[str, ProductSet]
) -> tuple[tuple[tuple[Total, Decimal], ...], Decimal, str]:
    _known_words(wanted, ("left", "op", "right"))
    operator = wanted.get("op")
    if operator not in _OPERATORS:
        raise ValueError(f"op is one of {', '.join(_OPERATORS)}, not {shown(operator)}")
    constant = Decimal(0)
    terms = []
    for total, factor in _terms(wanted):
        if total == "const":
            constant = EXACT.add(constant, factor)
        else:
            terms.append((_total(total, sets), factor))
    if not terms or not all(factor for _, factor in terms):
        raise ValueError("a comparison names at least one total, and no factor is 0")
    return tuple(terms), constant, str(operator)


def _terms(wanted: Mapping[str, object]) -> Iterator[tuple[str, Decimal]]:
    for side, sign in (("left", Decimal(1)), ("right", Decimal(-1))):
        part = wanted.get(side)
        if not isinstance(part, Mapping) or not part:
            raise ValueError(f"a comparison has a {side} side")
        for name, factor in part.items():
            yield str(name), EXACT.multiply(sign, _number(f"the factor of {name}", factor))


def _known_words(wanted: Mapping[str, object], known: tuple[str, ...]) -> None:
    for name in wanted:
        if name not in known:
            raise ValueError(f"{shown(name)} is not one of {', '.join(known)}")


_OPERATORS = (">=", "<=", "==")
