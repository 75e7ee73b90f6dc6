"""One transaction per command, keys against doing it twice, and what happens when something fails: Q-11."""

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, Call, Command, audit, tokens
from cpq.app.access import LOCAL_AGENT, OPERATOR, Permission, Principal, Role
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings, read_settings
from cpq.storage.schema.tables import idempotency, price_book
from tests.support import engine as support_engine
from tests.support.engine import StillEffects, Tools, open_app
from tests.support.policies import SHIPPED
from tests.support.quotes import new_quote


def book(tx: Tx, name: str = "made") -> dict:
    """The smallest real change: one more price book."""
    book_id = tx.new_id("book-")
    values = {"tenant_id": tx.tenant_id, "id": book_id, "name": name, "is_default": False, "content_hash": ""}
    tx.connection.execute(sa.insert(price_book).values(values))
    return {"book_id": book_id, "name": name}


def command(key: str | None = None, **arguments) -> Command:
    return Command("book_create", Permission.ADMINISTER, arguments, key)


def books(app: App) -> int:
    return support_engine.row_counts(app)["price_book"]


def test_q11_the_same_key_and_request_gives_the_stored_answer_again(app: App):
    before = books(app)
    first = app.write(app.new_call(OPERATOR), command("k1", name="a"), book)
    again = app.write(app.new_call(OPERATOR), command("k1", name="a"), book)
    assert (first.replayed, again.replayed) == (False, True)
    assert again.answer == first.answer
    assert books(app) == before + 1


def test_q11_the_same_key_with_another_request_is_refused_and_names_the_difference(app: App):
    app.write(app.new_call(OPERATOR), command("k1", name="a", size=1), book)
    before = books(app)
    with pytest.raises(CpqError) as refused:
        app.write(app.new_call(OPERATOR), command("k1", name="b", size=1), book)
    assert refused.value.code is Code.CONFLICT
    assert refused.value.details["differing"] == ["/name"]
    assert books(app) == before


def test_a_write_that_waited_for_its_turn_is_judged_by_the_policies_of_its_transaction(
    store: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: StillEffects
):
    """The policies become stricter between the call and its turn, and the quote needs an approval."""
    shutil.copytree(SHIPPED, tmp_path / "policies")
    app = open_app(store.model_copy(update={"policies_dir": tmp_path / "policies"}), clock)
    tools, take_turn, discounts = Tools(app), app.database.writing, tmp_path / "policies" / "discounts.yaml"
    quote_id = new_quote(tools)

    @contextmanager
    def waiting(deadline: float) -> Iterator[sa.Connection]:
        discounts.write_text(discounts.read_text().replace("above: 5", "above: 1"))
        clock.advance(seconds=10)
        with take_turn(deadline) as connection:
            yield connection

    assert tools("quote_price", quote_id=quote_id, requested_discount_pct=3)["policy_violations"] == []
    with monkeypatch.context() as patched:
        patched.setattr(app.database, "writing", waiting)
        priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=3)
    assert [found["policy_id"] for found in priced["policy_violations"]] == ["discount_cap_sales_manager"]
    app.close()


def test_q11_the_scope_of_a_key_is_caller_and_operation(app: App):
    other = Principal("someone", "human", frozenset({Role.ADMIN}))
    before = books(app)
    app.write(app.new_call(OPERATOR), command("k1"), book)
    app.write(app.new_call(other), command("k1"), book)
    app.write(app.new_call(OPERATOR), Command("another", Permission.ADMINISTER, {}, "k1"), book)
    assert books(app) == before + 3


def test_q11_a_failed_call_releases_its_key(app: App):
    def fails(tx: Tx) -> dict:
        book(tx)
        raise CpqError(Code.VALIDATION_ERROR, "no")

    before = support_engine.row_counts(app)
    with pytest.raises(CpqError):
        app.write(app.new_call(OPERATOR), command("k1"), fails)
    assert support_engine.row_counts(app) == before
    assert not app.write(app.new_call(OPERATOR), command("k1"), book).replayed


def test_q11_a_key_is_forgotten_after_its_time(store: Settings, clock: support_engine.StillEffects):
    app = open_app(store, clock)
    app.write(app.new_call(OPERATOR), command("k1"), book)
    clock.advance(days=29)
    assert app.write(app.new_call(OPERATOR), command("k1"), book).replayed
    clock.advance(days=2)
    assert not app.write(app.new_call(OPERATOR), command("k1"), book).replayed
    clock.advance(days=31)
    support_engine.Tools(app)("catalog_search", query="air")
    app.flush_audit()
    assert support_engine.row_counts(app)["idempotency"] == 0
    app.close()


def test_q11_concurrent_twins_do_the_work_once_and_all_get_its_answer(app: App):
    started = threading.Barrier(8)
    before = books(app)

    def twin(_: int):
        started.wait()
        return app.write(app.new_call(OPERATOR), command("twin"), book)

    with support_engine.patient(), ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(twin, range(8)))
    assert books(app) == before + 1
    assert len({outcome.answer["book_id"] for outcome in outcomes}) == 1
    assert sum(not outcome.replayed for outcome in outcomes) == 1


