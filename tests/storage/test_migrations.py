"""The schema moves up and down on both databases, with data in place."""

import fcntl
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from cpq.app import App
from cpq.app.health import readiness
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.base.settings import Settings, read_settings
from cpq.services.backups.snapshot import save
from cpq.storage import migrations
from cpq.storage.engine import migration_engine
from cpq.storage.schema import SCHEMA_VERSION, metadata
from tests.support import engine as support_engine
from tests.support.engine import open_app


def test_the_code_knows_the_newest_migration():
    assert ScriptDirectory.from_config(migrations.alembic_config()).get_current_head() == SCHEMA_VERSION


def test_the_migrations_make_exactly_the_tables_of_the_schema(empty_store: Settings):
    migrations.upgrade(empty_store)
    engine = migration_engine(empty_store)
    with engine.connect() as connection:
        own = ("catalog_index", "search_key")
        context = MigrationContext.configure(
            connection, opts={"include_name": lambda name, kind, _: kind != "table" or not name.startswith(own)}
        )
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_upgrading_twice_changes_nothing(store: Settings):
    app = open_app(store)
    before = support_engine.row_counts(app)
    app.close()
    migrations.upgrade(store)
    app = open_app(store)
    assert support_engine.row_counts(app) == before
    app.close()


def test_a_migration_waits_for_its_turn_among_the_writers(tmp_path: Path):
    """The same gate as theirs: past it SQLite's own waiting starves one of them, or gives up after ten seconds."""
    settings = read_settings({}, home=tmp_path)
    migrations.upgrade(settings)
    app, migrated = open_app(settings), threading.Event()

    def migrate() -> None:
        migrations.upgrade(settings)
        migrated.set()

    other = threading.Thread(target=migrate)

    def work(_tx: Tx) -> dict[str, object]:
        other.start()
        looks = 0
        while not _is_locked(tmp_path / "quotewright.db.next"):
            looks += 1
            assert looks < 6_000, "the migration never came to the gate"
            time.sleep(0.01)
        assert not migrated.is_set()
        return {}

    support_engine.write(app, work)
    other.join()
    assert migrated.is_set()
    app.close()


def _is_locked(path: Path) -> bool:
    """Whether somebody stands at the gate, to be the next writer."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_down_to_nothing_and_up_again_gives_an_empty_store_that_works(store: Settings):
    migrations.downgrade(store, "base")
    engine = migration_engine(store)
    with engine.connect() as connection:
        left = set(sa.inspect(connection).get_table_names()) - {"alembic_version"}
    engine.dispose()
    assert {name for name in left if not name.startswith("sqlite_")} == set()
    support_engine.fill_with_sample(store)
    app = open_app(store)
    assert support_engine.Tools(app)("catalog_get", product_id="prod_pro_v2")["sku"] == "PLAN-PRO-001"
    app.close()


def test_a_server_without_tables_says_what_to_run(empty_store: Settings, clock: support_engine.StillEffects):
    app = App(empty_store, clock)
    assert app.schema_version() is None
    app.close()
    with pytest.raises(CpqError) as refused:
        open_app(empty_store)
    assert str(refused.value.details["hint"]).startswith("Run `cpq init`")


def _shape(settings: Settings) -> dict[str, Any]:
    """Every column, key and index of a store by its name, each as text."""
    engine = migration_engine(settings)
    with engine.connect() as connection:
        look = sa.inspect(connection)
        found: dict[str, Any] = {}
        for name in look.get_table_names():
            found[name] = {"columns": {one["name"]: str(one) for one in look.get_columns(name)}}
            rules = [*look.get_foreign_keys(name), *look.get_check_constraints(name), *look.get_indexes(name)]
            found[name]["rules"] = {str(one) for one in [*rules, look.get_pk_constraint(name)]}
    engine.dispose()
    return found


@pytest.mark.parametrize("empty_store", ["postgresql"], indirect=True)
def test_a_migration_that_lets_older_code_go_on_only_adds(empty_store: Settings):
    """What older code does not know may be there: new tables, and columns that it need not fill."""
    script = ScriptDirectory.from_config(migrations.alembic_config())
    marked = [one for one in script.walk_revisions() if getattr(one.module, "older_code_goes_on", False)]
    for one in reversed(marked):
        migrations.upgrade(empty_store, str(one.down_revision))
        before = _shape(empty_store)
        migrations.upgrade(empty_store, one.revision)
        after = _shape(empty_store)
        for name, table in before.items():
            assert after[name]["rules"] == table["rules"], (one.revision, name)
            new = after[name]["columns"].items() - table["columns"].items()
            assert table["columns"].items() <= after[name]["columns"].items(), (one.revision, name)
            assert all("'nullable': True" in text for _, text in new), (one.revision, name)


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
@pytest.mark.parametrize("oldest", [SCHEMA_VERSION, "9998", None], ids=["goes-on", "too-old", "nothing-noted"])
def test_servers_go_on_while_the_others_are_upgraded(store: Settings, tmp_path: Path, oldest: str | None):
    """The database is at a migration that this code does not know, and says which code may use it."""
    app = open_app(store)
    with app.database.writing(0) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        note = f"'code from {oldest}'" if oldest else "NULL"
        connection.exec_driver_sql(f"COMMENT ON TABLE alembic_version IS {note}")
    if oldest == SCHEMA_VERSION:
        assert readiness(app)["migrations"] == "ok"
        open_app(store).close()
        with pytest.raises(CpqError, match="newer than this version knows"):  # Its backup would lack what is new.
            save(app, tmp_path / "x.zip", lambda _done, _total: None)
    else:
        assert readiness(app)["migrations"] == f"at 9999, needs {SCHEMA_VERSION}: install the newer version"
        with pytest.raises(CpqError, match="newer than this version knows"):
            open_app(store)
    app.close()


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_a_migrated_database_says_which_code_may_use_it(store: Settings):
    app = open_app(store)
    oldest = migrations.oldest_code(migrations.alembic_config(), SCHEMA_VERSION)
    assert app.database.oldest_code() == oldest <= SCHEMA_VERSION
    app.close()


def test_every_key_starts_with_the_tenant():
    for table in metadata.sorted_tables:
        assert next(iter(table.primary_key.columns)).name == "tenant_id", table.name
        for constraint in table.constraints:
            if isinstance(constraint, sa.UniqueConstraint | sa.ForeignKeyConstraint):
                assert next(iter(constraint.columns)).name == "tenant_id", (table.name, constraint.name)
        for index in table.indexes:
            assert next(iter(index.columns)).name == "tenant_id", index.name
