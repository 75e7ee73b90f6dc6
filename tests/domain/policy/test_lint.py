"""What shows only when rules are seen together: dead rules, hidden ones, and words and roles that do not exist."""

import pytest

from cpq.app.access import DECIDERS
from cpq.base.errors import CpqError
from cpq.domain.policy.files.builder import build
from tests.app.test_policy_files import APPROVE, details, problems, two
from tests.support.policies import MINIMAL, policies, rules

BLOCK = "{severity: block}"
LADDER = "ladders: [{{id: l, over: {over}{where}, steps: [{{id: s, above: {above}, then: {then}}}]}}]\n"
ANY_20, ANY_30 = (f"any(line.discount > {bound} for line in lines)" for bound in (20, 30))
BEHIND = "unreachable: every quote it matches is blocked by"


@pytest.mark.parametrize(
    ("text", "blocker"),
    [
        (two("true", "net > 5", BLOCK, APPROVE), "r0"),
        (two("discount >= 0", "net > 5", BLOCK, APPROVE), "r0"),
        (two(ANY_20, ANY_30, BLOCK, APPROVE), "r0"),
        (two("max(line.discount for line in lines) > 20", ANY_30, BLOCK, APPROVE), "r0"),
        (two("any(line.discount > 20 for line in lines if line.net > 5)",
             "not all(line.discount <= 30 for line in lines if line.net > 5)", BLOCK, APPROVE), "r0"),
        (two("discount > 20 and net > 5", "discount > 30 and net > 6", BLOCK, APPROVE), "r0"),
        (two("discount > 20 or net > 5", "discount > 30 or net > 6", BLOCK, APPROVE), "r0"),
        (LADDER.format(over="discount", where="", above=20, then=BLOCK) + rules("discount > 30"), "s"),
        (LADDER.format(over="line.discount", where="", above=20, then=BLOCK)
         + rules("any(line.discount > 30 for line in lines)"), "s"),
        (LADDER.format(over="discount", where="", above=30, then=APPROVE) + rules("discount > 20", then=BLOCK), "r0"),
        (LADDER.format(over="discount", where=", where: net > 9", above=30, then=APPROVE)
         + rules("net > 5", then=BLOCK), "r0"),
    ],
)  # fmt: skip
def test_what_asks_only_where_something_blocks_is_refused(text: str, blocker: str):
    assert [found[3].partition(" (")[0] for found in problems(discounts=text)] == [f"{BEHIND} {blocker}"]


@pytest.mark.parametrize(
    "text",
    [
        two("discount > 20 and net > 5", "discount > 30", BLOCK, APPROVE),
        two("discount > 20 and net > 5", "discount > 30 or net > 6", BLOCK, APPROVE),
        two("any(line.discount > 20 for line in lines if line.net > 5)", "any(line.discount > 30 for line in lines)",
            BLOCK, APPROVE),
        LADDER.format(over="discount", where=", where: net > 9", above=20, then=BLOCK) + rules("discount > 30"),
        LADDER.format(over="discount", where="", above=30, then=APPROVE) + rules("discount > 40", then=BLOCK),
    ],
)  # fmt: skip
def test_what_is_not_always_blocked_may_ask(text: str):
    assert policies(discounts=text).rules


@pytest.mark.parametrize(
    "condition",
    ["5 > 6 and net > 1", "net < net", "discount + 1 > 200", "0 - discount > 5", "discount == discount + 1",
     "all(line.discount > 200 for line in lines)", "not any(line.discount >= 0 for line in lines)", "line_count < 1",
     "count(line.discount > 200 for line in lines) > 0", "sum(line.net for line in lines) < 0",
     "(discount if net > 5 else margin) > 200", "'a' == 'b'"],
)  # fmt: skip
def test_a_condition_that_can_never_be_true_is_refused_however_it_is_written(condition: str):
    assert [found[3] for found in problems(discounts=rules(condition))] == [
        "unreachable: this condition can never be true"
    ]


def test_the_same_demand_in_other_words_is_a_contradiction():
    text = two(
        "any(line.discount > 20 for line in lines)",
        "not all(line.discount <= 20 for line in lines)",
        APPROVE,
        APPROVE.replace("sales_manager", "vp_sales"),
    )
    assert [found[3] for found in problems(discounts=text)] == [
        "contradicts r0 (discounts.yaml, line 2): the same condition, another outcome"
    ]


