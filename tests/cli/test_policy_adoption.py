"""Policies that people adopt, and policies that a server stored: what is in force while the folder says otherwise."""

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import OUTCOME_OK, App
from cpq.app.health import policy_loop, readiness
from cpq.app.policy_files import load
from cpq.base.errors import CpqError
from cpq.base.settings import Settings, shipped
from cpq.storage.schema.tables import audit_entry, policy_set
from mcp_facade.__main__ import _described
from tests.cli.conftest import Ran, Run
from tests.support.engine import StillEffects, Tools, open_app
from tests.support.quotes import new_quote

Cpq = Callable[..., Ran]


@pytest.fixture
def folder(empty_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped policies, which the command line and the server use."""
    made = shutil.copytree(shipped("policies"), tmp_path / "policies")
    monkeypatch.setenv("CPQ_POLICIES_DIR", str(made))
    return made


@pytest.fixture
def auto(store: Settings, folder: Path) -> Settings:
    return store.model_copy(update={"policies_dir": folder})


@pytest.fixture
def manual(auto: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("CPQ_POLICIES_ADOPT", "manual")
    return auto.model_copy(update={"policies_adopt": "manual"})


@pytest.fixture
def cpq(store: Settings, run: Run) -> Cpq:
    """Runs `cpq` on the store of the test."""
    given = ("--database-url", store.database_url) if store.database_url else ()
    return lambda *arguments: run("--home", store.home, *given, *arguments)


@pytest.fixture
def server(manual: Settings, cpq: Cpq, clock: StillEffects) -> Iterator[App]:
    """A server under the shipped policies, which were adopted."""
    assert cpq("policy", "adopt").code == 0
    app = open_app(manual, clock)
    yield app
    app.close()


def ask_nobody(folder: Path) -> str:
    """Change the policies so that they warn where they asked a person; returns their hash."""
    for path in folder.glob("*.yaml"):
        text = re.sub(r"severity: approval_required\n +role: \w+", "severity: warning", path.read_text())
        path.write_text(text)
    return load(folder).content_hash


def needed(app: App, clock: StillEffects) -> list[str]:
    """Who must approve a quote with 79 % off, a second later."""
    clock.advance(seconds=1)
    tools = Tools(app)
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=79)
    return [step["approver_role"] for step in tools("approval_preview", quote_id=quote_id)["steps"]]


def change_rows(app: App, **values: Any) -> None:
    """Change the stored sets behind the product's back."""
    with app.database.writing(app.effects.monotonic() + 10) as connection:
        connection.execute(sa.update(policy_set).values(**values))


def rows(app: App) -> list[Any]:
    with app.database.reading() as connection:
        return list(connection.execute(sa.select(policy_set).order_by(policy_set.c.content_hash)))


def adoptions(app: App) -> list[str | None]:
    """The hashes of the adoptions in the audit record, in their order."""
    entry = audit_entry.c
    with app.database.reading() as connection:
        found = sa.select(entry.subject).where(entry.operation == "policy_adopt", entry.outcome == OUTCOME_OK)
        return list(connection.scalars(found.order_by(entry.at)))


def findings(ran: Ran) -> dict[str, Any]:
    return {finding["subject"]: finding for finding in json.loads(ran.out)["findings"]}


def store_in_use(settings: Settings, clock: StillEffects) -> str:
    """A server runs for a moment; the hash of the policies that it uses."""
    with closing(open_app(settings, clock)) as app:
        policy_loop(app)._work()
        return app.policies.current().content_hash


def test_a_hostile_folder_is_used_only_after_its_adoption(
    server: App, folder: Path, cpq: Cpq, clock: StillEffects, caplog: pytest.LogCaptureFixture
):
    asked, shipped_hash = needed(server, clock), server.policies.current().content_hash
    assert asked == ["vp_sales", "finance"]
    assert readiness(server)["policies"] == "ok"
    hostile = ask_nobody(folder)
    assert needed(server, clock) == asked
    waits = f"the folder has changed to {hostile[:12]}, which waits for `cpq policy adopt`; "
    waits += f"{shipped_hash[:12]} stays in use"
    with caplog.at_level(logging.WARNING, "cpq.policy"):
        loop = policy_loop(server)
        for _ in range(2):
            loop._work()
    assert [vars(record)["state"] for record in caplog.records if record.name == "cpq.policy"] == [waits]
    assert readiness(server)["policies"] == _described(server)["policy_state"] == waits
    assert waits in cpq("policy", "show").err
    told = findings(cpq("doctor", "--json"))["policies"]
    assert (told["state"], told["found"]) == ("warning", f"in {folder}: {waits}")
    adopted = json.loads(cpq("policy", "adopt", "--json").out)
    assert adopted["hashes"] == {"old": shipped_hash, "new": hostile}
    assert adopted["files"] == {"approvals.yaml": "changed", "discounts.yaml": "changed"}
    assert any("discount_cap_sales_manager" in change["what"] for change in adopted["changes"])
    assert needed(server, clock) == []
    assert readiness(server)["policies"] == "ok"


def test_an_adoption_names_its_hash_in_the_audit_and_a_retry_does_nothing(server: App, folder: Path, cpq: Cpq):
    first = server.policies.current().content_hash
    hostile = ask_nobody(folder)
    dry = cpq("policy", "adopt", "--dry-run")
    assert f"{hostile} would be adopted, instead of {first}" in dry.out
    assert adoptions(server) == [first]
    assert f"Adopted {hostile}, instead of {first}, adopted " in cpq("policy", "adopt").out
    before = rows(server)
    again = cpq("policy", "adopt")
    assert again.code == 0
    assert f"{hostile} is in force already" in again.out
    assert rows(server) == before
    assert adoptions(server) == [first, hostile]
    assert {row.adopted_by for row in before} == {"human:operator"}
    shutil.copytree(shipped("policies"), folder, dirs_exist_ok=True)
    assert cpq("policy", "adopt").code == 0  # What was adopted before can be adopted again.
    assert adoptions(server) == [first, hostile, first]


def test_only_the_content_with_the_given_hash_is_adopted(server: App, folder: Path, cpq: Cpq):
    before, hostile = rows(server), ask_nobody(folder)
    for given, told in (
        (before[0].content_hash, f"The folder has the content {hostile}, not {before[0].content_hash}"),
        (hostile[:12], "--hash needs all 64 hexadecimal digits"),
    ):
        refused = cpq("policy", "adopt", "--hash", given)
        assert refused.code == 1
        assert told in refused.err
        assert rows(server) == before
    assert hostile in cpq("policy", "check", folder).out
    assert cpq("policy", "adopt", "--hash", hostile).code == 0


def test_a_first_start_with_nothing_adopted_is_refused_with_the_next_step(manual: Settings, cpq: Cpq):
    with pytest.raises(CpqError, match="No policies are adopted yet") as refused:
        open_app(manual)
    assert "`cpq policy adopt`" in str(refused.value.details["hint"])
    assert "No policies are adopted yet" in cpq("policy", "check").err
    assert findings(cpq("doctor", "--json"))["policies"]["state"] == "problem"
    assert cpq("policy", "adopt").code == 0
    assert findings(cpq("doctor", "--json"))["policies"]["state"] == "ok"


def test_adopted_policies_outlive_a_broken_folder_and_a_restart(
    server: App, manual: Settings, folder: Path, clock: StillEffects
):
    (folder / "terms.yaml").write_text("validity_days: [")
    with closing(open_app(manual, clock)) as app:
        assert needed(app, clock) == ["vp_sales", "finance"]
        assert re.match(r"the folder is broken, \w{12} stays in use as adopted: terms", readiness(app)["policies"])


@pytest.mark.parametrize("files", ['{"discounts.yaml": "ladders: []"}', "{", "[1]"])
def test_a_changed_stored_set_is_refused_until_the_folder_is_adopted_again(
    server: App, manual: Settings, cpq: Cpq, files: str
):
    change_rows(server, files=files)
    with pytest.raises(CpqError, match="are refused: their files have another content now"):
        open_app(manual)
    assert findings(cpq("doctor", "--json"))["policies"]["state"] == "problem"
    assert cpq("policy", "adopt").code == 0
    open_app(manual).close()


def test_a_set_with_other_rules_under_an_adopted_hash_is_refused(server: App, manual: Settings):
    change_rows(server, files=rows(server)[0].files.replace("above: 20", "above: 80"))
    with pytest.raises(CpqError, match="are refused: their files have another content now"):
        open_app(manual)


def test_a_server_that_starts_with_a_broken_folder_uses_the_last_good_set(
    auto: Settings, folder: Path, cpq: Cpq, clock: StillEffects, caplog: pytest.LogCaptureFixture
):
    good = store_in_use(auto, clock)
    terms = (folder / "terms.yaml").read_text()
    (folder / "terms.yaml").write_text("validity_days: [")
    with closing(open_app(auto, clock)) as app:
        policy_loop(app)
        assert needed(app, clock) == ["vp_sales", "finance"]
        state = f"broken, the last good ones are in use, {good[:12]}, as a server stored it: terms.yaml, line 2"
        assert readiness(app)["policies"].startswith(state)
        assert str(_described(app)["policy_state"]).startswith(state)
        assert "policies are broken, the last good ones stay in use" in caplog.text
        to_do = findings(cpq("doctor", "--json"))["policies"]["to_do"]
        assert f"a new one uses {good[:12]}, which a server stored" in to_do
        (folder / "terms.yaml").write_text(terms.replace("validity_days: 30", "validity_days: 31"))
        clock.advance(seconds=1)
        assert app.policies.current().terms.validity_days == 31
        assert readiness(app)["policies"] == "ok"


def test_the_set_that_was_used_last_is_the_one_to_begin_with(
    auto: Settings, folder: Path, cpq: Cpq, clock: StillEffects
):
    """Also when it was stored before another one, and when the clock was set back since."""
    terms = (folder / "terms.yaml").read_text()
    first = store_in_use(auto, clock)
    (folder / "terms.yaml").write_text(terms.replace("validity_days: 30", "validity_days: 31"))
    clock.advance(hours=-1)
    assert store_in_use(auto, clock) != first
    (folder / "terms.yaml").write_text(terms)
    if auto.database_url:  # Where there may be several servers, a replaced set comes back by adoption.
        assert cpq("policy", "adopt").code == 0
    assert store_in_use(auto, clock) == first
    shutil.rmtree(folder)
    with closing(open_app(auto, clock)) as app:
        assert app.policies.current().content_hash == first


def test_a_server_stores_its_policies_once(auto: Settings, clock: StillEffects):
    with closing(open_app(auto, clock)) as app:
        assert rows(app) == []
        store_in_use(auto, clock)
        before = rows(app)
        clock.advance(hours=1)
        store_in_use(auto, clock)
        assert rows(app) == before
        assert len(before) == 1


def test_a_broken_folder_and_a_changed_stored_set_start_no_server(auto: Settings, folder: Path, clock: StillEffects):
    (folder / "terms.yaml").write_text("validity_days: [")
    with pytest.raises(CpqError, match=r"terms\.yaml, line 2"):
        open_app(auto, clock)
    shutil.copy(shipped("policies") / "terms.yaml", folder)
    store_in_use(auto, clock)
    with closing(open_app(auto, clock)) as app:
        change_rows(app, files="{}")
        (folder / "terms.yaml").write_text("validity_days: [")
        with pytest.raises(CpqError, match=r"terms\.yaml, line 2.* are refused: their files have another content"):
            open_app(auto, clock)
