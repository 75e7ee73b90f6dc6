"""`cpq tenant` and `--tenant`: each command works for one tenant, and says so when there is none of that name."""

import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from cpq.storage import portable_rows
from tests.cli.conftest import Run
from tests.support.engine import opened


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


def rows_of(home: Path, tenant_id: str) -> dict[str, int]:
    """How many rows a tenant has in each table, but for those that any command adds to."""
    app = opened(home)
    shapes = [shape for shape in portable_rows.shapes() if not shape.name.startswith(("audit_", "idempotency"))]
    with app.database.reading() as connection:
        found = {shape.name: portable_rows.count(connection, shape, tenant_id) for shape in shapes}
        keys = sa.text("SELECT count(*) FROM search_key WHERE tenant_id = :tenant")
        found["search_key"] = connection.scalar(keys, {"tenant": tenant_id}) or 0
    app.close()
    return {name: rows for name, rows in found.items() if rows}


def test_a_tenant_is_exported_and_deleted_with_everything(home: Path, run: Run, tmp_path: Path):
    run("tenant", "create", "acme")
    assert run("--tenant", "acme", "init", "--sample").code == 0
    folder = home / "tenants" / "acme" / "policies"
    assert run("policy", "copy", folder).code == 0
    mine, of_main, kept = rows_of(home, "acme"), rows_of(home, "main"), tmp_path / "acme.zip"
    assert mine["product"] == mine["search_key"] > 0
    assert run("tenant", "export", "acme", kept).code == 0
    assert kept.exists()

    ran = run("tenant", "delete", "acme", "--yes", "acme")
    assert (ran.code, "is active. Nothing was deleted." in ran.err) == (1, True)
    run("tenant", "suspend", "acme")
    for given in ((), ("--yes", "acm")):
        assert "Nothing was deleted" in run("tenant", "delete", "acme", *given).err
    assert rows_of(home, "acme") == mine
    assert run("tenant", "delete", "acme", "--yes", "acme").code == 0
    assert (rows_of(home, "acme"), folder.parent.exists()) == ({}, False)
    assert rows_of(home, "main") == of_main
    assert "There is no tenant 'acme'" in run("--tenant", "acme", "quote", "list").err
    assert "tenant_delete" in run("audit", "show").out
    for command in (("export", "nobody", tmp_path / "x.zip"), ("delete", "nobody", "--yes", "nobody")):
        assert "There is no tenant 'nobody'" in run("tenant", *command).err
    assert "is active" in run("tenant", "delete", "main", "--yes", "main").err