@pytest.mark.parametrize(
    ("condition", "column", "word", "near"),
    [
        ("currency == 'usd'", 24, "currency is never usd: it is a code in capital letters", ["USD"]),
        ("'usd' != currency", 12, "currency is never usd: it is a code in capital letters", ["USD"]),
        ("currency not in {'EUR', 'USDD'}", 36, "currency is never USDD: it is a code in capital letters",
         ["USD"]),
        ("country == 'USA'", 23, "country is never USA: it is a code in capital letters", ["US", "UA", "SA"]),
        ("any(line.product_type == 'bundel' for line in lines)", 37,
         "line.product_type is never bundel: it is one of bundle, configurable, service, simple", ["bundle"]),
        ("any(line.billing_period in {'yearly', 'monthy'} for line in lines)", 50,
         "line.billing_period is never monthy: it is another word", ["monthly", "9_months", "8_months"]),
    ],
)  # fmt: skip
def test_a_word_that_a_fact_can_never_be_is_refused_at_its_place(
    condition: str, column: int, word: str, near: list[str]
):
    place = {"file": "discounts.yaml", "line": 3, "column": column}
    assert details(discounts=rules(condition)) == [{**place, "message": word, "nearest": near}]


@pytest.mark.parametrize("role", ["deal_dsk", "admin", "agent"])
def test_a_role_that_nobody_can_decide_by_is_refused(role: str):
    text = MINIMAL["approvals.yaml"].replace("deal_desk", role)
    with pytest.raises(CpqError) as refused:
        build({**MINIMAL, "approvals.yaml": text}, DECIDERS)
    near = {"nearest": ["deal_desk"]} if role == "deal_dsk" else {}
    message = f"{role} is not a role that can decide"
    problem = {"file": "approvals.yaml", "line": 1, "column": 37, "message": message, **near}
    assert refused.value.details["problems"] == [problem]


ROLES = "roles: {commercial: [sales_manager, vp_sales], orthogonal: [legal]%s}\n"
LEGAL = ROLES % ", time_limit: {legal: {hours: 8, calendar: office}}"
OFFICE = "calendars: {office: {time_zone: Europe/Berlin, hours: {mon: [09:00-17:00]}, holidays: [2026-12-25]}}\n"


def test_a_time_limit_may_count_the_hours_of_a_calendar():
    limit = policies(approvals=LEGAL + OFFICE).roles.time_limit["legal"]
    assert (limit.hours, str(limit.calendar)) == (8, "office (Europe/Berlin: mon 09:00-17:00, not 2026-12-25)")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("calendar: office", "calendar: offices", "there is no calendar offices in approvals.yaml"),
        ("hours: 8", "hours: 417", "office has 8 hours a week, so legal would have more than a year"),
        ("hours: 8", "hours: 0", "hours: input should be greater than or equal to 1"),
        ("{legal: {hours", "{boss: {hours", "there is no role boss in approvals.yaml"),
        (", calendar: office", "", "no time limit uses the calendar office"),
        ("12-25", "02-30", "holidays: day is out of range for month"),
        ("[2026-12-25]", "[2026-12-25, 2026-12-25]", "office: a holiday is named twice"),
        ("Berlin", "Bonn", "time_zone: is not an IANA time zone such as Europe/Berlin"),
        ("17:00", "08:00", "mon: is a span of a day, such as 09:00-17:00"),
        ("17:00", "25:00", "mon: is a span of a day, such as 09:00-17:00"),
        ("09:00-17:00", "09:00-12:00, 11:00-17:00", "office: the hours of mon overlap or are out of order"),
        ("09:00-17:00", "", "office: mon has no hours; leave it out"),
    ],
)
def test_a_time_limit_that_makes_no_sense_is_refused(old: str, new: str, message: str):
    text = LEGAL + OFFICE
    assert old in text
    assert problems(approvals=text.replace(old, new))[0][3] == message


def test_an_escalation_after_the_time_limit_is_refused():
    escalate = ", escalate_to: {sales_manager: {to: vp_sales, after_hours: 8}}"
    [found] = problems(approvals=ROLES % f", time_limit: {{sales_manager: {{hours: 8}}}}{escalate}")
    assert found[3] == "unreachable: the request expires after 8 hours"
    assert policies(approvals=ROLES % f", time_limit: {{sales_manager: {{hours: 9}}}}{escalate}").roles.time_limit
