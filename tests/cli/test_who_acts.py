"""A shell on the machine is no proof of who types: giving roles, acting over stdio, and the way back in."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from cpq.app.access import LOCAL_AGENT
from cpq.base.settings import read_settings
from mcp_facade import __main__ as server
from tests.cli.conftest import Run, SignIn, query
from tests.support.engine import Tools, open_app
from tests.support.quotes import sent_quote

MANAGER = ("--name", "mallory", "--role", "sales_manager")


def test_a_shell_alone_gives_no_role_that_decides_once_an_administrator_exists(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    dana = run("token", "create", "--name", "dana", "--role", "sales_manager").out.strip()
    alex = run("token", "create", "--name", "alex", "--role", "admin").out.strip()
    before = query(home, "SELECT count(*) FROM token")
    for wrong in ("", dana, alex[:-1]):
        monkeypatch.setenv("CPQ_TOKEN", wrong)
        for verb in ("create", "grant"):
            for who in (MANAGER, ("--name", "mallory", "--role", "admin"), ("--name", "dana", "--role", "sales_rep")):
                refused = run("token", verb, *who)
                assert (refused.code, refused.out) == (1, "")
                assert "a valid token of an administrator is needed" in refused.err
                assert "--recover" in refused.err
        refused = run("console", "sample")
        assert (refused.code, refused.out) == (1, "")
    assert query(home, "SELECT count(*) FROM token") == before
    assert run("token", "create", "--name", "bot", "--role", "agent").code == 0, "programs need nobody"
    monkeypatch.delenv("CPQ_TOKEN")
    (tmp_path / "alex").write_text(alex, encoding="utf-8")
    assert run("--token-file", tmp_path / "alex", "token", "grant", *MANAGER).code == 0
    shown = run("audit", "show", "--limit", 100)
    assert "human:alex acting for human:operator" in shown.out
    entries = query(home, "SELECT caller FROM audit_entry WHERE operation = 'token_grant'")
    assert entries[-1] == ("human:alex acting for human:operator",)


def test_the_way_back_in_for_a_lost_administrator_is_seen_by_everybody(home: Path, run: Run):
    run("token", "create", "--name", "alex", "--role", "admin")
    assert run("token", "create", *MANAGER, "--recover").code == 1
    back = run("token", "create", "--name", "anna", "--role", "admin", "--recover")
    assert (back.code, "No administrator agreed to this" in back.err) == (0, True)
    assert query(home, "SELECT caller, outcome FROM audit_entry WHERE operation = 'token_recover'") == [
        ("human:operator", "OK")
    ]
    findings = json.loads(run("doctor", "--json").out)["findings"]
    [found] = [one for one in findings if one["subject"] == "token"]
    assert (found["state"], "made without an administrator on" in found["found"]) == ("warning", True)


def test_over_stdio_a_shell_alone_acts_as_no_person_once_tokens_exist(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    settings = read_settings({}, home=home)
    run("token", "grant", "--name", "dana", "--role", "sales_manager")
    with closing(open_app(settings)) as app:
        assert server._principal(app, "dana").caller == "human:dana", "no secret exists that could be asked for"
    run("token", "create", "--name", "bot", "--role", "agent")
    rita = run("token", "create", "--name", "rita", "--role", "sales_rep").out.strip()
    alex = run("token", "create", "--name", "alex", "--role", "admin").out.strip()
    for wrong in ("", rita):
        monkeypatch.setenv("CPQ_TOKEN", wrong)
        for name in ("dana", "alex"):
            assert server.main(["--transport", "stdio", "--as", name]) == 1
            assert "of an administrator is needed" in capfd.readouterr().err
    monkeypatch.setenv("CPQ_TOKEN", "")
    assert server.main(["--transport", "stdio", "--as", "rita"]) == 1, "a person records what customers accept"
    with closing(open_app(settings)) as app:
        assert server._principal(app, None) == LOCAL_AGENT
        assert server._principal(app, "bot").caller == "agent:bot"
        monkeypatch.setenv("CPQ_TOKEN", rita)
        assert server._principal(app, "rita").signature == "human:rita"
        monkeypatch.setenv("CPQ_TOKEN", alex)
        assert server._principal(app, "dana").signature == "human:alex acting for human:dana"


def test_a_file_of_settings_is_no_proof_of_a_person(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    started: list[dict[str, str]] = []
    monkeypatch.setattr("os.execve", lambda _program, _command, env: started.append(env))
    (home / ".env").write_text("CPQ_TOKEN=from-a-file\nMCP_PORT=8766\n", encoding="utf-8")
    (home / ".env").chmod(0o600)
    run("serve", "--as", "dana")
    monkeypatch.setenv("CPQ_TOKEN", "from-the-shell")
    run("serve", "--as", "dana")
    (home / "mine").write_text("from-my-file\n", encoding="utf-8")
    run("--token-file", home / "mine", "serve", "--as", "dana")
    assert [env.get("CPQ_TOKEN") for env in started] == [None, "from-the-shell", "from-my-file"]
    assert started[0]["MCP_PORT"] == "8766"


def test_the_link_of_an_administrator_names_them(home: Path, run: Run, signs_in: SignIn):
    run("token", "grant", "--name", "dana", "--role", "sales_manager")
    signs_in("alex", "admin")
    run("console", "link", "--user", "dana")
    assert query(home, "SELECT caller, subject FROM audit_entry WHERE operation = 'console_link'") == [
        ("human:alex acting for human:operator", "dana")
    ]


def test_a_seller_prints_a_link_by_which_the_customer_accepts(home: Path, run: Run, signs_in: SignIn):
    with closing(open_app(read_settings({}, home=home))) as app:
        quote_id = sent_quote(Tools(app))
    signs_in("rita", "sales_rep")
    made = run("quote", "link", quote_id, "--as", "rita")
    assert re.fullmatch(r"http://127\.0\.0\.1:8765/accept/main\.[\w-]{43}\n", made.out), made.err
    code = made.out.strip().rpartition(".")[2]
    assert code not in "".join(path.read_bytes().decode("latin-1") for path in home.rglob("*") if path.is_file())
    again = json.loads(run("quote", "link", quote_id, "--as", "rita", "--json").out)
    assert (again["version"], code in again["link"]) == (1, False)
    assert run("quote", "link", quote_id, "--version", 2, "--as", "rita").code == 1
    revoked = run("quote", "unlink", quote_id, again["link_id"], "--as", "rita")
    assert revoked.out == f"Revoked: {again['link_id']}.\n", revoked.err
    [other] = json.loads(run("quote", "unlink", quote_id, "--as", "rita", "--json").out)["revoked"]
    assert run("quote", "unlink", quote_id, "--as", "rita").out == "There was no link to revoke.\n"
    rows = query(home, "SELECT id, revoked_by FROM acceptance_link")
    assert sorted(rows) == sorted([(again["link_id"], "human:rita"), (other, "human:rita")])
