"""The tables on the workers of Citus, and what `cpq doctor` says of a PostgreSQL server."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings, read_settings
from cpq.cli.doctor import State, check_server, connections, standby
from cpq.storage import distribution
from cpq.storage.schema import metadata
from cpq.storage.server_state import ServerState
from tests.support import engine
from tests.support.engine import open_app
from tests.support.postgres import Cluster

CITUS = """
CREATE TABLE pg_dist_partition (logicalrelid regclass, place text, beside text);
CREATE FUNCTION create_reference_table(name regclass) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO pg_dist_partition VALUES (name, 'copied', NULL) $$;
CREATE FUNCTION create_distributed_table(name regclass, key text, colocate_with text) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO pg_dist_partition VALUES (name, key, colocate_with) $$;
"""
"""The part of Citus that we call; no registry has Citus itself."""


@pytest.fixture
def database(cluster: Cluster, postgres_template: str) -> Iterator[Settings]:
    name = engine.copy_of(cluster, postgres_template)
    yield read_settings({}, database_url=cluster.url(name))
    cluster.drop_database(name)


def test_every_table_is_placed_after_those_that_it_refers_to():
    made = list(distribution.statements())
    assert made[:5] == [
        "SELECT create_reference_table('principal')",
        "SELECT create_reference_table('tenant')",
        "SELECT create_reference_table('token')",
        "SELECT create_distributed_table('audit_entry', 'tenant_id', colocate_with => 'none')",
        "SELECT create_distributed_table('audit_head', 'tenant_id', colocate_with => 'audit_entry')",
    ]
    assert made[-1] == "SELECT create_distributed_table('catalog_index', 'tenant_id', colocate_with => 'audit_entry')"
    order = distribution.tables()
    assert sorted(order) == sorted([*metadata.tables, "catalog_index"])
    for table in metadata.sorted_tables:
        for key in table.foreign_key_constraints:
            assert order.index(key.referred_table.name) < order.index(table.name)
            # A copied table refers to copied ones alone: Citus knows no other way.
            assert table.name not in distribution.REFERENCE or key.referred_table.name in distribution.REFERENCE
            assert {one.parent.name: one.column.name for one in key.elements}.get("tenant_id") == "tenant_id"
    for table in metadata.sorted_tables:
        assert "tenant_id" in table.primary_key.columns, "a worker can keep it unique"


def test_nothing_in_the_schema_needs_more_than_one_worker(database: Settings):
    """No trigger, sequence, deferred or exclusion constraint; every unique index has the tenant."""
    with closing(open_app(database)) as app, app.database.reading() as connection:

        def rows(statement: str) -> list[tuple[object, ...]]:
            return [tuple(row) for row in connection.exec_driver_sql(statement)]

        assert rows("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal") == []
        assert rows("SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace") == []
        assert rows("SELECT conname FROM pg_constraint WHERE condeferrable OR contype IN ('x', 't')") == []
        unique = rows("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND indexdef LIKE '%%UNIQUE%%'")
        strange = [text for (text,) in unique if not re.search(r"\(tenant_id[,)]", str(text))]
        assert [text for text in strange if "alembic_version" not in str(text)] == []
        assert len(unique) > 40


def test_tables_are_placed_once_and_again_after_an_upgrade(database: Settings):
    with closing(open_app(database)) as app:
        with pytest.raises(CpqError, match="has no Citus") as refused:
            distribution.distribute(database)
        assert refused.value.code is Code.UNAVAILABLE
        with app.database.writing(0) as connection:
            assert distribution.missing(connection) == []
            connection.exec_driver_sql(CITUS)
            assert distribution.missing(connection) == distribution.tables()
        assert distribution.distribute(database) == len(distribution.tables())
        assert distribution.distribute(database) == 0
        with app.database.writing(0) as connection:
            placed = "SELECT place, beside FROM pg_dist_partition WHERE logicalrelid = 'quote'::regclass"
            assert tuple(connection.exec_driver_sql(placed).one()) == ("tenant_id", "audit_entry")
            connection.exec_driver_sql("DELETE FROM pg_dist_partition WHERE logicalrelid = 'call_pace'::regclass")
        found = {one.subject: one for one in check_server(app)}["workers of Citus"]
        assert (found.state, found.found) == (State.PROBLEM, "lack call_pace")
        assert distribution.distribute(database) == 1
        assert "workers of Citus" not in {one.subject for one in check_server(app)}


def test_only_a_server_can_be_distributed(tmp_path):
    with pytest.raises(CpqError, match="SQLite has one machine"):
        distribution.distribute(read_settings({}, home=tmp_path))


@pytest.mark.parametrize(
    ("server", "state", "says"),
    [
        (ServerState("", True, 0, 97), State.OK, "no synchronous one"),
        (ServerState("ANY 1 (*)", True, 1, 97), State.OK, "1 synchronous, commits wait for ANY 1"),
        (ServerState("ANY 1 (*)", True, 0, 97), State.PROBLEM, "none is connected"),
        (ServerState("ANY 1 (*)", False, 1, 97), State.WARNING, "does not wait for it"),
    ],
)
def test_doctor_knows_whether_a_commit_is_on_a_second_machine(server: ServerState, state: State, says: str):
    found = standby(server)
    assert (found.state, says in found.found, bool(found.to_do)) == (state, True, state is not State.OK)


def test_doctor_compares_the_pools_of_this_machine_with_what_the_database_admits():
    server = ServerState("", True, 0, 97)
    for workers, state in ((1, State.OK), (2, State.WARNING)):
        assert connections(read_settings({}, workers=workers), server).state is state
    pooled = read_settings({}, workers=2, database_pooler="transaction")
    found = connections(pooled, server)
    assert (found.state, found.found) == (State.OK, "up to 140 by the servers of this machine, 97 admitted for all")


def test_doctor_asks_the_server_itself(database: Settings):
    with closing(open_app(database)) as app:
        found = {one.subject: one.found for one in check_server(app)}
    assert found == {
        "standby": "no synchronous one: a commit is safe on the disk of one machine",
        "connections": "up to 70 by the servers of this machine, 197 admitted for all",
    }
