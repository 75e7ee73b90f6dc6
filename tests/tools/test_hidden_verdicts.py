"""The budget of hidden verdicts, and what 2,000 calls through every door tell of a cost: no more than the grid."""

import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.base.settings import Settings
from cpq.domain.policy.cost_grid import coarse
from cpq.storage.schema import tables
from tests.support import engine
from tests.support.approvals import person, priced_quote
from tests.support.engine import StillEffects, Tools, import_dicts, product_row, row_counts
from tests.support.quotes import SEATS, new_quote
from tests.tools.test_margin_leaks import secret_line

LOW, HIGH = 28, 40
"""Discounts in percent: below the first, the margin of the secret product needs nobody; above the second, finance."""


@contextmanager
def limited(store: Settings, clock: StillEffects | None = None, **limits: int) -> Iterator[Tools]:
    """An engine with other limits; each is a process of its own to the database."""
    with closing(engine.open_app(store.model_copy(update=limits), clock)) as app:
        yield Tools(app)


def is_hidden(answer: dict[str, Any]) -> bool:
    return any(one["policy_id"] == "hidden" for one in answer["policy_violations"])


def flip(tools: Tools, quote_id: str, times: int) -> None:
    """Change what the hidden policies ask so many times; it begins with nobody."""
    for number in range(times):
        discount = LOW if number % 2 else HIGH
        answer = tools("quote_price", quote_id=quote_id, requested_discount_pct=discount, dry_run=True)
        assert is_hidden(answer) is (discount == HIGH)


def refused(tools: Tools, quote_id: str, discount: int) -> dict[str, Any]:
    before = row_counts(tools.app)
    error = tools.error("quote_price", quote_id=quote_id, requested_discount_pct=discount)
    assert error["code"] == "RATE_LIMITED"
    assert row_counts(tools.app) == before
    return error


def test_a_quote_has_a_budget_of_changes_for_each_caller_over_restarts(store: Settings, clock: StillEffects):
    with limited(store, clock, hidden_changes_per_quote=3) as tools:
        line = secret_line(tools.app)
        quote_id, other = priced_quote(tools, LOW, line), priced_quote(tools, LOW, line)
        flip(tools, quote_id, 2)
    with limited(store, clock, hidden_changes_per_quote=3) as tools:
        flip(tools, quote_id, 1)
        errors = [refused(tools, quote_id, discount) for discount in (LOW, HIGH)]
        assert errors[0]["message"] == errors[1]["message"], "a refusal says nothing of the price that it refuses"
        assert errors[0]["details"]["maximum"] == 3
        assert 0 < errors[0]["details"]["retry_after_seconds"] <= 86_400
        flip(tools, other, 3)
        flip(person(tools.app, "rita", "sales_rep"), quote_id, 3)
        clock.advance(days=1)
        flip(tools, quote_id, 3)
        with tools.app.database.reading() as connection:
            counted = connection.execute(
                sa.select(tables.hidden_verdict.c.quote_id).where(
                    tables.hidden_verdict.c.tenant_id == tools.principal.tenant_id,
                    tables.hidden_verdict.c.caller == tools.principal.caller,
                )
            ).scalars()
            assert {*counted} == {"", quote_id}, "what was counted yesterday is gone"


def test_many_quotes_have_one_budget(store: Settings):
    with limited(store, hidden_changes_per_day=6) as tools:
        line = secret_line(tools.app)
        for discount in (LOW, HIGH, LOW, HIGH, LOW, HIGH, LOW):
            priced_quote(tools, discount, line)
        quote_id = new_quote(tools, line)
        refused(tools, quote_id, LOW)
        flip(person(tools.app, "rita", "sales_rep"), quote_id, 1)


def test_changes_that_only_a_preview_looks_at_count_as_well(store: Settings):
    """A draft that was changed has no price yet, but its preview and status name the roles that it will need."""
    with limited(store, hidden_changes_per_quote=4) as tools:
        quote_id = new_quote(tools, secret_line(tools.app))
        for number in range(4):
            discount = LOW if number % 2 else HIGH
            change = {"line_id": f"{quote_id}-ql-1", "discount_pct": discount}
            tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=[change])
            asked = ["vp_sales", "finance"] if discount == HIGH else ["vp_sales"]
            assert tools("approval_preview", quote_id=quote_id)["required_roles"] == asked
            if number < 3:
                assert tools("approval_status", quote_id=quote_id)["required_roles"] == asked
        for tool in ("approval_preview", "approval_status", "quote_price"):
            assert tools.error(tool, quote_id=quote_id)["code"] == "RATE_LIMITED"
        assert tools("quote_get", quote_id=quote_id)["quote"]["status"] == "draft"


def test_a_stored_price_is_read_and_sent_beyond_the_budget(store: Settings):
    with limited(store, hidden_changes_per_quote=2) as tools:
        quote_id = new_quote(tools, secret_line(tools.app))
        tools("quote_price", quote_id=quote_id)
        flip(tools, quote_id, 2)
        refused(tools, quote_id, LOW)
        assert tools("approval_preview", quote_id=quote_id)["required_roles"] == []
        assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"
        refused(tools, quote_id, HIGH)


def test_who_may_see_margins_or_decides_has_no_budget(store: Settings):
    with limited(store, hidden_changes_per_quote=1, hidden_changes_per_day=1) as tools:
        quote_id = priced_quote(tools, HIGH, secret_line(tools.app))
        refused(tools, quote_id, LOW)
        manager, counsel = (person(tools.app, *who) for who in (("mia", "sales_manager"), ("lea", "legal")))
        for discount in (LOW, HIGH) * 3:
            manager("quote_price", quote_id=quote_id, requested_discount_pct=discount)
            assert counsel("approval_preview", quote_id=quote_id)["approval_required"]
        change = {"line_id": f"{quote_id}-ql-1", "quantity": 2}
        manager("quote_update", quote_id=quote_id, expected_version=1, change_lines=[change])
        assert counsel("approval_status", quote_id=quote_id)["required_roles"] == ["vp_sales", "finance"]


