"""The check of a quote across its lines: what is missing, what does not go together, and the call that repairs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, NotRequired

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.described import Described
from cpq.base.errors import Code, CpqError, next_call
from cpq.domain.configuration.options import EXACT
from cpq.domain.configuration.quote_rules import (
    LINES,
    PIECES,
    Finding,
    Need,
    ProductSet,
    QuotedItem,
    QuoteRule,
    addition,
    measured,
)
from cpq.domain.configuration.relations import Related, Relation
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.quote import line_id
from cpq.services.catalog import repository as catalog
from cpq.services.catalog.repository import Facts, model_of
from cpq.services.quotes import cross_lines, repository
from cpq.services.quotes.composition import by_id, gather, with_custom_ids
from cpq.services.quotes.cross_lines import Place
from cpq.services.quotes.draft_check import account_problems, check_lines, fraction_problems, refuse
from cpq.storage.schema import tables

ROUNDS_MAX = 12
"""A repair may break another rule, which is then repaired, too; so often."""

LISTED_MAX = 20

OWN_KINDS = ("configuration", "product", "option")
"""Findings about one line, and not about what goes with it."""


class AddedProduct(TypedDict):
    product_id: str
    product_name: str
    quantity: int
    option_set: NotRequired[str]


class ChangedQuantity(TypedDict):
    line: str
    quantity: int | Decimal


class Repair(TypedDict):
    """What makes one rule hold."""

    add: list[AddedProduct]
    change: list[ChangedQuantity]
    remove: list[str]


class CrossLineFinding(TypedDict):
    kind: Annotated[str, Described("`rule`, `requires`, `excludes`, `recommends`, `configuration` or `option`.")]
    rule_id: str | None
    message: str
    found: Annotated[str | None, Described("The totals over the lines that the rule compares.")]
    lines: Annotated[list[str], Described("Ids of the lines concerned; of lines that were given, their places.")]
    missing: Annotated[
        int | Decimal | None, Described("How much of `of` is missing; where negative, how much is too much.")
    ]
    of: str | None
    repair: Repair | None


class Companion(TypedDict):
    """What goes with a product in a quote."""

    is_required: Annotated[bool, Described("Without it a quote cannot be sent; otherwise it is a suggestion.")]
    message: str
    add: list[AddedProduct]


class QuoteCheck(TypedDict):
    is_complete: Annotated[bool, Described("Whether nothing is required any more; a sent quote must be complete.")]
    violations: list[CrossLineFinding]
    violations_total: int
    suggestions: list[CrossLineFinding]
    message: str
    next_call: NotRequired[dict[str, Any]]


class _Change(NamedTuple):
    """A line with another quantity; with 0 it is removed. A number that no line has adds one."""

    number: int
    product_id: str
    quantity: int | Decimal
    option_set: str | None = None
    """Of a line that is added."""


class _Problem(NamedTuple):
    """Something that does not hold, from a rule or from a relationship of a product."""

    kind: str
    rule_id: str | None
    message: str
    found: str | None
    lines: tuple[int, ...]
    missing: Decimal | None
    of: str | None
    changes: tuple[_Change, ...]
    is_required: bool
    option_sets: frozenset[str] = frozenset()
    """Those that it is repaired in; none where lines that all share are changed."""


def check_quote(tx: Tx, quote_id: str) -> QuoteCheck:
    """Check a stored quote in its current version."""
    quote = repository.load(tx, quote_id)
    draft = quote.as_draft()
    names = [line_id(quote.id, line.number) for line in draft.lines]
    check = _Check(tx, draft, names)
    answer = check.answer()
    changes = check.changes() if answer["violations"] and not draft.agreement else None
    if changes:
        version = {"quote_id": quote.id, "expected_version": quote.current_version}
        if quote.status.is_draft and not quote.is_rejected:
            answer["next_call"] = next_call("quote_update", **version, **check.as_arguments(changes))
            answer["message"] += check.cuts(changes)
        else:
            answer["next_call"] = next_call("quote_revise", **version)
    return answer


def check_given(
    tx: Tx, lines: Sequence[DraftLine], given: Sequence[Mapping[str, Any]], account_id: str | None = None
) -> QuoteCheck:
    """Check lines that are not stored; `given` are the same as the caller wrote them."""
    numbered = tuple(line._replace(number=number) for number, line in enumerate(lines, 1))
    draft = with_custom_ids(Draft(account_id=account_id or "", currency="", lines=numbered))
    check = _Check(tx, draft, [f"/line_items/{index}" for index in range(len(lines))])
    refuse(check.refusals())
    answer = check.answer()
    if answer["violations"] and (changes := check.changes()):
        items = check.changed_items(given, changes)
        tool = "quote_create" if account_id else "quote_check"
        who = {"account_id": account_id} if account_id else {}
        answer["next_call"] = next_call(tool, **who, line_items=items)
        answer["message"] += check.cuts(changes)
    return answer


def companions(tx: Tx, line: DraftLine, account_id: str | None) -> list[Companion]:
    """What a quote of this line alone would lack, and what is suggested with it."""
    answer = _Check(tx, Draft(account_id=account_id or "", currency="", lines=(line,)), ["/line_items/0"]).answer()
    return [
        {"is_required": is_required, "message": one["message"], "add": one["repair"]["add"] if one["repair"] else []}
        for is_required, listed in ((True, answer["violations"]), (False, answer["suggestions"]))
        for one in listed
        if one["kind"] not in OWN_KINDS
    ]


class _Check:
    """One draft with its products and rules, its problems and how they are repaired."""

    def __init__(self, tx: Tx, draft: Draft, names: Sequence[str]) -> None:
        self._tx = tx
        self._names = names
        self._offered: dict[frozenset[str], list[str]] = {}
        self.draft, self._facts = self._gathered(draft)
        self.checked = check_lines(self.draft, self._facts.products)

    def answer(self) -> QuoteCheck:
        problems = list(self._problems(self.draft, self._facts))
        required = [self._view(one) for one in problems if one.is_required]
        invalid = [self._invalid(index, error) for index, one in self.checked.items() for error in one.problems]
        suggestions = [self._view(one) for one in problems if not one.is_required] + list(self._advice())
        violations = invalid + required
        count = len(violations)
        noun = "problem" if count == 1 else "problems"
        message = f"{count} {noun} to repair before it can be sent." if count else "Nothing is missing."
        return {
            "is_complete": not violations,
            "violations": violations[:LISTED_MAX],
            "violations_total": count,
            "suggestions": suggestions[:LISTED_MAX],
            "message": message,
        }

    def refusals(self) -> list[CpqError]:
        """What creating a quote of these lines would refuse, whatever its terms are."""
        facts, account_id = self._facts, self.draft.account_id
        account = account_problems(self._tx, account_id, facts.buyer) if account_id else []
        invalid = [problem for one in self.checked.values() for problem in one.problems]
        return [*account, *fraction_problems(self.draft, facts.products), *invalid]

    def changes(self) -> list[_Change] | None:
        """The changes after which every required rule holds; None where no such changes were found.

        What is too much is taken away first, so that nothing is added for it.
        """
        draft, facts = self.draft, self._facts
        for _ in range(ROUNDS_MAX):
            problems = [one for one in self._problems(draft, facts) if one.is_required]
            if not problems:
                return self._difference(self._least(draft))
            repaired = [one for one in problems if one.changes]
            if not repaired:
                return None
            first = next((one for one in repaired if _takes_away(one, draft)), repaired[0])
            draft, facts = self._gathered(_changed(draft, _alike(first, repaired)))
        return None

    def _least(self, draft: Draft) -> Draft:
        """The same draft with the smallest quantities of what a repair added with which every rule holds."""
        before = {line.number: line.quantity for line in self.draft.lines}
        for line in draft.lines:
            least, most = before.get(line.number, 0), line.quantity
            while least < most:
                middle = least + int((most - least) // 2)
                less = _changed(draft, [_Change(line.number, line.product_id, middle)])
                smaller, facts = self._gathered(less)
                if cross_lines.broken(smaller, facts.products, facts.rules):
                    least = middle + 1
                else:
                    draft, most = smaller, middle
        return draft

    def cuts(self, changes: Sequence[_Change]) -> str:
        """What the next call takes away, in a sentence; nothing where it only adds."""
        before = {line.number: line for line in self.draft.lines}
        cut = [one for one in changes if one.number in before and one.quantity < before[one.number].quantity]
        names = self._names_of([one.product_id for one in cut])
        less = [
            f"{names.get(one.product_id, one.product_id)} from {before[one.number].quantity:,} to {one.quantity:,}"
            for one in cut
            if one.quantity
        ]
        gone = [names.get(one.product_id, one.product_id) for one in cut if not one.quantity]
        words = [f"{verb} {', '.join(found)}" for verb, found in (("reduces", less), ("removes", gone)) if found]
        return f" The next call {' and '.join(words)}." if words else ""

    def as_arguments(self, changes: Sequence[_Change]) -> dict[str, Any]:
        """Of `quote_update`."""
        known = {line.number: self._names[index] for index, line in enumerate(self.draft.lines)}
        added = [_added_line(one) for one in changes if one.number not in known]
        changed = [
            {"line_id": known[one.number], "quantity": one.quantity}
            for one in changes
            if one.number in known and one.quantity
        ]
        removed = [known[one.number] for one in changes if one.number in known and not one.quantity]
        arguments = {"add_lines": added, "change_lines": changed, "remove_lines": removed}
        return {name: values for name, values in arguments.items() if values}

    def changed_items(self, given: Sequence[Mapping[str, Any]], changes: Sequence[_Change]) -> list[dict[str, Any]]:
        """The given lines after the changes."""
        by_number = {one.number: one.quantity for one in changes}
        items = [
            {**item, "quantity": by_number.get(number, item["quantity"])}
            for number, item in enumerate(given, 1)
            if by_number.get(number, 1)
        ]
        added = [one for one in changes if one.number > len(given)]
        return items + [_added_line(one) for one in added]

    def _gathered(self, draft: Draft) -> tuple[Draft, Facts]:
        facts = gather(self._tx, draft)
        if any(line.product_id not in facts.products for line in draft.lines):
            draft = by_id(self._tx, draft, facts.products)
            facts = gather(self._tx, draft)
        return draft, facts

    def _problems(self, draft: Draft, facts: Facts) -> Iterator[_Problem]:
        """Of all option sets, each problem once; what only some sets lack is repaired in those."""
        if draft.agreement:
            return
        names = draft.option_sets or [""]
        found: dict[tuple[object, ...], list[tuple[str, _Problem]]] = {}
        for name, places in zip(names, cross_lines.option_sets(draft), strict=True):
            for problem in self._problems_of(places, facts, name):
                found.setdefault(problem[:5], []).append((name, problem))
        shared = [Place(at, line) for at, line in enumerate(draft.lines) if not line.option_set]
        # What every set lacks, because of lines that all share, is repaired in those.
        in_all = {one[:5]: one for one in self._problems_of(shared, facts, "")} if draft.option_sets else {}
        for key, alike in found.items():
            if len(alike) == len(names) and key in in_all:
                yield in_all[key]
                continue
            changes = dict.fromkeys(change for _, one in alike for change in one.changes)
            sets = frozenset(name for name, _ in alike if name)
            yield alike[0][1]._replace(changes=tuple(changes), option_sets=sets)

    def _problems_of(self, places: Sequence[Place], facts: Facts, name: str) -> Iterator[_Problem]:
        """Of the lines of one option set with those that all share."""
        checked = cross_lines.related(places, facts.products, {*Relation})
        for one in (*checked.problems, *checked.advice):
            yield self._related(one, places, name)
        rules = {rule.id: rule for rule in facts.rules}
        for finding in cross_lines.findings(places, facts.products, facts.rules):
            rule = rules[finding.rule_id]
            changes = [
                change for need in finding.needs for change in self._repair(need, finding, rule, places, facts, name)
            ]
            need = finding.needs[0] if finding.needs else None
            yield _Problem(
                "rule",
                finding.rule_id,
                finding.message,
                finding.found,
                finding.lines,
                need.missing if need else None,
                str(need.total) if need else None,
                tuple(changes),
                finding.is_required,
            )

    def _related(self, one: Related, places: Sequence[Place], name: str) -> _Problem:
        own = places[one.line]
        changes: tuple[_Change, ...]
        if one.other_line is not None:
            other = places[one.other_line]
            lines: tuple[int, ...] = (own.at, other.at)
            changes = (_Change(other.line.number, other.line.product_id, 0),)
        else:
            lines = (own.at,)
            missing = Decimal(one.missing or 1)
            line = _line_of(places, name, lambda place: place.line.product_id == one.other_id)
            changes = (_grown(line, missing) if line else _Change(0, one.other_id, _whole(missing), name or None),)
        missing_pieces = None if one.missing is None else Decimal(one.missing)
        is_required = one.kind is not Relation.RECOMMENDS
        return _Problem(one.kind, None, one.message, None, lines, missing_pieces, one.other_id, changes, is_required)

    def _repair(
        self, need: Need, finding: Finding, rule: QuoteRule, places: Sequence[Place], facts: Facts, name: str
    ) -> Iterator[_Change]:
        """What gives a total what it lacks, or takes from it what is too much."""
        one = rule.sets[need.total.set_name]
        if need.missing < 0:
            yield from _reduced(need, one, places, facts)
            return
        if need.total.measure == PIECES and finding.add is None:
            line = _line_of(places, name, lambda place: _in_set(one, place, facts))
            if line is not None:
                yield _grown(line, need.missing)
                return
        offered = self._offers([finding.add] if finding.add else one.listed, one)
        best = addition(need.missing, ((id_, measured(need.total, values)) for id_, values in offered))
        if best is not None:
            yield _Change(0, best[0], best[1], name or None)

    def _offers(self, listed: Sequence[str], one: ProductSet) -> list[tuple[str, Mapping[str, object]]]:
        """The products on sale that a set takes, with their values."""
        ids = list(listed) or self._on_sale(one.categories)
        buyer, products, _ = catalog.gather(
            self._tx, ids, account_id=self.draft.account_id or None, currency=self.draft.currency
        )
        found: list[tuple[str, Mapping[str, object]]] = []
        for id_ in ids:
            product = products.get(id_)
            if product is None or not product.active or (buyer and not product.for_pricing.rows):
                continue
            usual = model_of(product).check({})
            values = {**product.specs, **product.attributes, **(usual.choices if product.options else {})}
            if not usual.problems and (listed or one.holds(product.id, product.category, values)):
                found.append((id_, values))
        return found

    def _on_sale(self, categories: frozenset[str]) -> list[str]:
        if categories not in self._offered:
            table = tables.product.c
            mine = self._tx.own_among(table.category_id, sorted(categories)) & table.active
            found = self._tx.connection.scalars(sa.select(table.id).where(mine)) if categories else ()
            self._offered[categories] = sorted(found)
        return self._offered[categories]

    def _difference(self, after: Draft) -> list[_Change]:
        """What differs from the draft that was checked."""
        before = {line.number: line for line in self.draft.lines}
        now = {line.number: line for line in after.lines}
        removed = [_Change(number, line.product_id, 0) for number, line in before.items() if number not in now]
        changed = [
            _Change(number, line.product_id, line.quantity, line.option_set)
            for number, line in now.items()
            if number not in before or before[number].quantity != line.quantity
        ]
        return removed + changed

    def _view(self, one: _Problem) -> CrossLineFinding:
        names = {line.number: self._names[index] for index, line in enumerate(self.draft.lines)}
        products = self._names_of([change.product_id for change in one.changes])
        repair: Repair = {
            "add": [_added_product(change, products) for change in one.changes if change.number not in names],
            "change": [
                {"line": names[change.number], "quantity": change.quantity}
                for change in one.changes
                if change.number in names and change.quantity
            ],
            "remove": [
                names[change.number] for change in one.changes if change.number in names and not change.quantity
            ],
        }
        return {
            "kind": one.kind,
            "rule_id": one.rule_id,
            "message": one.message,
            "found": one.found,
            "lines": [self._names[index] for index in one.lines],
            "missing": None if one.missing is None else _plain(one.missing),
            "of": one.of,
            "repair": repair if one.changes else None,
        }

    def _names_of(self, ids: Sequence[str]) -> dict[str, str]:
        return {id_: product.name for id_, product in catalog.gather(self._tx, ids).products.items()} if ids else {}

    def _invalid(self, index: int, error: CpqError) -> CrossLineFinding:
        kind = "configuration" if error.code is Code.CONFIGURATION_INVALID else "product"
        rule = error.details.get("rule_id")
        return _finding(kind, error.message, self._names[index], str(rule) if rule else None)

    def _advice(self) -> Iterator[CrossLineFinding]:
        """Recommendations for the options of single lines."""
        for index, line in enumerate(self.draft.lines):
            product = self._facts.products.get(line.product_id)
            if product is not None and product.options:
                for say in model_of(product).check(line.attributes).advice:
                    yield _finding("option", say, self._names[index], None)


def _finding(kind: str, message: str, line: str, rule_id: str | None) -> CrossLineFinding:
    return {
        "kind": kind,
        "rule_id": rule_id,
        "message": message,
        "found": None,
        "lines": [line],
        "missing": None,
        "of": None,
        "repair": None,
    }


def _in_set(one: ProductSet, place: Place, facts: Facts) -> QuotedItem | None:
    """The product of a line, with its chosen options, if the set has it."""
    item = cross_lines.own_item(place, facts.products)
    return item if item and one.holds(item.product_id, item.category, item.values) else None


def _line_of(places: Sequence[Place], name: str, is_wanted: Callable[[Place], object]) -> DraftLine | None:
    """The first such line of this option set whose quantity can be raised: not one with a ramp."""
    own = [place for place in places if (place.line.option_set or "") == name and not place.line.ramp]
    return next((place.line for place in own if is_wanted(place)), None)


def _takes_away(one: _Problem, draft: Draft) -> bool:
    before = {line.number: line.quantity for line in draft.lines}
    return any(change.quantity < before.get(change.number, 0) for change in one.changes)


def _alike(first: _Problem, problems: Sequence[_Problem]) -> list[_Change]:
    """The changes for one problem and for the same one in other option sets, which do not touch each other."""
    changes, done = [*first.changes], first.option_sets
    for one in problems if done else ():
        is_same = (one.kind, one.rule_id, one.of) == (first.kind, first.rule_id, first.of)
        if is_same and one.option_sets and not one.option_sets & done:
            changes += one.changes
            done |= one.option_sets
    return changes


def _added_product(one: _Change, names: Mapping[str, str]) -> AddedProduct:
    name = names.get(one.product_id, one.product_id)
    product: AddedProduct = {"product_id": one.product_id, "product_name": name, "quantity": int(one.quantity)}
    if one.option_set:
        product["option_set"] = one.option_set
    return product


def _added_line(one: _Change) -> dict[str, Any]:
    line = {"product_id": one.product_id, "quantity": one.quantity}
    return {**line, "option_set": one.option_set} if one.option_set else line


def _grown(line: DraftLine, missing: Decimal) -> _Change:
    return _Change(line.number, line.product_id, _whole(EXACT.add(Decimal(line.quantity), missing)))


def _reduced(need: Need, one: ProductSet, places: Sequence[Place], facts: Facts) -> Iterator[_Change]:
    """The last lines of the set with fewer pieces, or without them."""
    surplus = -need.missing
    # What all option sets share goes last.
    for place in sorted(places, key=lambda place: (place.line.option_set is None, -place.at)):
        line = place.line
        item = _in_set(one, place, facts) if surplus > 0 else None
        each = measured(need.total, item.values) if item else Decimal(0)
        if each <= 0:
            continue
        if need.total.measure == LINES:
            yield _Change(line.number, line.product_id, 0)
            surplus -= 1
            continue
        pieces = min(Decimal(line.quantity), Decimal(_whole(surplus / each)))
        left = Decimal(line.quantity) - pieces
        yield _Change(line.number, line.product_id, 0 if line.ramp else _plain(left))
        surplus -= each * pieces


def _changed(draft: Draft, changes: Sequence[_Change]) -> Draft:
    lines = {line.number: line for line in draft.lines}
    for change in changes:
        if change.number in lines and change.quantity:
            lines[change.number] = lines[change.number]._replace(quantity=change.quantity)
        elif change.number in lines:
            del lines[change.number]
        else:
            number = max((line.number for line in draft.lines), default=0) + len(lines) + 1
            lines[number] = DraftLine(number, change.product_id, change.quantity, option_set=change.option_set)
    return replace(draft, lines=tuple(lines.values()))


def _whole(number: Decimal) -> int:
    return int(number.to_integral_value("ROUND_CEILING"))


def _plain(number: Decimal) -> int | Decimal:
    return int(number) if number == number.to_integral_value() else number.normalize()
