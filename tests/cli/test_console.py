"""`cpq console` and `cpq token grant`: links that open once, roles without secrets, and a sample to try it with."""

import json
import re
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path

import httpx2
import pytest

from cpq.base import running_servers
from cpq.base.running_servers import RunningServer
from cpq.base.settings import read_settings
from mcp_facade import demo
from tests.cli.conftest import Run, SignIn, query
from tests.cli.test_commands import CPQ
from tests.support.console import serving
from tests.support.engine import Tools, open_app
from tests.support.quotes import new_quote


def test_a_link_is_printed_for_a_person_with_a_role(home: Path, run: Run):
    granted = run("token", "grant", "--name", "dana", "--role", "sales_manager")
    assert granted.code == 0
    assert "human:dana is sales_manager" in granted.out
    made = run("console", "link", "--user", "dana", "--minutes", "5")
    assert re.fullmatch(r"http://127\.0\.0\.1:8765/console/enter/main\.[\w-]{43}\n", made.out)
    code = made.out.strip().rpartition(".")[2]
    assert code not in "".join(path.read_bytes().decode("latin-1") for path in home.iterdir() if path.is_file())
    assert json.loads(run("console", "link", "--user", "dana", "--json").out)["minutes"] == 15


def test_a_shell_alone_makes_no_link_once_tokens_exist(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    run("token", "grant", "--name", "dana", "--role", "sales_manager")
    link = ("console", "link", "--user", "dana")
    assert "No secret protects this" in run(*link).err
    query(home, "DELETE FROM sign_in_link")
    agent = run("token", "create", "--name", "bot", "--role", "agent").out.strip()
    for wrong in ("", agent):
        monkeypatch.setenv("CPQ_TOKEN", wrong)
        refused = run(*link)
        assert (refused.code, refused.out) == (1, "")
        assert "a valid token of 'dana' or of an administrator is needed" in refused.err
    assert query(home, "SELECT count(*) FROM sign_in_link") == [(0,)]
    for name, role in (("dana", "sales_manager"), ("alex", "admin")):
        monkeypatch.setenv("CPQ_TOKEN", run("token", "create", "--name", name, "--role", role).out.strip())
        assert run(*link).out.startswith("http://127.0.0.1:8765/console/enter/main.")


def test_the_link_leads_to_where_people_reach_the_server(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    run("token", "grant", "--name", "dana", "--role", "sales_manager")
    monkeypatch.setenv("CPQ_CONSOLE_URL", "https://cpq.example.com/")
    assert run("console", "link", "--user", "dana").out.startswith("https://cpq.example.com/console/enter/main.")


def test_the_link_leads_to_the_server_that_runs_whatever_its_port(home: Path, run: Run):
    run("token", "grant", "--name", "dana", "--role", "sales_manager")
    alone = run("console", "link", "--user", "dana")
    assert alone.out.startswith("http://127.0.0.1:8765/console/enter/")
    assert "No server runs on this home now" in alone.err
    with serving(read_settings({}, home=home)) as one:
        port = one.url.rpartition(":")[2]
        found = run("console", "link", "--user", "dana")
        assert found.out.startswith(f"http://127.0.0.1:{port}/console/enter/")
        assert "No server" not in found.err
        entered = httpx2.get(found.out.strip(), follow_redirects=True)
        assert (entered.status_code, "dana" in entered.text) == (200, True)
        with serving(read_settings({}, home=home)) as other:
            both = run("console", "link", "--user", "dana")
            assert f"others: {one.url}" in both.err or f"others: {other.url}" in both.err
    assert json.loads(run("console", "link", "--user", "dana", "--json").out)["server_runs"] is False


def test_the_bare_address_leads_to_the_console(home: Path):
    with serving(read_settings({}, home=home)) as server:
        answer = httpx2.get(f"{server.url}/")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/")


def test_start_up_prints_the_addresses_and_the_server_is_found_until_it_stops(todays_home: Path):
    command = [*CPQ, "serve", "--transport", "streamable-http", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            told = dict(line.split(maxsplit=1) for line in islice(server.stderr, 4))
            [found] = _until(lambda: running_servers.running(todays_home))
        finally:
            server.terminate()
    assert told["mcp"].strip() == f"{found.address}/mcp"
    assert told["console"].strip() == f"{found.address}/console"
    assert told["health"].strip() == f"{found.address}/healthz"
    assert running_servers.running(todays_home) == []


def _until(look: Callable[[], list[RunningServer]]) -> list[RunningServer]:
    while not (found := look()):
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("variable", ["MCP_HOST=0.0.0.0", "MCP_ALLOWED_HOSTS=cpq.example.com"])
def test_a_link_for_others_needs_the_address_they_use(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, variable: str
):
    run("token", "grant", "--name", "dana", "--role", "sales_manager")
    monkeypatch.setenv(*variable.split("="))
    refused = run("console", "link", "--user", "dana")
    assert refused.code == 1
    assert "CPQ_CONSOLE_URL=https://" in refused.err
    assert query(home, "SELECT count(*) FROM sign_in_link") == [(0,)]


@pytest.mark.parametrize("name", ["nobody", "bot"])
def test_there_is_no_link_for_programs_and_strangers(home: Path, run: Run, signs_in: SignIn, name: str):
    run("token", "create", "--name", "bot", "--role", "agent")
    signs_in("alex", "admin")
    refused = run("console", "link", "--user", name)
    assert refused.code == 1
    assert "cpq token grant" in refused.err
    assert query(home, "SELECT count(*) FROM sign_in_link") == [(0,)]


def test_a_granted_role_can_be_listed_and_revoked_and_presented_by_nobody(home: Path, run: Run):
    made = json.loads(run("token", "grant", "--name", "dana", "--role", "sales_manager", "--json").out)
    assert query(home, "SELECT secret_hash FROM token") == [("-",)]
    listed = json.loads(run("token", "list", "--json").out)["items"]
    assert [(item["id"], item["state"]) for item in listed] == [(made["id"], "valid")]
    assert run("token", "revoke", made["id"]).code == 0
    assert run("console", "link", "--user", "dana").code == 1


def test_the_sample_fills_a_queue_once_after_the_demo_too(home: Path, run: Run):
    with closing(open_app(read_settings({}, home=home))) as app:
        new_quote(Tools(app), deal_id=demo.DEAL)
    first = run("console", "sample")
    assert first.code == 0, first.err
    assert "9 wait" in first.out
    assert "/console/enter/main." in first.out
    before = query(home, "SELECT status, count(*) FROM quote GROUP BY status ORDER BY status")
    assert {status for status, _ in before} >= {"accepted", "declined", "draft", "pending_approval", "sent"}
    ahead = "requested_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
    assert query(home, f"SELECT count(*) FROM approval WHERE {ahead}") == [(0,)]
    again = run("console", "sample")
    assert again.code == 0
    assert query(home, "SELECT status, count(*) FROM quote GROUP BY status ORDER BY status") == before
    assert run("audit", "verify").code == 0
    assert run("quote", "replay", "--all").code == 0


@pytest.mark.parametrize("person", ["dana", None])
def test_the_sample_leaves_a_store_alone_that_has_a_quote_of_its_own(
    home: Path, run: Run, tmp_path: Path, person: str | None
):
    (tmp_path / "quotes.csv").write_text(
        "id,account_id,currency,product_id,quantity\nD-1,acct_acme_001,USD,prod_pro_v2,1\n"
    )
    assert run("import", "quotes", tmp_path / "quotes.csv").code == 0
    if person:
        run("token", "grant", "--name", person, "--role", "sales_manager")
    refused = run("console", "sample")
    assert refused.code == 1
    assert "This store has real quotes" in refused.err
    assert query(home, "SELECT count(*) FROM quote") == [(1,)]
    assert query(home, "SELECT count(*) FROM principal") == [(1 if person else 0,)]


def test_the_sample_without_its_catalogue_does_nothing(home: Path, run: Run):
    for table in ("price", "account", "product"):
        query(home, f"DELETE FROM {table}" + (" WHERE id = 'acct_acme_001'" if table == "account" else ""))
    refused = run("console", "sample")
    assert refused.code == 1
    assert "sample catalogue" in refused.err
    assert "acct_acme_001" in refused.err
    assert query(home, "SELECT count(*) FROM principal") == [(0,)]