def test_writers_of_many_threads_all_get_their_turn(app: App):
    before = books(app)
    with support_engine.patient(), ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: app.write(app.new_call(OPERATOR), command(f"k{n}"), book), range(160)))
    assert books(app) == before + 160


def test_a_transaction_that_lost_a_race_is_run_again_as_a_whole(app: App):
    attempts = []

    def loses_twice(tx: Tx) -> dict:
        attempts.append(1)
        answer = book(tx)
        if len(attempts) < 3:
            raise sa.exc.OperationalError("x", {}, _LostError("database is locked"))
        return answer

    before = books(app)
    app.write(app.new_call(OPERATOR), command(), loses_twice)
    assert (len(attempts), books(app)) == (3, before + 1)


def test_a_transaction_that_always_loses_ends_with_unavailable(app: App, monkeypatch: pytest.MonkeyPatch):
    def always_loses(tx: Tx) -> dict:
        book(tx)
        raise sa.exc.OperationalError("x", {}, _LostError("database is locked"))

    monkeypatch.setattr(app.effects, "sleep", lambda _seconds: None)
    before = books(app)
    with pytest.raises(CpqError) as refused:
        app.write(app.new_call(OPERATOR), command(), always_loses)
    assert refused.value.code is Code.UNAVAILABLE
    assert books(app) == before


class _LostError(Exception):
    """Looks like a driver's error whose transaction may be run again."""


def test_a_lost_acknowledgement_of_the_commit_does_not_do_the_work_twice(app: App, monkeypatch: pytest.MonkeyPatch):
    """The commit reaches the database, its answer does not reach us: the retry finds the call's own key."""
    lost: list[int] = []
    writing = app.database.writing

    def losing(deadline: float):
        return _LosesFirstAnswer(writing(deadline), lost)

    monkeypatch.setattr(app.database, "writing", losing)
    before = books(app)
    outcome = app.write(app.new_call(OPERATOR), command(), book)
    assert lost
    assert outcome.answer["book_id"]
    assert not outcome.replayed, "the caller asked once"
    assert books(app) == before + 1
    app.flush_audit()
    with app.database.reading() as connection:
        entries = [entry.operation for entry in audit.entries(connection, "main", newest=1000)]
    assert entries.count("book_create") == 1


class _LosesFirstAnswer:
    def __init__(self, inner, lost: list) -> None:
        self._inner, self._lost = inner, lost

    def __enter__(self):
        return self._inner.__enter__()

    def __exit__(self, *problem):
        result = self._inner.__exit__(*problem)
        if problem[0] is None and not self._lost:
            self._lost.append(1)
            raise sa.exc.OperationalError("COMMIT", {}, _LostError("the connection is closed"))
        return result


def test_writes_go_on_after_a_commit_that_failed(app: App):
    engine = app.database._writer

    def fail(_connection: sa.Connection) -> None:
        raise sa.exc.OperationalError("COMMIT", None, Exception("disk I/O error"))

    sa.event.listen(engine, "commit", fail)
    with pytest.raises(CpqError) as failed:
        app.write(app.new_call(OPERATOR), command(), book)
    assert failed.value.code is Code.UNAVAILABLE
    sa.event.remove(engine, "commit", fail)
    before = books(app)
    app.write(app.new_call(OPERATOR), command(), book)
    assert books(app) == before + 1


def test_a_call_whose_change_is_kept_can_no_longer_be_cancelled(app: App):
    call = app.new_call(OPERATOR)
    app.write(call, command(), book)
    assert not call.cancel(), "a TIMEOUT would say that nothing changed"


def test_one_call_may_write_more_than_once(app: App):
    call, before = app.new_call(OPERATOR), books(app)
    answers = [app.write(call, command(), book).answer["book_id"] for _ in range(2)]
    assert len(set(answers)) == 2
    assert books(app) == before + 2


def test_a_rival_that_was_first_is_a_conflict_and_not_a_fault(app: App):
    def takes_a_known_id(tx: Tx) -> dict:
        values = {"tenant_id": tx.tenant_id, "id": "list", "name": "x", "is_default": False, "content_hash": ""}
        tx.connection.execute(sa.insert(price_book).values(values))
        return {}

    with pytest.raises(CpqError) as refused:
        app.write(app.new_call(OPERATOR), command(), takes_a_known_id)
    assert refused.value.code is Code.CONFLICT


def test_a_call_that_is_cancelled_before_its_commit_changes_nothing(app: App):
    call = app.new_call(OPERATOR)

    def work(tx: Tx) -> dict:
        answer = book(tx)
        assert call.cancel()
        return answer

    before = books(app)
    with pytest.raises(CpqError) as refused:
        app.write(call, command(), work)
    assert refused.value.code is Code.TIMEOUT
    assert books(app) == before


def test_a_call_that_is_committing_can_no_longer_be_cancelled():
    call = Call(LOCAL_AGENT, "tr-1")
    call.enter_commit()
    assert not call.cancel()
    call.check()


