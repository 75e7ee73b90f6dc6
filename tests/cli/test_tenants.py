"""`cpq tenant` and `--tenant`: each command works for one tenant, and says so when there is none of that name."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_a_tenant_is_created_listed_suspended_and_resumed(home: Path, run: Run):
    assert run("tenant", "create", "acme", "--name", "Acme Ltd").out.splitlines()[0] == "The tenant acme is created."
    for command, state in (("list", "active"), ("suspend", "suspended"), ("resume", "active")):
        assert run("tenant", command, *([] if command == "list" else ["acme"])).code == 0
        listed = json.loads(run("tenant", "list", "--json").out)["items"]
        assert [(one["id"], one["name"], one["state"]) for one in listed] == [
            ("main", "main", "active"),
            ("acme", "Acme Ltd", state),
        ]
    shown = run("audit", "show").out
    assert all(f"tenant_{command}" in shown for command in ("create", "suspend", "resume", "list"))


def test_a_command_works_for_the_tenant_that_is_named(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    run("tenant", "create", "acme")
    run("--tenant", "acme", "token", "create", "--name", "bot", "--role", "agent")
    assert json.loads(run("token", "list", "--json").out)["items"] == []
    monkeypatch.setenv("CPQ_TENANT", "acme")
    assert [one["caller"] for one in json.loads(run("token", "list", "--json").out)["items"]] == ["agent:bot"]
    assert json.loads(run("--tenant", "main", "token", "list", "--json").out)["items"] == []
    # It has no products of main, and takes the sample data for itself.
    assert json.loads(run("search", "find", "tank", "--in", "equipment", "--json").out)["results"] == []
    assert run("init", "--sample").code == 0
    assert json.loads(run("search", "find", "tank", "--in", "equipment", "--json").out)["results"]


def test_an_unknown_or_suspended_tenant_is_refused(home: Path, run: Run):
    run("tenant", "create", "acme")
    ran = run("--tenant", "acmee", "quote", "list")
    assert (ran.code, "There is no tenant 'acmee'." in ran.err, "Did you mean acme?" in ran.err) == (1, True, True)
    assert "`cpq tenant list`" in ran.err
    run("tenant", "suspend", "acme")
    ran = run("--tenant", "acme", "quote", "list")
    assert (ran.code, "is suspended" in ran.err, "`cpq tenant resume acme`" in ran.err) == (1, True, True)
    for command in ("suspend", "resume"):
        assert "is never suspended" in run("tenant", command, "main").err


@pytest.mark.parametrize("command", [("backup", "x.zip"), ("copy", "--to", "sqlite:///x"), ("repair",)])
def test_what_works_on_all_tenants_takes_none(home: Path, run: Run, command: tuple[str, ...]):
    run("tenant", "create", "acme")
    ran = run("--tenant", "acme", *command)
    assert (ran.code, "works on all tenants" in ran.err) == (1, True)
