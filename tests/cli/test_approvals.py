"""`cpq approvals`: what waits is seen, and decided in the name of a person who holds the role."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from cpq.base.settings import read_settings
from tests.cli.conftest import Run, SignIn, query
from tests.support.approvals import ask, priced_quote
from tests.support.engine import Tools, open_app


@pytest.fixture
def asked(home: Path) -> dict[str, Any]:
    """A request to a sales manager, made by an agent."""
    app = open_app(read_settings({}, home=home))
    tools = Tools(app)
    answer = ask(tools, priced_quote(tools))
    app.close()
    return answer


def quote_status(home: Path, asked: dict[str, Any]) -> str:
    return query(home, "SELECT status FROM quote WHERE id = ?", asked["quote_id"])[0][0]


def test_what_waits_is_listed_and_shown(run: Run, asked: dict[str, Any]):
    listed = json.loads(run("approvals", "list", "--json").out)
    assert (listed["total"], listed["items"][0]["approval_id"]) == (1, asked["approval_id"])
    assert asked["approval_id"] in run("approvals", "list", "--role", "sales_manager").out
    assert "0 of 0 requests." in run("approvals", "list", "--role", "legal").out
    shown = run("approvals", "show", asked["approval_id"])
    assert "1,350.00 USD" in shown.out
    assert "A discount of 10 % is above 5 %." in shown.out
    assert "10.0 %" in shown.out
    assert asked["fingerprint"] in shown.out
    assert json.loads(run("approvals", "show", asked["approval_id"], "--json").out)["status"] == "pending"
    assert run("approvals", "show", "APR-none").code == 1


def test_a_person_of_the_role_approves(home: Path, run: Run, asked: dict[str, Any], signs_in: SignIn):
    signs_in("dana", "sales_manager")
    decide = ("approvals", "approve", asked["approval_id"], "--fingerprint", asked["fingerprint"], "--as")
    assert run(*decide, "nobody").code == 1
    ran = run(*decide, "dana", "--comment", "fine")
    assert (ran.code, ran.out) == (0, f"Approved. The quote can be sent. Quote {asked['quote_id']} is approved.\n")
    again = run(*decide, "dana")
    assert (again.code, "human:dana has approved it already." in again.err) == (1, True)
    assert query(home, "SELECT decided_by, comment FROM approval") == [("human:dana", "fine")]
    entry = query(home, "SELECT caller, operation, outcome FROM audit_entry WHERE operation = 'approval_decide'")
    assert entry[0] == ("human:dana", "approval_decide", "OK")


def test_a_person_without_the_role_does_not_decide(home: Path, run: Run, asked: dict[str, Any], signs_in: SignIn):
    signs_in("lee", "legal")
    decide = (
        "approvals",
        "approve",
        asked["approval_id"],
        "--fingerprint",
        asked["fingerprint"],
        "--as",
        "lee",
        "--json",
    )
    ran = run(*decide)
    assert (ran.code, json.loads(ran.out)["error"]["code"]) == (1, "FORBIDDEN")
    assert quote_status(home, asked) == "pending_approval"


def test_a_rejection_says_why(home: Path, run: Run, asked: dict[str, Any], signs_in: SignIn):
    signs_in("dana", "sales_manager")
    decide = ("approvals", "reject", asked["approval_id"], "--fingerprint", asked["fingerprint"], "--as", "dana")
    assert run(*decide).code == 2
    assert run(*decide, "--comment", "Half of it.").code == 0
    assert quote_status(home, asked) == "draft"


def test_without_the_fingerprint_it_is_shown_and_must_be_confirmed(
    home: Path, run: Run, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, signs_in: SignIn
):
    signs_in("dana", "sales_manager")
    for said, status in ((False, "pending_approval"), (True, "approved")):
        monkeypatch.setattr("click.confirm", lambda *_args, said=said, **_options: _answer(said))
        ran = run("approvals", "approve", asked["approval_id"], "--as", "dana")
        assert "1,350.00 USD" in ran.out
        assert (ran.code, quote_status(home, asked)) == (0 if said else 1, status)


def test_who_may_not_decide_is_told_before_being_asked(
    home: Path, run: Run, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, signs_in: SignIn
):
    signs_in("alex", "admin")
    people = {"lee": "legal", "rob": "sales_rep", "dana": "sales_manager"}
    for name, role in people.items():
        run("token", "create", "--name", name, "--role", role)
    monkeypatch.setattr("click.confirm", lambda *_args, **_options: pytest.fail("asked"))
    decide = ("approvals", "approve", asked["approval_id"], "--as")
    refusals = {
        "lee": "There is no such request that you may decide or withdraw.",
        "rob": "approvals_approve needs the permission 'decide', which human:rob lacks.",
    }
    for name, said in refusals.items():
        ran = run(*decide, name)
        assert (ran.code, ran.out, ran.err.splitlines()[0]) == (1, "", f"Error: {said}")
    assert run("approvals", "approve", "APR-none", "--as", "dana").err == "Error: There is no approval 'APR-none'.\n"
    assert quote_status(home, asked) == "pending_approval"
    assert run(*decide, "dana", "--fingerprint", asked["fingerprint"]).code == 0
    again = run(*decide, "dana")
    assert (again.code, again.out) == (1, "")
    assert again.err.startswith("Error: human:dana has approved it already.")


def test_json_stands_alone_on_stdout_also_when_it_is_confirmed(
    home: Path, run: Run, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, signs_in: SignIn
):
    signs_in("dana", "sales_manager")
    monkeypatch.setattr("click.confirm", lambda *_args, **_options: True)
    ran = run("approvals", "approve", asked["approval_id"], "--as", "dana", "--json")
    assert json.loads(ran.out)["quote_status"] == "approved"
    assert "1,350.00 USD" in ran.err


def _answer(said: bool) -> bool:
    if not said:
        raise click.Abort
    return said


def test_the_sweeper_ends_what_is_over(home: Path, run: Run, asked: dict[str, Any]):
    assert run("approvals", "sweep").out == "0 expired, 0 withdrawn, 0 escalated.\n"
    past = "2020-01-01T00:00:00.000000Z"
    query(home, "UPDATE approval SET expires_at = ?, requested_at = ?", past, past)
    assert json.loads(run("approvals", "sweep", "--json").out)["expired"] == 0, "the row is not as the record has it"
    assert run("audit", "baseline", "--accept", asked["quote_id"]).out == "Recorded: 1 quotes.\n"
    assert json.loads(run("approvals", "sweep", "--json").out) == {"expired": 1, "withdrawn": 0, "escalated": 0}
    assert query(home, "SELECT status FROM approval") == [("expired",)]


def test_a_shell_alone_decides_nothing_once_tokens_exist(
    home: Path, run: Run, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    secrets = {
        name: run("token", "create", "--name", name, "--role", role).out.strip()
        for name, role in (("dana", "sales_manager"), ("dora", "sales_manager"), ("alex", "admin"))
    }
    decide = ("approvals", "approve", asked["approval_id"], "--as", "dana", "--fingerprint", asked["fingerprint"])
    token_id = secrets["dana"].split("_")[1]
    for wrong in (None, "", "guess", f"qw_{token_id}_guess", secrets["dora"]):
        monkeypatch.delenv("CPQ_TOKEN", raising=False)
        if wrong is not None:
            monkeypatch.setenv("CPQ_TOKEN", wrong)
        ran = run(*decide)
        assert (ran.code, "a valid token of 'dana' or of an administrator is needed" in ran.err) == (1, True)
        assert "CPQ_TOKEN" in ran.err
    assert quote_status(home, asked) == "pending_approval"
    refusals = query(home, "SELECT count(*) FROM audit_entry WHERE operation = ? AND outcome = ?", *REFUSED)
    assert refusals == [(5,)]
    monkeypatch.delenv("CPQ_TOKEN", raising=False)
    (tmp_path / "mine").write_text(secrets["dana"] + "\n", encoding="utf-8")
    assert run("--token-file", tmp_path / "none", *decide).code == 1
    ran = run("--token-file", tmp_path / "mine", *decide)
    assert (ran.code, "No secret" in ran.err, quote_status(home, asked)) == (0, False, "approved")


def test_an_administrator_acts_for_a_person_who_has_no_secret(
    home: Path, run: Run, asked: dict[str, Any], signs_in: SignIn
):
    run("token", "grant", "--name", "dana", "--role", "sales_manager")
    signs_in("alex", "admin")
    run("approvals", "approve", asked["approval_id"], "--as", "dana", "--fingerprint", asked["fingerprint"])
    assert quote_status(home, asked) == "approved"


def test_before_the_first_token_it_is_said_that_no_secret_protects(home: Path, run: Run, asked: dict[str, Any]):
    run("token", "grant", "--name", "dana", "--role", "sales_manager")
    ran = run("approvals", "approve", asked["approval_id"], "--as", "dana", "--fingerprint", asked["fingerprint"])
    assert (ran.code, "No secret protects this" in ran.err) == (0, True)


REFUSED = ("principal_find", "FORBIDDEN")
