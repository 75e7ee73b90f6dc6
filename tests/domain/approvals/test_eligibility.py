"""Who may decide: a table of cases, and the rule against a plain statement of it, for one request and for many."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.approvals.approval_request import Decision, Vote
from cpq.domain.approvals.delegation import Delegation
from cpq.domain.approvals.eligibility import Allowed, Basis, Facts, Refusal, Refused, RequestFacts, eligibility

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
PEOPLE = [f"human:{name}" for name in ("ann", "ben", "cleo", "dan")]
CALLERS = [*PEOPLE, "agent:mcp"]
ROLES = ["manager", "vp", "legal"]
HOURS = st.integers(-3, 3).map(lambda hours: NOW + timedelta(hours=hours))

roles = st.frozensets(st.sampled_from(ROLES), max_size=2)
requests = st.builds(
    RequestFacts,
    id=st.sampled_from(["a", "b", "c"]),
    quote_id=st.sampled_from(["q1", "q2"]),
    account_id=st.sampled_from(["acme", "other"]),
    role=st.sampled_from(ROLES),
    escalated_to=st.none() | st.sampled_from(ROLES),
    requested_at=st.integers(0, 3).map(lambda hours: NOW - timedelta(hours=hours)),
    makers=st.frozensets(st.sampled_from(CALLERS), min_size=1, max_size=2),
)
delegations = st.builds(
    Delegation,
    id=st.just("dlg"),
    role=st.sampled_from(ROLES),
    delegator=st.sampled_from(PEOPLE),
    delegate=st.sampled_from(PEOPLE),
    starts_at=HOURS,
    ends_at=HOURS,
    account_id=st.none() | st.just("acme"),
    quote_id=st.none() | st.just("q1"),
).filter(lambda one: one.starts_at < one.ends_at and one.delegator != one.delegate)
votes = st.lists(st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PEOPLE)), max_size=2).map(
    lambda pairs: [Vote("a", caller, "", holder, "approve", None, NOW) for caller, holder in pairs]
)
facts = st.builds(
    Facts,
    caller=st.sampled_from(CALLERS),
    is_person=st.just(True),
    roles=roles,
    now=st.just(NOW),
    holders=st.fixed_dictionaries({role: st.lists(st.sampled_from(PEOPLE), unique=True).map(sorted) for role in ROLES}),
    backups=st.dictionaries(st.sampled_from(ROLES), st.sampled_from(ROLES), max_size=2),
    delegations=st.lists(delegations, max_size=5),
    votes=st.dictionaries(st.sampled_from(["a", "b", "c"]), votes, max_size=2),
).map(lambda one: replace(one, is_person=one.caller in PEOPLE))


def conflict(known: Facts, request: RequestFacts, person: str) -> Refusal | None:
    """A maker; or somebody who delegated a role to a maker or got one from them, at any time since it was asked."""
    if person in request.makers:
        return Refusal.MAKER
    counted = [one for one in known.delegations if one.starts_at <= NOW and one.ends_at > request.requested_at]
    if any(one.delegator == person and one.delegate in request.makers for one in counted):
        return Refusal.DELEGATED_TO_MAKER
    if any(one.delegate == person and one.delegator in request.makers for one in counted):
        return Refusal.DELEGATED_BY_MAKER
    return None


def ways(known: Facts, request: RequestFacts) -> list[tuple[Basis, str, str]]:
    """All ways in which the caller could decide, the preferred one first: what, by which role, for which holder."""
    caller, role = known.caller, request.role
    holders = known.holders[role]
    found = [(Basis.OWN_ROLE, role, caller)] if role in known.roles else []
    if request.escalated_to in known.roles:
        found.append((Basis.ESCALATED, request.escalated_to or "", caller))
    out = (Refusal.MAKER, Refusal.DELEGATED_TO_MAKER)
    if known.backups.get(role) in known.roles and all(conflict(known, request, one) in out for one in holders):
        found.append((Basis.STAND_IN, known.backups[role], caller))
    delegators = {
        one.delegator
        for one in known.delegations
        if (one.role, one.delegate) == (role, caller)
        and one.starts_at <= NOW < one.ends_at
        and one.account_id in (None, request.account_id)
        and one.quote_id in (None, request.quote_id)
        and one.delegator in holders
        and conflict(known, request, one.delegator) is None
    }
    voted = {vote.holder for vote in known.votes.get(request.id, ())}
    found += [(Basis.DELEGATED, role, one) for one in sorted(delegators, key=lambda one: (one in voted, one))]
    return found


def stated(known: Facts, request: RequestFacts, decision: Decision) -> Refusal | tuple[Basis, str, str]:
    if not known.is_person:
        return Refusal.NOT_A_PERSON
    found = ways(known, request)
    if not found:
        return Refusal.NOT_THIS_ROLE
    barred = conflict(known, request, known.caller)
    if barred and (decision == "approve" or barred is not Refusal.DELEGATED_BY_MAKER):
        return barred
    given = known.votes.get(request.id, ())
    has_voted = any(known.caller == vote.caller or found[0][2] == vote.holder for vote in given)
    return Refusal.HAS_VOTED if has_voted else found[0]


def in_short(answer: Allowed | Refused) -> Refusal | tuple[Basis, str, str]:
    return answer.reason if isinstance(answer, Refused) else (answer.basis, answer.role, answer.holder)


def narrowed(known: Facts, request: RequestFacts) -> Facts:
    """Only what is loaded when there is no other request."""
    touched = {known.caller, *request.makers}
    return replace(
        known,
        holders={request.role: known.holders[request.role]},
        delegations=[
            one
            for one in known.delegations
            if one.starts_at <= NOW and one.ends_at > request.requested_at and {one.delegator, one.delegate} & touched
        ],
        votes={request.id: known.votes.get(request.id, [])},
    )


@given(facts, st.lists(requests, min_size=1, max_size=4), st.sampled_from(["approve", "reject"]))
def test_one_request_and_many_are_answered_as_the_rule_is_stated(
    known: Facts, asked: list[RequestFacts], decision: Decision
):
    together = [eligibility(known, request, decision) for request in asked]
    alone = [eligibility(narrowed(known, request), request, decision) for request in asked]
    assert together == alone
    assert [in_short(answer) for answer in together] == [stated(known, request, decision) for request in asked]


@given(facts, requests)
def test_nobody_approves_what_they_made_or_voted_on(known: Facts, request: RequestFacts):
    answer = eligibility(known, request, "approve")
    if isinstance(answer, Allowed):
        assert known.is_person
        assert not {known.caller, answer.holder} & request.makers
        assert known.caller not in {vote.caller for vote in known.votes.get(request.id, ())}
        assert answer.asked_role == request.role
        assert not isinstance(eligibility(known, request, "reject"), Refused)


REQUEST = RequestFacts("a", "q1", "acme", "manager", None, NOW, frozenset({"agent:mcp"}))
NOBODY = Facts("human:ann", True, frozenset(), NOW, {"manager": ["human:ben"], "vp": []}, {}, [], {})
MANAGER = replace(NOBODY, roles=frozenset({"manager"}))
STAND_IN = replace(NOBODY, roles=frozenset({"vp"}), backups={"manager": "vp"})
FROM_BEN = Delegation("d", "manager", "human:ben", "human:ann", NOW, NOW + timedelta(hours=1), None, None)
FROM_ANN = replace(FROM_BEN, delegator="human:ann", delegate="human:ben")
MADE_BY_BEN = REQUEST._replace(makers=frozenset({"human:ben"}))


@pytest.mark.parametrize(
    ("known", "request_", "decision", "expected"),
    [
        (replace(NOBODY, is_person=False, roles=frozenset({"manager"})), REQUEST, "approve", Refusal.NOT_A_PERSON),
        (NOBODY, REQUEST, "approve", Refusal.NOT_THIS_ROLE),
        (MANAGER, REQUEST, "approve", Basis.OWN_ROLE),
        (replace(NOBODY, roles=frozenset({"vp"})), REQUEST._replace(escalated_to="vp"), "approve", Basis.ESCALATED),
        (
            STAND_IN,
            REQUEST,
            "approve",
            Refusal.NOT_THIS_ROLE,
        ),
        (STAND_IN, MADE_BY_BEN, "approve", Basis.STAND_IN),
        (replace(NOBODY, delegations=[FROM_BEN]), REQUEST, "approve", Basis.DELEGATED),
        (replace(NOBODY, delegations=[FROM_BEN]), MADE_BY_BEN, "approve", Refusal.NOT_THIS_ROLE),
        (replace(NOBODY, delegations=[FROM_BEN], holders={"manager": []}), REQUEST, "approve", Refusal.NOT_THIS_ROLE),
        (
            MANAGER,
            REQUEST._replace(makers=frozenset({"human:ann"})),
            "reject",
            Refusal.MAKER,
        ),
        (
            replace(MANAGER, delegations=[FROM_BEN]),
            MADE_BY_BEN,
            "approve",
            Refusal.DELEGATED_BY_MAKER,
        ),
        (
            replace(MANAGER, delegations=[FROM_BEN]),
            MADE_BY_BEN,
            "reject",
            Basis.OWN_ROLE,
        ),
        (
            replace(MANAGER, delegations=[FROM_ANN]),
            MADE_BY_BEN,
            "reject",
            Refusal.DELEGATED_TO_MAKER,
        ),
        (
            replace(
                NOBODY,
                delegations=[FROM_BEN],
                votes={"a": [Vote("a", "human:ben", "manager", "human:ben", "approve", None, NOW)]},
            ),
            REQUEST,
            "approve",
            Refusal.HAS_VOTED,
        ),
    ],
)
def test_every_answer(known: Facts, request_: RequestFacts, decision: Decision, expected: Basis | Refusal):
    answer = eligibility(known, request_, decision)
    assert (answer.basis if isinstance(answer, Allowed) else answer.reason) is expected
