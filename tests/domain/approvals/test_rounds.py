"""Rounds of approvals and what is kept of them: tables of cases, and laws that hold for any round."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.text import canonical_json, read_json
from cpq.domain.approvals import reapproval
from cpq.domain.approvals.approval_request import RequestStatus
from cpq.domain.approvals.rounds import (
    Round,
    Step,
    read_quorum,
    roles_to_ask,
    votes_given,
    votes_needed,
)
from cpq.domain.policy.evaluation import FactRead, LinesPast, PolicyDecision, Safe, Violation
from cpq.domain.policy.policy_kinds import Severity
from cpq.domain.policy.policy_set import Roles

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=4)
ROLES = Roles(("manager", "desk", "vp"), ("finance", "legal"), asks_each=True, keep={"legal": False})

steps = st.lists(
    st.builds(Step, st.uuids().map(str), st.sampled_from(ROLES.known), st.sampled_from(RequestStatus), st.just(LATER)),
    max_size=6,
)
chains = st.sets(st.sampled_from(ROLES.known)).map(lambda wanted: ROLES.chains(frozenset(wanted)))
rounds = st.builds(Round, st.just(ROLES), chains, steps.map(tuple))


def round_of(required: str, *said: str) -> Round:
    """`round_of("manager vp", "manager approved", "vp pending")`."""
    found = [Step(str(n), *_split(one), LATER) for n, one in enumerate(said)]
    return Round(ROLES, ROLES.chains(frozenset(required.split())), tuple(found))


def _split(said: str) -> tuple[str, RequestStatus]:
    role, status = said.split()
    return role, RequestStatus(status)


@pytest.mark.parametrize(
    ("required", "said", "status", "missing", "is_settled"),
    [
        ("", "", "none", "", True),
        ("", "manager pending", "pending_approval", "", False),
        ("", "manager expired", "none", "manager", False),
        ("", "manager expired,manager withdrawn", "none", "", True),
        ("", "manager approved", "approved", "", True),
        ("manager", "", "none", "manager", False),
        ("manager", "manager pending", "pending_approval", "", False),
        ("manager", "manager expired", "none", "manager", False),
        ("manager", "manager withdrawn", "none", "manager", False),
        ("manager", "manager expired,manager pending", "pending_approval", "", False),
        ("manager", "manager kept", "approved", "", True),
        ("manager", "manager approved,legal pending", "pending_approval", "", False),
        ("manager", "manager approved,legal expired", "none", "legal", False),
        ("manager", "manager approved,legal withdrawn", "approved", "", True),
        ("manager", "manager approved,legal expired,legal approved", "approved", "", True),
        ("manager", "manager approved,legal expired,legal withdrawn", "approved", "", True),
        ("manager legal", "manager approved,legal expired", "none", "legal", False),
        ("manager legal", "manager approved,legal kept", "approved", "", True),
        ("manager legal", "manager rejected,legal pending", "rejected", "manager", False),
        ("manager legal", "manager rejected,legal approved", "rejected", "manager", False),
    ],
)
def test_a_round_stands_where_its_steps_put_it(required: str, said: str, status: str, missing: str, is_settled: bool):
    found = round_of(required, *filter(None, said.split(",")))
    assert (found.status, " ".join(found.missing), found.is_settled) == (status, missing, is_settled)


@pytest.mark.parametrize(
    ("required", "said", "role", "waits_for"),
    [
        ("manager vp", "manager pending,vp pending", "vp", "manager"),
        ("manager vp", "manager pending,vp pending", "manager", None),
        ("manager vp", "manager approved,vp pending", "vp", None),
        ("manager vp", "manager kept,vp pending", "vp", None),
        ("manager vp", "manager expired,vp pending", "vp", "manager"),
        ("vp", "manager expired,vp pending", "vp", None),
        ("vp", "manager pending,vp pending", "vp", "manager"),
        ("manager desk vp", "manager approved,desk pending,vp pending", "vp", "desk"),
        ("manager legal", "manager pending,legal pending", "legal", None),
        ("manager finance legal", "finance pending,legal pending", "finance", None),
    ],
)
def test_the_commercial_chain_goes_upwards(required: str, said: str, role: str, waits_for: str | None):
    assert round_of(required, *said.split(",")).waits_for(role) == waits_for


@given(rounds)
def test_a_version_is_approved_only_when_everybody_needed_has_approved_it(found: Round):
    granted = {step.role for step in found.steps if step.status.is_granted}
    last = {step.role: step for step in found.steps}
    assert found.is_approved is (
        set(found.required) <= granted
        and bool(granted)
        and not any(step.status in (RequestStatus.PENDING, RequestStatus.REJECTED) for step in found.steps)
        and not any(step.status is RequestStatus.EXPIRED for step in last.values() if step.role not in granted)
    )
    assert (found.status == "approved") is found.is_approved


@given(rounds, st.none() | st.sampled_from(ROLES.known))
def test_q30_asking_never_asks_for_less_than_the_policies_nor_for_more_than_was_named(found: Round, asked: str | None):
    wanted = roles_to_ask(found, asked)
    assert set(wanted) - {asked} <= set(found.missing)
    assert list(wanted) == sorted(set(wanted), key=ROLES.known.index)
    covered = set(wanted) | {step.role for step in found.steps if step.status.is_granted or step.status.is_open}
    assert set(found.required) <= covered


@given(rounds)
def test_somebody_can_always_decide_next_or_has_to_be_asked(found: Round):
    """No round gets stuck: while something is pending, a pending step has its turn, or a role below it is missing."""
    waiting = {found.waits_for(step.role) for step in found.pending}
    if found.pending and None not in waiting:
        assert waiting & (set(found.missing) | {step.role for step in found.pending})
        assert set(found.missing)


@given(rounds)
def test_silence_approves_nothing(found: Round):
    silent = Round(found.roles, found.chains, tuple(step.at(LATER, is_live=True) for step in found.steps))
    assert not silent.pending
    assert {step.role for step in silent.steps if step.status.is_granted} == {
        step.role for step in found.steps if step.status.is_granted
    }
    last = {step.role: step for step in found.steps}
    if all(last[step.role] is step and found.active_step(step.role) is step for step in found.pending):
        # As it is in life: of a role that is pending nothing comes after, and who has approved is not asked again.
        assert silent.is_approved <= found.is_approved
    moved = [step.at(NOW, is_live=False).status for step in found.steps]
    assert RequestStatus.PENDING not in moved


@pytest.mark.parametrize(
    ("quorum", "people", "needed"),
    [("one", 0, 1), ("one", 9, 1), ("all", 0, 1), ("all", 3, 3), ("majority", 0, 1), ("majority", 1, 1),
     ("majority", 2, 2), ("majority", 3, 2), ("majority", 4, 3), ("2", 0, 2), ("2", 5, 2)],
)  # fmt: skip
def test_a_quorum_needs_so_many(quorum: str, people: int, needed: int):
    assert votes_needed(read_quorum(quorum), people) == needed


def test_where_only_the_highest_is_asked_it_answers_for_those_below():
    highest = Roles(("manager", "desk", "vp"), ("legal",), asks_each=False)
    asked = highest.chains(frozenset({"manager", "vp", "legal"}))
    assert asked == (("vp",), ("legal",))
    wanted = [violation(role) for role in ("manager", "vp", "legal")]
    decision = PolicyDecision((*wanted, violation(None)), asked, "hash")
    assert decision.reasons("vp") == tuple(wanted[:2])
    assert decision.reasons("legal") == (wanted[2],)
    assert decision.reasons("manager") == ()
    each = PolicyDecision(tuple(wanted[:2]), ROLES.chains(frozenset({"manager", "vp"})), "hash")
    assert each.reasons("vp") == (wanted[1],)


def violation(role: str | None) -> Violation:
    return Violation(f"for_{role}", "", Severity.WARNING, "", None, None, role, (), ())


@given(st.sets(st.sampled_from("abcde")), st.sets(st.sampled_from("abcdex")))
def test_all_takes_the_word_of_each_holder_and_a_number_any_of_so_many(able: set[str], holders: set[str]):
    is_all = votes_given("all", holders, able) >= votes_needed("all", len(able))
    assert is_all is (able <= holders if able else bool(holders))
    assert votes_given(2, [*holders, *holders], able) == len(holders)


each = st.lists(st.tuples(st.text(max_size=3), st.none() | st.booleans() | st.decimals(0, 9, places=2))).map(tuple)
values = (
    each.map(LinesPast)
    | st.none()
    | st.booleans()
    | st.text(max_size=5)
    | st.decimals(-(10**9), 10**9, places=6)
    | st.frozensets(st.text(max_size=3), max_size=3)
    | each
)
reads = st.builds(FactRead, st.text(max_size=5), values, st.sampled_from(Safe), st.booleans())


@given(st.dictionaries(st.text(max_size=5), st.lists(reads, max_size=3).map(tuple), max_size=3))
def test_grounds_come_back_from_the_store_as_they_were(grounds: reapproval.Grounds):
    again = reapproval.load(read_json(canonical_json(reapproval.dump(grounds))))
    assert again == grounds
    kinds = [[type(read.value) for read in part] for part in grounds.values()]
    assert [[type(read.value) for read in again[id_]] for id_ in grounds] == kinds
