"""`cpq` itself, `cpq init`, `cpq serve`, `cpq doctor` and the help."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import click
import pytest

from cpq import __version__
from cpq.app.policy_files import load
from cpq.base.clock import Effects
from cpq.base.settings import shipped
from cpq.cli import COMMANDS, doctor, main, root
from cpq.storage.schema import SCHEMA_VERSION
from mcp_facade import demo
from tests.cli.conftest import Run, query

CPQ = [sys.executable, "-c", "import sys; from cpq.cli import main; sys.exit(main())"]


def test_init_twice_changes_nothing_the_second_time(empty_home: Path, run: Run):
    first, second = run("init", "--sample"), run("init", "--sample")
    assert (first.code, second.code) == (0, 0)
    assert f"created ({SCHEMA_VERSION})" in first.out
    assert f"already up to date ({SCHEMA_VERSION})" in second.out
    created = {line.split()[0]: line.split()[-3:] for line in first.out.splitlines()[3:]}
    assert created["products"][1:] == ["0", "0"]
    assert "the sample data is not loaded" in second.out


def test_the_sample_does_not_overwrite_what_is_there(home: Path, run: Run):
    query(home, "UPDATE product SET name = 'Our own plan' WHERE id = 'prod_pro_v2'")
    assert run("init", "--sample").code == 0
    assert query(home, "SELECT name FROM product WHERE id = 'prod_pro_v2'") == [("Our own plan",)]


def test_what_init_makes_is_for_its_user_alone(empty_home: Path, run: Run):
    assert run("init").code == 0
    made = {path.name: path.stat().st_mode & 0o777 for path in (empty_home, *empty_home.iterdir())}
    assert {name: oct(mode) for name, mode in made.items() if mode & 0o077} == {}


def test_init_without_the_sample_leaves_an_empty_catalogue(empty_home: Path, run: Run):
    assert run("init").code == 0
    assert query(empty_home, "SELECT count(*) FROM product") == [(0,)]


def test_a_command_before_init_says_so_and_creates_nothing(empty_home: Path, run: Run):
    ran = run("token", "list")
    assert ran.code == 1
    assert "There is no database" in ran.err
    assert "cpq init" in ran.err
    assert not empty_home.exists()


def test_the_home_option_wins_over_the_environment(empty_home: Path, tmp_path: Path, run: Run):
    assert run("--home", tmp_path / "other", "init").code == 0
    assert (tmp_path / "other" / "quotewright.db").exists()
    assert not empty_home.exists()


def test_an_unreachable_database_is_told_without_its_password(empty_home: Path, run: Run):
    url = "postgresql+psycopg://quotes:hunter2@127.0.0.1:1/none"
    for arguments in (["init"], ["token", "list"], ["doctor"]):
        ran = run("--database-url", url, *arguments)
        assert ran.code == 1
        assert "cannot be used" in ran.out + ran.err
        assert "Check CPQ_DATABASE_URL, and that its server runs and lets you in." in ran.out + ran.err
        assert "hunter2" not in ran.out + ran.err
        assert "Traceback" not in ran.err


def test_a_home_that_cannot_be_one_is_told_as_such(empty_home: Path, tmp_path: Path, run: Run):
    (tmp_path / "file").touch()
    ran = run("--home", tmp_path / "file" / "home", "init")
    assert (ran.code, ran.err.splitlines()[1]) == (1, "Check CPQ_HOME: a folder that you may write to.")


def test_an_unexpected_fault_is_one_line_and_a_traceback_only_on_request(home: Path, run: Run):
    query(home, "DROP TABLE token")
    quiet, debug = run("token", "list"), run("--debug", "token", "list")
    assert (quiet.code, debug.code) == (1, 1)
    assert "unexpected OperationalError" in quiet.err
    assert "Traceback" not in quiet.err
    assert "Traceback" in debug.err


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["init", "--nonsense"], ["token", "create"], ["import", "catalog"]]
)
def test_what_is_not_understood_ends_with_2(empty_home: Path, run: Run, arguments: list[str]):
    ran = run(*arguments)
    assert ran.code == 2
    assert "Usage:" in ran.err


@pytest.mark.parametrize(("words", "meant"), [(["qoute", "list"], "quote"), (["quote", "shwo", "Q-1"], "show")])
def test_a_mistyped_command_is_answered_with_the_nearest_one(run: Run, words: list[str], meant: str):
    ran = run(*words)
    assert ran.code == 2
    assert f"Did you mean '{meant}'?" in ran.err


def test_the_version_is_the_products(run: Run):
    assert run("--version").out == f"Quotewright {__version__}\n"


def _all_commands() -> list[list[str]]:
    found: list[list[str]] = []

    def walk(path: list[str], command: click.Command) -> None:
        found.append(path)
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                walk([*path, name], command.get_command(context, name) or pytest.fail(name))

    walk([], root)
    return found


@pytest.mark.parametrize("path", _all_commands(), ids=" ".join)
def test_every_command_helps_with_an_example(run: Run, path: list[str]):
    ran = run(*path, "--help")
    assert ran.code == 0
    assert "Example:" in ran.out
    assert f"cpq {' '.join(path)}".strip() in ran.out


def test_the_help_lists_every_command_and_loads_none(empty_home: Path):
    script = "import sys; from cpq.cli import main; main(['--help']); sys.exit('sqlalchemy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert all(f"  {name}" in ran.stdout for name in COMMANDS)


def test_no_color_leaves_no_escape_codes(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run("token", "roles").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("token", "roles").out


@pytest.mark.parametrize(
    "arguments",
    [
        ["token", "list"],
        ["token", "roles"],
        ["audit", "show"],
        ["audit", "verify"],
        ["doctor"],
        ["quote", "list"],
        ["quote", "show", "Q-none"],
        ["quote", "explain", "Q-none"],
        ["quote", "diff", "Q-none"],
        ["quote", "replay", "--all"],
    ],
    ids=" ".join,
)
def test_every_read_command_speaks_json(home: Path, run: Run, arguments: list[str]):
    assert isinstance(json.loads(run(*arguments, "--json").out), dict)


def test_a_failure_is_json_too_when_json_was_asked_for(empty_home: Path, run: Run):
    ran = run("token", "list", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["error"]["code"] == "UNAVAILABLE"


def test_doctor_fails_without_a_database_and_names_the_remedy(empty_home: Path, run: Run):
    ran = run("doctor")
    assert ran.code == 1
    assert "run `cpq init`" in ran.out
    assert not empty_home.exists()


def test_doctor_counts_what_a_ready_database_holds(home: Path, run: Run):
    ran = run("doctor", "--json")
    report = json.loads(ran.out)
    findings = {finding["subject"]: finding for finding in report["findings"]}
    products = query(home, "SELECT count(*) FROM product")[0][0]
    assert ran.code == (0 if report["healthy"] else 1)
    assert findings["database"]["state"] == findings["migrations"]["state"] == findings["catalogue"]["state"] == "ok"
    assert findings["catalogue"]["found"].startswith(f"{products} products, ")
    texts = re.match(r"0 of (\d+) texts of equipment, ", findings["vectors"]["found"])
    assert texts is not None
    assert int(texts[1]) >= products  # Some products have two texts.
    assert findings["vectors"]["found"].endswith(" of web; a server or `cpq search index` makes the rest")


def test_doctor_says_how_far_pages_are_indexed(home: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.md").write_text("# Pumps\n\nThey move water.\n\n## Tanks\n\nThey hold it.\n")
    monkeypatch.setenv("CPQ_DOCS_DIR", str(tmp_path / "ours"))
    monkeypatch.setenv("CPQ_DOCS_DIRS", f"acme={tmp_path / 'theirs'}")
    found = {one["subject"]: one["found"] for one in json.loads(run("doctor", "--json").out)["findings"]}
    assert found["pages of tenants"] == "CPQ_DOCS_DIRS names acme, and there is no such tenant"
    assert ", 0 of 2 passages of pages; a server" in found["vectors"]
    assert run("tenant", "create", "acme").code == 0
    found = {one["subject"]: one["found"] for one in json.loads(run("doctor", "--json").out)["findings"]}
    assert ", 0 of 2 passages of pages, 0 of 2 passages of pages of acme; a server" in found["vectors"]
    assert run("docs", "index").code == 0
    found = {one["subject"]: one["found"] for one in json.loads(run("doctor", "--json").out)["findings"]}
    assert "2 of 2 passages of pages, " in found["vectors"]


def test_doctor_fails_on_an_older_schema(home: Path, run: Run):
    query(home, "UPDATE alembic_version SET version_num = '0000'")
    ran = run("doctor")
    assert ran.code == 1
    assert f"at 0000, this version needs {SCHEMA_VERSION}" in ran.out


def test_doctor_fails_on_a_file_that_is_no_database(empty_home: Path, run: Run):
    empty_home.mkdir()
    (empty_home / "quotewright.db").write_bytes(b"not a database at all" * 100)
    ran = run("doctor")
    assert ran.code == 1
    assert "file is not a database" in ran.out


def test_doctor_names_the_broken_policy_and_still_looks_at_the_database(
    home: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
):
    folder = shutil.copytree(shipped("policies"), tmp_path / "policies")
    (folder / "terms.yaml").write_text("validity_days: [")
    monkeypatch.setenv("CPQ_POLICIES_DIR", str(folder))
    ran = run("doctor", "--json")
    findings = {finding["subject"]: finding for finding in json.loads(ran.out)["findings"]}
    assert ran.code == 1
    assert findings["policies"]["state"] == "problem"
    assert findings["policies"]["found"].startswith(f"in {folder}: terms.yaml, line 2")
    assert "keeps the last valid policies" in findings["policies"]["to_do"]
    assert findings["database"]["state"] == findings["migrations"]["state"] == "ok"
    assert findings["catalogue"]["state"] == "ok"
    assert run("token", "grant", "--name", "rita", "--role", "sales_rep").code == 0  # This needs no policies.
    refused = run("quote", "create", "--account", "acct_acme_001", "--line", "prod_pro_v2:1", "--as", "rita")
    assert refused.code == 1
    assert "terms.yaml, line 2" in refused.err


def test_doctor_fails_on_templates_without_their_fonts(
    home: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "templates"
    shutil.copytree(shipped("pdf_templates"), folder, ignore=shutil.ignore_patterns("fonts"))
    monkeypatch.setenv("CPQ_TEMPLATES_DIR", str(folder))
    ran = run("doctor", "--json")
    findings = {finding["subject"]: finding for finding in json.loads(ran.out)["findings"]}
    assert (ran.code, findings["PDF templates"]["state"]) == (1, "problem")
    assert "fonts: there is no fonts.conf in it" in findings["PDF templates"]["found"]


@pytest.mark.parametrize("content", [b"not a model", None])
def test_doctor_fails_on_a_model_that_is_damaged_or_gone(
    home: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, content: bytes | None
):
    if content:
        (tmp_path / "model.onnx").write_bytes(content)
    monkeypatch.setattr(doctor, "model_file", lambda: tmp_path / "model.onnx")
    ran = run("doctor", "--json")
    found = next(one for one in json.loads(ran.out)["findings"] if one["subject"] == "search")
    assert (ran.code, found["state"]) == (1, "problem")
    assert found["found"].startswith("The embedding model ")
    assert found["to_do"].startswith("pip install --force-reinstall")


def test_doctor_says_which_policies_are_in_force(home: Path, run: Run):
    findings = {finding["subject"]: finding for finding in json.loads(run("doctor", "--json").out)["findings"]}
    assert findings["policies"]["state"] == "ok"
    assert findings["policies"]["found"] == f"{shipped('policies')}, {load(shipped('policies')).content_hash[:12]}"


def test_a_variable_that_is_no_setting_is_told_with_the_one_that_was_meant(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
):
    assert run("quote", "list").err == ""
    monkeypatch.setenv("CPQ_TOOLSET", "all")
    (home / ".env").write_text("CPQ_XYZZY=1\nOTHER=2\n")
    meant = "CPQ_TOOLSET is not a setting and has no effect; did you mean CPQ_TOOLSETS?"
    ran = run("quote", "list")
    assert ran.code == 0
    assert [line.split(" cpq.cli ")[1] for line in ran.err.splitlines()] == [
        meant,
        "CPQ_XYZZY is not a setting and has no effect",
    ]
    report = json.loads(run("doctor", "--json").out)
    found = {one["found"]: (one["state"], one["to_do"]) for one in report["findings"] if one["subject"] == "settings"}
    assert found[meant] == ("warning", "correct it, or remove it")


def test_a_server_warns_of_a_variable_that_is_no_setting(todays_home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CPQ_TOOLSET", "all")
    served = subprocess.run([*CPQ, "serve"], input="", capture_output=True, text=True, check=True)
    assert served.stdout == ""
    assert "CPQ_TOOLSET is not a setting and has no effect; did you mean CPQ_TOOLSETS?" in served.stderr


def test_serve_answers_over_stdio_and_ends_with_its_input(todays_home: Path):
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    ran = subprocess.run(
        [*CPQ, "--home", str(todays_home), "serve"],
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "quotewright"


def test_serve_passes_its_options_on(todays_home: Path):
    ran = subprocess.run([*CPQ, "serve", "--toolsets", "nonsense"], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "'nonsense' is not a toolset" in ran.stderr


def test_the_demo_prepares_an_empty_home_and_runs_to_its_end(empty_home: Path, real_clock: Effects):
    ran = subprocess.run([*CPQ, "demo"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Sample data: loaded." in ran.stderr
    assert "NOT_FOUND: There is no product 'Pro Plan'." in ran.stdout
    assert "prod_pro_v2" in ran.stdout
    assert "\nDone: 13 steps, " in ran.stdout
    assert "\x1b" not in ran.stdout


def test_the_demo_tells_a_deal_to_its_amendment_and_a_second_one_finds_the_same(empty_home: Path, real_clock: Effects):
    told = subprocess.run([*CPQ, "demo", "--fast"], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in told.splitlines()]
    assert ["Pro", "Plan", "150", "10.00", "1,500.00", "USD"] in lines
    assert ["Pro", "Plan", "150", "9.00", "1,350.00", "USD"] in lines
    assert ["discount", "-150.00", "USD", "▒▒▒"] in lines
    assert ["total", "1,350.00", "USD", "█" * 27] in lines
    assert "FORBIDDEN: approval_decide needs the permission 'decide', which agent:mcp lacks." in told
    assert "A person records that a customer accepted, and agent:mcp is a program." in told
    assert ["before", "150"] in [line[:2] for line in lines]
    document = Path(told.splitlines()[-1])
    assert document.read_bytes().startswith(b"%PDF-1.7")

    again = json.loads(subprocess.run([*CPQ, "demo", "--json"], capture_output=True, text=True, check=True).stdout)
    assert again["document"] == str(document)
    assert [step["step"] for step in again["steps"]] == [*range(1, 14)]
    answers = {one["name"]: one["answer"] for step in again["steps"] for one in step["requests"]}
    assert answers["agreement_amend"]["replayed"] is True
    [change] = answers["agreement_amend"]["lines"]
    assert Decimal(str(change["price_after"])) - Decimal(str(change["credit"])) == Decimal(str(change["difference"]))
    assert query(empty_home, "SELECT status FROM quote ORDER BY number") == [("accepted",), ("draft",)]


def test_a_demo_that_fails_leaves_no_manager_behind(todays_home: Path):
    with pytest.raises(OSError, match="no room"), demo._manager():
        raise OSError("no room")
    assert query(todays_home, "SELECT count(*), count(revoked_at) FROM token") == [(1, 1)]


def test_the_demo_adds_nothing_to_a_catalogue_of_ones_own(empty_home: Path, tmp_path: Path, real_clock: Effects):
    (tmp_path / "own.csv").write_text("id,sku,name,category\nchair,CH-1,Chair,seats\n")
    assert main(["init"], real_clock) == 0
    assert main(["import", "catalog", str(tmp_path / "own.csv")], real_clock) == 0
    ran = subprocess.run([*CPQ, "demo"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Chair (CH-1), simple" in ran.stdout
    assert "quote_create {" not in ran.stdout
    assert query(empty_home, "SELECT id FROM product") == [("chair",)]
