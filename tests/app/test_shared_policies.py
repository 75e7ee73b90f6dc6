"""Servers of one PostgreSQL database, each with a folder of policies of its own: never do two decide differently."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from cpq.app import App, Command
from cpq.app.access import OPERATOR, Permission
from cpq.app.health import policy_loop, readiness
from cpq.app.policy_files import load_with_texts
from cpq.app.policy_store import adopt
from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings, read_settings, shipped
from cpq.storage.schema.tables import policy_set
from tests.support import engine
from tests.support.engine import StillEffects, Tools, open_app
from tests.support.postgres import Cluster
from tests.support.quotes import new_quote

NEW = {"account_id": "acct_acme_001", "line_items": [{"product_id": "prod_pro_v2", "quantity": 1}]}
Node = Callable[[Path], App]


@pytest.fixture
def database(cluster: Cluster, postgres_template: str) -> Iterator[Settings]:
    name = engine.copy_of(cluster, postgres_template)
    yield read_settings({}, database_url=cluster.url(name))
    cluster.drop_database(name)


@pytest.fixture
def node(database: Settings, clock: StillEffects) -> Iterator[Node]:
    """Starts a server with this folder."""
    with ExitStack() as stack:

        def start(folder: Path) -> App:
            app = stack.enter_context(closing(open_app(database.model_copy(update={"policies_dir": folder}), clock)))
            policy_loop(app)
            return app

        yield start


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return shutil.copytree(shipped("policies"), tmp_path / "old")


@pytest.fixture
def new(old: Path, tmp_path: Path) -> Path:
    """Other rules: a quote is valid for 31 days."""
    made = shutil.copytree(old, tmp_path / "new")
    change(made, "validity_days: 30", "validity_days: 31")
    return made


def change(folder: Path, before: str, after: str) -> None:
    text = (folder / "terms.yaml").read_text()
    assert before in text
    (folder / "terms.yaml").write_text(text.replace(before, after))


def decides(app: App, clock: StillEffects) -> bool:
    """A second later, and whether `/readyz` says the same."""
    clock.advance(seconds=1)
    made = Tools(app).reply("quote_create", NEW)
    is_deciding = not made.is_error
    assert is_deciding or made.body["error"]["code"] == "UNAVAILABLE"
    assert is_deciding is ("deciding" not in readiness(app))
    return is_deciding


def test_a_server_with_other_files_than_those_in_force_does_not_decide(
    node: Node, old: Path, new: Path, clock: StillEffects
):
    first = node(old)
    quote_id = new_quote(Tools(first))
    second = node(new)
    assert (decides(first, clock), decides(second, clock)) == (False, True)
    before, after = first.policies.current().content_hash[:12], second.policies.current().content_hash[:12]
    says = f"This server does not decide: the policies {after} are in force, and it has {before}."
    assert readiness(first)["deciding"] == says
    assert readiness(first)["policies"].startswith(says)
    for name, given in (
        ("quote_price", {}),
        ("quote_send", {"expected_version": 1}),
        ("approval_preview", {}),
        ("approval_request", {"justification": "A large customer."}),
    ):
        refused = Tools(first).error(name, quote_id=quote_id, **given)
        assert (refused["code"], refused["message"], refused["details"]["retry_after_seconds"]) == (
            "UNAVAILABLE",
            says,
            30,
        )
        assert "`cpq policy adopt`" in refused["details"]["hint"]
    shutil.copytree(new, old, dirs_exist_ok=True)
    assert (decides(first, clock), decides(second, clock)) == (True, True)


def test_a_change_on_a_running_server_comes_into_force_for_all(node: Node, old: Path, new: Path, clock: StillEffects):
    first, second = node(old), node(old)
    assert (decides(first, clock), decides(second, clock)) == (True, True)
    shutil.copy(new / "terms.yaml", old)
    changed = shutil.copytree(new, old.parent / "third")
    change(changed, "validity_days: 31", "validity_days: 32")
    assert (decides(first, clock), decides(second, clock)) == (True, True)
    third = node(changed)
    assert [decides(app, clock) for app in (first, second, third)] == [False, False, True]
    change(changed, "validity_days: 32", "validity_days: 31")
    assert [decides(app, clock) for app in (third, first, second)] == [True, True, True]


def test_a_replaced_set_comes_back_by_adoption_and_not_by_the_start_of_an_old_server(
    node: Node, old: Path, new: Path, clock: StillEffects
):
    node(old)
    second = node(new)
    again = node(old)
    assert (decides(again, clock), decides(second, clock)) == (False, True)
    loaded = load_with_texts(old)
    command = Command("policy_adopt", Permission.ADMINISTER)
    for made in (True, False):
        clock.advance(seconds=1)
        answer = again.write(again.new_call(OPERATOR), command, lambda tx: {"is_new": adopt(tx, loaded)}).answer
        assert answer == {"is_new": made}
    assert (decides(again, clock), decides(second, clock)) == (True, False)


def test_a_command_compares_its_folder_and_brings_nothing_into_use(
    node: Node, database: Settings, old: Path, new: Path, clock: StillEffects
):
    server = node(old)
    with closing(open_app(database.model_copy(update={"policies_dir": new}), clock)) as command:
        assert (decides(command, clock), decides(server, clock)) == (False, True)


def test_a_server_that_cannot_read_what_was_adopted_does_not_decide_by_what_was_before(
    database: Settings, old: Path, new: Path, clock: StillEffects
):
    manual = database.model_copy(update={"policies_dir": old, "policies_adopt": "manual"})
    with closing(open_app(database, clock)) as operator:
        command = Command("policy_adopt", Permission.ADMINISTER)

        def adopted(folder: Path) -> None:
            loaded = load_with_texts(folder)
            operator.write(operator.new_call(OPERATOR), command, lambda tx: {"is_new": adopt(tx, loaded)})

        adopted(old)
        with closing(open_app(manual, clock)) as server:
            assert decides(server, clock)
            adopted(new)
            after = load_with_texts(new).policies.content_hash
            with operator.database.writing(0) as connection:
                connection.execute(sa.update(policy_set).where(policy_set.c.content_hash == after).values(files="{}"))
            assert not decides(server, clock)
            with pytest.raises(CpqError, match=f"the policies {after[:12]} are in force") as refused:
                server.policies.in_force()()
            assert refused.value.code is Code.UNAVAILABLE