def test_ordinary_work_counts_nothing(app: App, tools: Tools):
    for discount in (0, 4, 11, 21):
        priced_quote(tools, discount, SEATS)
    assert row_counts(app)["hidden_verdict"] == 0


class Adversary:
    """Bisects the point at which finance begins to be asked, in quotes of many kinds; a seed makes the same calls."""

    def __init__(self, tools: Tools, cost: Decimal, precision: Decimal) -> None:
        self.precision = precision
        self.tools, self.answers, self.chance = tools, list[bool](), random.Random(18)
        self.line = secret_line(tools.app, cost)
        bundle = product_row(product_type="bundle", bundle={"pricing": "components"})
        bundle["relationships"] = [
            {"kind": "component", "product_id": self.line["product_id"], "quantity": 3},
            {"kind": "component", "product_id": SEATS["product_id"], "quantity": 1},
        ]
        import_dicts(tools.app, "products", bundle)
        own = {"price_book": "list", "currency": "USD", "unit_price": "0", "product_id": bundle["id"]}
        import_dicts(tools.app, "prices", own)
        self.kit = {"product_id": bundle["id"], "quantity": 2}

    def work(self, calls: int) -> list[bool]:
        doors = [self.by_discount, self.by_line, self.by_new_quotes, self.on_a_sent_quote]
        while len(self.answers) < calls:
            for door in doors:
                self.bisect(door)
        return self.answers

    def bisect(self, door: Any) -> None:
        lines = [{**self.line, "quantity": self.chance.choice([1, 7, 1000])}]
        lines += [{**SEATS, "quantity": self.chance.randint(1, 90)}] if self.chance.random() < 0.3 else []
        lines += [self.kit] if self.chance.random() < 0.3 else []
        ask, low, high = door(lines), Decimal(0), Decimal(99)
        while high - low > self.precision:
            middle = ((low + high) / 2).quantize(Decimal("0.000001"))
            self.answers.append(is_hidden(ask(str(middle))))
            low, high = (low, middle) if self.answers[-1] else (middle, high)

    def by_discount(self, lines: list[dict[str, Any]]) -> Any:
        quote_id = new_quote(self.tools, *lines)
        return lambda percent: self.tools("quote_price", quote_id=quote_id, requested_discount_pct=percent)

    def by_line(self, lines: list[dict[str, Any]]) -> Any:
        quote_id = new_quote(self.tools, *lines)

        def ask(percent: str) -> dict[str, Any]:
            changes = [{"line_id": f"{quote_id}-ql-{n}", "discount_pct": percent} for n in range(1, len(lines) + 1)]
            self.tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=changes)
            return self.tools("approval_preview", quote_id=quote_id)

        return ask

    def by_new_quotes(self, lines: list[dict[str, Any]]) -> Any:
        def ask(percent: str) -> dict[str, Any]:
            quote_id = new_quote(self.tools, *({**line, "discount_pct": percent} for line in lines))
            return self.tools("approval_preview", quote_id=quote_id)

        return ask

    def on_a_sent_quote(self, lines: list[dict[str, Any]]) -> Any:
        quote_id = priced_quote(self.tools, 0, {**lines[0], "quantity": 1})
        self.tools("quote_send", quote_id=quote_id, expected_version=1)
        return lambda percent: self.tools("quote_price", quote_id=quote_id, requested_discount_pct=percent)


@pytest.mark.parametrize(("calls", "precision"), [(30, "0.6"), pytest.param(2000, "0.01", marks=pytest.mark.proof)])
def test_no_series_of_calls_narrows_a_cost_to_less_than_the_stated_interval(
    store: Settings, calls: int, precision: str
):
    """Both ends of an interval of 5 % give the same answer to each call, without any budget; a cent more does not."""
    low = Decimal("58.75")
    high = Decimal(coarse(int(low * 10**6), Decimal(5))).scaleb(-6).quantize(Decimal("0.01"), "ROUND_DOWN")
    assert high / low > Decimal("1.049")
    with limited(store, hidden_changes_per_quote=0, hidden_changes_per_day=0, rate_limit_per_minute=10**6) as tools:
        answers, same = (Adversary(tools, cost, Decimal(precision)).work(calls) for cost in (low, high))
        beyond = Adversary(tools, high + Decimal("0.01"), Decimal(precision)).work(30)
    assert answers == same
    assert {*answers} == {False, True}
    assert beyond != answers[: len(beyond)]


@pytest.mark.proof
def test_the_budget_of_a_day_ends_before_an_adversary_has_found_many_costs(store: Settings):
    found = 0
    with limited(store, hidden_changes_per_day=200, rate_limit_per_minute=10**6) as tools:
        for _ in range(2000):
            quote_id, low, high = new_quote(tools, secret_line(tools.app)), Decimal(0), Decimal(99)
            while high - low > 3:
                middle = ((low + high) / 2).quantize(Decimal("0.01"))
                reply = tools.reply("quote_price", {"quote_id": quote_id, "requested_discount_pct": str(middle)})
                if reply.is_error:
                    assert reply.body["error"]["code"] == "RATE_LIMITED"
                    assert found <= 100
                    return
                low, high = (low, middle) if is_hidden(reply.body) else (middle, high)
            found += 1
    raise AssertionError("never stopped")
