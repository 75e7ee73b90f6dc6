"""Makes sample people, three months of quotes and pending requests through the engine, with its clock set back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from cpq.app import Answer, App, Command, open_app, tokens
from cpq.app.access import LOCAL_AGENT, Permission, Principal, Role
from cpq.app.transaction import Tx
from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings
from cpq.domain.quotes.lifecycle import VersionStatus
from cpq.services import approvals, catalog, quotes
from cpq.services.quotes import Draft, DraftLine

T = TypeVar("T")

MANAGER = "dana"
PEOPLE = {
    "dana": "sales_manager",
    "dora": "deal_desk",
    "victor": "vp_sales",
    "fiona": "finance",
    "lee": "legal",
    "rosa": "sales_rep",
    "alex": "admin",
}
SELLER = Principal("rosa", "human", frozenset({Role.SALES_REP}))
"""Records what customers accepted."""

AGENT = replace(LOCAL_AGENT, acts_for=SELLER.name)
DEMO_DEAL = "quotewright-demo"
"""The deal of the quote of `cpq demo`; a store with other quotes and without the sample people holds real data."""

PERCENT = 1_000_000


class SetBack(Effects):
    """A clock that shows an earlier moment, until it is moved."""

    def __init__(self, start: datetime) -> None:
        self.start = start
        self.at = start

    def now(self) -> datetime:
        return self.at

    def go_to(self, *, days: float = 0, minutes: float = 0) -> None:
        """Set the clock to this long before the present."""
        self.at = self.start - timedelta(days=days, minutes=minutes)


@dataclass(frozen=True)
class Story:
    """A quote and how it ends."""

    account_id: str
    currency: str
    lines: tuple[tuple[str, int], ...]
    discount: int
    ends: str
    why: str = "They decide this week, and a competitor has offered as well."
    term_months: int | None = None
    notes: str | None = None
    payment_terms: str | None = None


WAITING = (
    (
        212,
        Story(
            "acct_lonestar_004",
            "USD",
            (("prod_hz200", 3), ("prod_svc_plan_plus", 3), ("prod_qmb15", 4)),
            12,
            "asked",
            "They replace three machines that fail every month, and decide on Friday.",
            24,
            payment_terms="net_90",
        ),
    ),
    (175, Story("acct_acme_001", "USD", (("prod_pro_v2", 150),), 10, "asked", "They plan 600 seats next year.", 12)),
    (
        124,
        Story(
            "acct_rheinstahl_010",
            "EUR",
            (("prod_rs100", 2), ("prod_svc_plan_plus", 2)),
            7,
            "asked",
            "Framework customer; the second site orders in January.",
            12,
        ),
    ),
    (
        96,
        Story(
            "acct_groeb_002",
            "USD",
            (("prod_bdl_qmb30", 1), ("prod_svc_plan_basic", 1)),
            6,
            "changed",
            "They came down from 9 %; the service plan stays in.",
            12,
        ),
    ),
    (
        70,
        Story(
            "acct_brightwater_015",
            "GBP",
            (("prod_qmb30", 3), ("prod_tk240v", 3)),
            14,
            "asked",
            "Public tender, three bidders; we know the price to beat.",
        ),
    ),
    (
        41,
        Story(
            "acct_hikari_020",
            "JPY",
            (("prod_hz200", 1),),
            9,
            "asked",
            "First machine at this site; two more are planned.",
        ),
    ),
    (
        18,
        Story(
            "acct_cascade_005",
            "USD",
            (("prod_qmb15", 12), ("prod_dr125", 12)),
            22,
            "asked",
            "Twelve cells, one order, one delivery date.",
        ),
    ),
    (6, Story("acct_airpros_007", "USD", (("prod_pro_v2", 40),), 8, "asked", "Upgrade from the starter plan.", 12)),
)
"""Minutes ago, oldest first: enough to fill a queue."""  # fmt: skip

_GOODS: tuple[tuple[tuple[str, int], ...], ...] = (
    (("prod_qmb15", 1), ("prod_tk240v", 1)),
    (("prod_pro_v2", 60),),
    (("prod_qmb30", 1), ("prod_dr125", 1), ("prod_fp150", 2)),
    (("prod_bdl_shop15", 1),),
    (("prod_rs100", 1),),
    (("prod_svc_plan_plus", 4), ("prod_qmb15", 2)),
    (("prod_bdl_qmb30", 2),),
)
_BUYERS = (
    ("acct_acme_001", "USD"),
    ("acct_groeb_002", "USD"),
    ("acct_4mfoods_003", "USD"),
    ("acct_rheinstahl_010", "EUR"),
    ("acct_brightwater_015", "GBP"),
    ("acct_lonestar_004", "USD"),
    ("acct_airpros_007", "USD"),
    ("acct_backhaus_013", "EUR"),
)
_ENDS = (
    VersionStatus.ACCEPTED,
    VersionStatus.ACCEPTED,
    VersionStatus.SENT,
    VersionStatus.DECLINED,
    VersionStatus.ACCEPTED,
    VersionStatus.REJECTED,
    VersionStatus.APPROVED,
    VersionStatus.ACCEPTED,
    VersionStatus.DECLINED,
    VersionStatus.DRAFT,
)
_DISCOUNTS = (0, 4, 10, 5, 12, 8, 3, 18, 24, 6, 33, 0)
HISTORY = 66
HISTORY_DAYS = 88


def fill(settings: Settings, now: datetime) -> str:
    """Make what is missing, up to now, and return a summary."""
    clock = SetBack(now)
    with closing(open_app(settings, clock)) as app:
        shop = _Shop(app, clock)
        is_new, is_quiet = not shop.knows_everybody(), shop.waiting() < len(WAITING) // 2
        if is_new and shop.has_own_quotes():
            raise _refused("This store has real quotes; sample people and quotes are not mixed with them.")
        if is_new or is_quiet:
            shop.require_sample_catalogue()
        if is_new:
            clock.go_to(days=HISTORY_DAYS + 1)
            shop.enrol()
            for number in range(HISTORY):
                shop.play(_past(number), days=HISTORY_DAYS - number * HISTORY_DAYS / HISTORY)
        clock.go_to()
        if is_quiet:
            for minutes, story in WAITING:
                shop.play(story, minutes=minutes)
        clock.go_to()
        return f"Sample quotes: {shop.count():,}; {shop.waiting():,} wait for approval."


def _refused(why: str) -> CpqError:
    hint = "Give people roles with `cpq token grant`, then make sign-in links with `cpq console link`."
    return CpqError(Code.CONFLICT, why, hint=hint)


def _past(number: int) -> Story:
    account_id, currency = _BUYERS[number % len(_BUYERS)]
    goods = _GOODS[number * 5 % len(_GOODS)]
    is_service = any(name.startswith(("prod_pro", "prod_svc")) for name, _ in goods)
    return Story(
        account_id,
        currency,
        goods,
        _DISCOUNTS[number * 7 % len(_DISCOUNTS)],
        _ENDS[number * 3 % len(_ENDS)],
        term_months=12 if is_service else None,
    )


class _Shop:
    """Acts as the agent and the people, at the time of the clock."""

    def __init__(self, app: App, clock: SetBack) -> None:
        self.app = app
        self.clock = clock

    def knows_everybody(self) -> bool:
        return PEOPLE.keys() <= set(self._read(lambda tx: tokens.people(tx, Permission.READ)))

    def has_own_quotes(self) -> bool:
        found = self._read(
            lambda tx: quotes.list_quotes(tx, account_id=None, status=None, query=DEMO_DEAL, limit=1, page=1)
        )
        return self.count() > found["pagination"]["total"]

    def require_sample_catalogue(self) -> None:
        """CONFLICT before anything is made if a sample account or product is missing."""
        stories = [*map(_past, range(HISTORY)), *(story for _, story in WAITING)]

        def look(tx: Tx) -> None:
            for account_id in sorted({story.account_id for story in stories}):
                catalog.get_account(tx, account_id)
            for product_id in sorted({name for story in stories for name, _ in story.lines}):
                catalog.get(tx, product_id, include_relationships=False)

        try:
            self._read(look)
        except CpqError as error:
            if error.code is not Code.NOT_FOUND:
                raise
            raise _refused(f"The sample quotes need the sample catalogue. {error.message}") from error

    def count(self) -> int:
        return self._read(quotes.count_quotes)

    def waiting(self) -> int:
        return self._read(lambda tx: approvals.pending(tx, role=None, limit=1))["total"]

    def enrol(self) -> None:
        def work(tx: Tx) -> Answer:
            for name, role in PEOPLE.items():
                tokens.grant(tx, name=name, role=role)
            return {}

        self._do(self.app.operator, "token_grant", Permission.ADMINISTER, work)

    def play(self, story: Story, *, days: float = 0, minutes: float = 0) -> None:
        self.clock.go_to(days=days, minutes=minutes)
        number = self._create(story)
        if story.ends == "changed":
            self._price(number, story.discount + 3)
            self._decide(number, story, "reject", wait=timedelta(minutes=14))
            self.clock.at += timedelta(minutes=20)
        self._price(number, story.discount)
        if story.ends == VersionStatus.DRAFT:
            return
        if story.ends in ("asked", "changed"):
            self._ask(number, story)
            return
        is_rejected = story.ends == VersionStatus.REJECTED and story.discount > 5
        if not self._decide(number, story, "reject" if is_rejected else "approve") or is_rejected:
            return
        if story.ends != VersionStatus.APPROVED:
            self._finish(number, story.ends)

    def _create(self, story: Story) -> str:
        lines = tuple(DraftLine(place, name, count) for place, (name, count) in enumerate(story.lines, 1))
        terms: dict[str, Any] = {"term_months": story.term_months, "payment_terms": story.payment_terms}
        draft = Draft(story.account_id, story.currency, lines, notes=story.notes, **terms)
        return str(self._agent("quote_create", lambda tx: dict(quotes.create(tx, draft)))["quote_id"])

    def _price(self, quote_id: str, discount: int) -> None:
        def work(tx: Tx) -> Answer:
            return dict(quotes.price(tx, quote_id, requested_discount=discount * PERCENT))

        self._agent("quote_price", work)

    def _ask(self, quote_id: str, story: Story) -> None:
        def work(tx: Tx) -> Answer:
            return dict(approvals.request(tx, quote_id, justification=story.why))

        self._agent("approval_request", work, Permission.REQUEST_APPROVAL)

    def _decide(self, quote_id: str, story: Story, decision: approvals.Decision, wait: timedelta | None = None) -> bool:
        """Let each asked role decide in turn, some time apart."""
        steps = self._read(lambda tx: approvals.preview(tx, quote_id))["steps"]
        if not steps:
            return True
        self._ask(quote_id, story)
        comment = "Too much for what they buy; 5 % less, and we have a deal." if decision == "reject" else None
        for place, step in enumerate(steps):
            role = Role(step["approver_role"])
            name = next(name for name, held in PEOPLE.items() if held == role)
            self.clock.at += wait or timedelta(minutes=9 + (len(quote_id) * place + _spread(quote_id)) % 100)
            self._vote(quote_id, role, Principal(name, "human", frozenset({role})), decision, comment)
            if decision == "reject":
                break
        return True

    def _vote(
        self, quote_id: str, role: Role, person: Principal, decision: approvals.Decision, comment: str | None
    ) -> None:
        def work(tx: Tx) -> Answer:
            asked = next(one for one in approvals.openings(tx, quote_id) if one["approver_role"] == role)
            shown, id_ = asked["fingerprint"], asked["approval_id"]
            return dict(approvals.decide(tx, id_, decision, fingerprint=shown, comment=comment))

        self._do(person, "approval_decide", Permission.DECIDE, work)

    def _finish(self, quote_id: str, ends: str) -> None:
        self._agent("quote_send", lambda tx: dict(quotes.send(tx, quote_id, expected_version=1)))
        self.clock.at = min(self.clock.at + timedelta(days=3), self.clock.start)
        if ends == VersionStatus.ACCEPTED:
            self._do(
                SELLER,
                "quote_accept",
                Permission.QUOTE,
                lambda tx: dict(quotes.accept(tx, quote_id, expected_version=1)),
            )
        elif ends == VersionStatus.DECLINED:
            self._agent("quote_decline", lambda tx: dict(quotes.decline(tx, quote_id, expected_version=1)))

    def _read(self, work: Callable[[Tx], T]) -> T:
        return self.app.read_unaudited(self.app.new_call(self.app.operator), work)

    def _agent(self, name: str, work: Callable[[Tx], Answer], needs: Permission = Permission.QUOTE) -> Answer:
        return self._do(AGENT, name, needs, work)

    def _do(self, who: Principal, name: str, needs: Permission, work: Callable[[Tx], Answer]) -> Answer:
        who = replace(who, tenant_id=self.app.settings.tenant)
        answer = self.app.write(self.app.new_call(who), Command(name, needs), work).answer
        self.clock.at += timedelta(seconds=20)
        return answer


def _spread(text: str) -> int:
    """A number that looks random but is always the same."""
    return sum(text.encode())