def test_a_read_cannot_write(app: App):
    before = books(app)
    with pytest.raises(CpqError, match="not written"):
        app.read(app.new_call(OPERATOR), command(), book)
    assert books(app) == before


def test_a_caller_without_the_permission_is_refused_and_nothing_runs(app: App):
    before = support_engine.row_counts(app)
    with pytest.raises(CpqError) as refused:
        app.write(app.new_call(LOCAL_AGENT), command("k"), book)
    assert refused.value.code is Code.FORBIDDEN
    assert support_engine.row_counts(app) == before


def test_a_token_is_kept_only_as_a_hash_and_opens_until_revoked(store: Settings, clock: support_engine.StillEffects):
    app = open_app(store, clock)
    secrets = []

    def create(tx: Tx) -> dict:
        summary, secret = tokens.create_token(tx, name="robo", role="agent", days=10)
        secrets.append(secret)
        return {"id": summary.id}

    token_id = app.write(app.new_call(OPERATOR), Command("token_create", Permission.ADMINISTER), create).answer["id"]

    def opens() -> Principal | None:
        return app.identify(secrets[0])

    assert opens() == Principal("robo", "agent", frozenset({Role.AGENT}))
    clock.advance(days=11)
    assert opens() is None
    clock.advance(days=-11)
    revoke = Command("token_revoke", Permission.ADMINISTER)

    def shut(tx: Tx) -> dict:
        tokens.revoke_token(tx, token_id)
        return {}

    app.write(app.new_call(OPERATOR), revoke, shut)
    assert opens() is None
    with app.database.reading() as connection:
        stored = str(connection.execute(sa.select(idempotency.c.answer)).all())
        stored += str(connection.execute(sa.text("SELECT * FROM token")).all())
    assert secrets[0].split("_", 2)[2] not in stored
    app.close()


@pytest.mark.parametrize(
    "presented", ["", "qw", "qw_", "qw_tok-x_", "qw_tok-x_y", "x" * 10_000, "qw__", "\u00e9_\u00e9_\u00e9"]
)
def test_a_made_up_token_opens_nothing(app: App, presented: str):
    assert app.identify(presented) is None


def test_postgres_a_commit_that_the_standby_did_not_confirm_is_reported(cluster, postgres_template: str):
    """A cancelled wait for a synchronous standby answers COMMIT with success and the warning 01000.

    A deferred trigger stands in for the standby: its warning comes at COMMIT. One that came earlier says nothing.
    """
    app = open_app(read_settings({}, database_url=cluster.url(support_engine.copy_of(cluster, postgres_template))))

    warn = "RAISE WARNING 'not replicated' USING ERRCODE = '01000';"

    def warned_early(tx: Tx) -> dict:
        tx.connection.execute(sa.text(f"DO $$ BEGIN {warn} END $$"))
        return book(tx)

    def warned(tx: Tx) -> dict:
        tx.connection.execute(
            sa.text(
                f"CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {warn} RETURN NULL; END $$;"
                "CREATE CONSTRAINT TRIGGER warn AFTER INSERT ON price_book DEFERRABLE INITIALLY DEFERRED "
                "FOR EACH ROW EXECUTE FUNCTION warn()"
            )
        )
        return book(tx)

    app.write(app.new_call(OPERATOR), command("k0"), warned_early)
    with pytest.raises(CpqError) as refused:
        app.write(app.new_call(OPERATOR), command("k1"), warned)
    assert refused.value.code is Code.UNAVAILABLE
    assert app.write(app.new_call(OPERATOR), command("k1"), book).replayed
    app.close()


@pytest.mark.parametrize(("said", "seconds"), [("&connect_timeout=60", "60"), ("", "3")])
def test_postgres_the_address_may_say_how_long_to_wait_for_a_connection(
    cluster, postgres_template: str, said: str, seconds: str
):
    url = cluster.url(support_engine.copy_of(cluster, postgres_template)).partition("&connect_timeout")[0]
    app = open_app(read_settings({}, database_url=url + said))
    with app.database.reading() as connection:
        driver: Any = connection.connection.driver_connection
        assert driver.info.get_parameters()["connect_timeout"] == seconds
    app.close()


def test_a_role_ends_with_its_token(app: App):
    made = []

    def create(role: str):
        def work(tx: Tx) -> dict:
            made.append(tokens.create_token(tx, name="dana", role=role))
            return {}

        app.write(app.new_call(OPERATOR), Command("token_create", Permission.ADMINISTER), work)

    create("sales_rep")
    create("admin")
    first = app.identify(made[0][1])
    assert first
    assert first.roles == {Role.SALES_REP}


@pytest.mark.parametrize("name", ["mcp", "operator", "anonymous"])
def test_the_names_of_built_in_callers_cannot_be_taken(app: App, name: str):
    with pytest.raises(CpqError, match="built-in"):
        app.write(
            app.new_call(OPERATOR),
            Command("token_create", Permission.ADMINISTER),
            lambda tx: {"id": tokens.create_token(tx, name=name, role="agent")[0].id},
        )
