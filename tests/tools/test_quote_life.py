"""The life of a quote against a small plain model of it: whatever is asked in whatever order, both agree."""

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from cpq.app import open_app
from cpq.config import read_settings
from cpq.schema import quote_version
from tests import make
from tests.make import Tools
from tests.quoting import assert_sound, new_quote, put_into

VALID_DAYS = 30
FREE_DISCOUNT = 5


@dataclass
class Version:
    status: str = "draft"
    is_priced: bool = False
    priced_on: int = 0
    discount: int = 0
    last_day: int = 0


@dataclass
class Model:
    """What a quote should be, in as few words as possible."""

    id: str
    today: int
    current: int = 1
    edit: int = 1
    versions: dict[int, Version] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.versions[1] = Version(last_day=self.today + VALID_DAYS)

    @property
    def now(self) -> Version:
        return self.versions[self.current]

    @property
    def sent(self) -> int | None:
        return next((number for number, version in self.versions.items() if version.status == "sent"), None)

    def status(self, today: int) -> str:
        if self.now.status in ("approved", "sent") and today > self.now.last_day:
            return "expired"
        return "draft" if self.now.status == "rejected" else self.now.status

    def open_version(self, today: int, discount: int) -> None:
        self.current = max(self.versions) + 1
        self.versions[self.current] = Version(discount=discount, last_day=today + VALID_DAYS)

    def may(self, move: str, today: int) -> bool:
        status = self.status(today)
        if move == "update":
            return self.now.status == "draft"
        if move == "revise":
            revisable = ("pending_approval", "approved", "sent", "declined", "expired")
            return self.now.status == "rejected" or status in revisable
        if move == "cancel":
            return status in ("draft", "pending_approval", "approved", "sent")
        is_sendable = self.now.status == "draft" and self.now.is_priced and today <= self.now.last_day
        return status == "approved" or (is_sendable and self.now.discount <= FREE_DISCOUNT)

    def do(self, move: str, today: int) -> None:
        self.edit += 1
        if move == "update":
            self.now.is_priced, self.now.last_day = False, today + VALID_DAYS
        elif move == "revise":
            self.open_version(today, self.now.discount)
        elif move == "cancel":
            self.now.status = "cancelled"
            self.current = self.sent or self.current
        else:
            if self.sent:
                self.versions[self.sent].status = "superseded"
            self.now.status = "sent"

    def price(self, today: int, discount: int) -> bool:
        """Whether it is stored."""
        if self.status(today) != "draft":
            return False
        if self.now.status == "rejected":
            self.open_version(today, discount)
        elif (self.now.is_priced, self.now.priced_on, self.now.discount) == (True, today, discount):
            return True
        self.edit += 1
        self.now.is_priced, self.now.priced_on = True, today
        self.now.discount, self.now.last_day = discount, today + VALID_DAYS
        return True

    def conclude(self, status: str) -> None:
        assert self.sent is not None
        sent, self.edit = self.sent, self.edit + 1
        self.now.status = "cancelled"
        self.versions[sent].status = status
        self.current = sent


class QuoteLife(RuleBasedStateMachine):
    """Tools and model are asked the same; the tools must agree with the model about what happened."""

    tools: Tools
    clock: make.StillEffects
    quotes: Bundle[Model] = Bundle("quotes")

    def __init__(self) -> None:
        super().__init__()
        self.today = 0
        self.notes = 0

    @initialize(target=quotes)
    def begin(self) -> Model:
        return Model(new_quote(self.tools), self.today)

    @rule(target=quotes, model=quotes)
    def clone(self, model: Model) -> Model:
        return Model(self.tools("quote_clone", quote_id=model.id)["quote_id"], self.today)

    @rule(days=st.sampled_from((1, 29, 31)))
    def wait(self, days: int) -> None:
        self.clock.advance(days=days)
        self.today += days

    @rule(model=quotes, discount=st.sampled_from((0, 5, 10)))
    def price(self, model: Model, discount: int) -> None:
        priced = self.tools("quote_price", quote_id=model.id, requested_discount_pct=discount)
        assert priced["stored"] is model.price(self.today, discount)
        assert priced["pricing"]["total"] == 1500 - 15 * discount
        self.compare(model)

    @rule(
        model=quotes,
        move=st.sampled_from(("update", "revise", "revise", "cancel", "send", "send")),
        off=st.sampled_from((0, 0, 0, 0, 1)),
    )
    def move(self, model: Model, move: str, off: int) -> None:
        self.notes += 1
        changes = {"notes": str(self.notes)} if move == "update" else {}
        arguments = {"quote_id": model.id, "expected_version": model.current + off, **changes}
        if not off and model.may(move, self.today):
            self.tools(f"quote_{move}", **arguments)
            model.do(move, self.today)
        else:
            assert self.tools.error(f"quote_{move}", **arguments)["code"] == "CONFLICT"
        self.compare(model)

    @rule(
        model=quotes,
        decision=st.sampled_from((("quote_accept", "accepted"), ("quote_decline", "declined"))),
        version=st.integers(1, 3),
    )
    def decide(self, model: Model, decision: tuple[str, str], version: int) -> None:
        tool, status = decision
        sent = model.sent
        if sent is not None and sent == version and self.today <= model.versions[sent].last_day:
            self.tools(tool, quote_id=model.id, expected_version=version)
            model.conclude(status)
        else:
            assert self.tools.error(tool, quote_id=model.id, expected_version=version)["code"] == "CONFLICT"
        self.compare(model)

    @rule(model=quotes, verdict=st.sampled_from(("approved", "rejected", "pending_approval")))
    def approve(self, model: Model, verdict: str) -> None:
        """What approvals will do: a priced draft is submitted, and what is pending is decided."""
        if model.now.status == "draft" and model.now.is_priced:
            put_into(self.tools.app, model.id, "pending_approval")
            model.now.status = "pending_approval"
        elif model.now.status == "pending_approval" and verdict != "pending_approval":
            put_into(self.tools.app, model.id, "draft" if verdict == "rejected" else verdict, verdict)
            model.now.status = verdict
        self.compare(model)

    def compare(self, model: Model) -> None:
        read: dict[str, Any] = self.tools("quote_get", quote_id=model.id, include_pricing=True)
        found = read["quote"]
        assert (found["version"], found["status"], found["edit"]) == (
            model.current,
            model.status(self.today),
            model.edit,
        )
        assert (read["pricing"]["priced_at"] is not None) is model.now.is_priced
        with self.tools.app.database.reading() as connection:
            columns = sa.select(quote_version.c.version, quote_version.c.status)
            rows = connection.execute(columns.where(quote_version.c.quote_id == model.id)).all()
        assert {row.version: row.status for row in rows} == {n: v.status for n, v in model.versions.items()}


def test_whatever_is_asked_in_whatever_order_a_quote_lives_as_the_model_says(sqlite_template: Path, tmp_path: Path):
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    clock = make.StillEffects(datetime(2026, 3, 2, 15, 0, tzinfo=UTC))
    app = open_app(read_settings({}, home=tmp_path, rate_limit_per_minute=0), clock)
    QuoteLife.tools, QuoteLife.clock = Tools(app), clock
    run_state_machine_as_test(QuoteLife, settings=settings(max_examples=30, stateful_step_count=30, deadline=None))
    assert assert_sound(app) >= 30
    app.close()
