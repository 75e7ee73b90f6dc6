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

from cpq.base.settings import read_settings
from cpq.storage.schema.tables import quote_version
from tests.support import engine
from tests.support.engine import Tools, open_app
from tests.support.quotes import assert_sound, new_quote, put_into

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
        if status == "accepted":
            self.now.status = "cancelled"
            self.current = sent
        self.versions[sent].status = status


ACTIONS = (
    *[("deliver",), ("revise", 0)] * 6,
    *[("price", 5), ("send", 0)] * 2,
    *[("price", 0), ("price", 10), ("update", 0), ("cancel", 0), ("submit",), ("approve",), ("wait", 1)] * 2,
    ("reject",),
    ("accept", 0),
    ("accept", 1),
    ("decline", 0),
    ("decline", 2),
    ("wait", 31),
    ("send", 1),
    ("revise", 1),
    ("clone",),
)
"""As often as it takes to meet what comes late in life. A number is a discount, days, or how far off a version is."""


class QuoteLife(RuleBasedStateMachine):
    """Tools and model are asked the same; the tools must agree with the model about what happened."""

    tools: Tools
    clock: engine.StillEffects
    quotes: Bundle[Model] = Bundle("quotes")

    def __init__(self) -> None:
        super().__init__()
        self.today = 0
        self.asked = 0

    @initialize(target=quotes)
    def begin(self) -> Model:
        return Model(new_quote(self.tools), self.today)

    @rule(model=quotes, action=st.sampled_from(ACTIONS))
    def act(self, model: Model, action: tuple[Any, ...]) -> None:
        name, *numbers = action
        self.asked += 1
        if name in ("update", "revise", "cancel", "send"):
            self.move(model, name, *numbers)
        else:
            getattr(self, name)(model, *numbers)
        self.compare(model)
        if model.status(self.today) in ("accepted", "cancelled") and self.asked % 3 == 0:
            self.clone(model)

    def clone(self, model: Model) -> None:
        """From here on the copy takes the quote's place."""
        copied = self.tools("quote_clone", quote_id=model.id)["quote_id"]
        vars(model).update(vars(Model(copied, self.today)))

    def wait(self, model: Model, days: int) -> None:
        self.clock.advance(days=days)
        self.today += days

    def price(self, model: Model, discount: int) -> None:
        priced = self.tools("quote_price", quote_id=model.id, requested_discount_pct=discount)
        assert priced["stored"] is model.price(self.today, discount)
        assert priced["pricing"]["total"] == 1500 - 15 * discount

    def deliver(self, model: Model) -> None:
        """The short way to the customer."""
        if model.now.status == "draft":
            self.price(model, FREE_DISCOUNT)
            self.move(model, "send", 0)

    def move(self, model: Model, move: str, off: int) -> None:
        changes = {"notes": str(self.asked)} if move == "update" else {}
        arguments = {"quote_id": model.id, "expected_version": model.current + off, **changes}
        if not off and model.may(move, self.today):
            self.tools(f"quote_{move}", **arguments)
            model.do(move, self.today)
        else:
            assert self.tools.error(f"quote_{move}", **arguments)["code"] == "CONFLICT"

    def accept(self, model: Model, off: int) -> None:
        self.decide(model, "quote_accept", "accepted", off)

    def decline(self, model: Model, off: int) -> None:
        self.decide(model, "quote_decline", "declined", off)

    def decide(self, model: Model, tool: str, status: str, off: int) -> None:
        version = (model.sent or model.current) + off
        if model.sent == version and self.today <= model.versions[version].last_day:
            self.tools.seller(tool, quote_id=model.id, expected_version=version)
            model.conclude(status)
        else:
            assert self.tools.error(tool, quote_id=model.id, expected_version=version)["code"] == "CONFLICT"

    def submit(self, model: Model) -> None:
        """What approvals do: a priced draft is submitted, and what is pending is approved or rejected."""
        if model.now.status == "draft" and model.now.is_priced:
            self.put(model, "pending_approval", "pending_approval")

    def approve(self, model: Model) -> None:
        if model.now.status == "pending_approval":
            self.put(model, "approved", "approved")

    def reject(self, model: Model) -> None:
        if model.now.status == "pending_approval":
            self.put(model, "draft", "rejected")

    def put(self, model: Model, status: str, version_status: str) -> None:
        put_into(self.tools.app, model.id, status, version_status)
        model.now.status = version_status

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
    clock = engine.StillEffects(datetime(2026, 3, 2, 15, 0, tzinfo=UTC))
    app = open_app(read_settings({}, home=tmp_path, rate_limit_per_minute=0), clock)
    QuoteLife.tools, QuoteLife.clock = Tools(app), clock
    run_state_machine_as_test(QuoteLife, settings=settings(max_examples=14, stateful_step_count=50, deadline=None))
    assert assert_sound(app) >= 14
    app.close()
