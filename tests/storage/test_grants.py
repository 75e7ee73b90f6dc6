"""On PostgreSQL servers connect as a role that adds audit entries, and cannot change or remove them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from cpq.app import App, audit
from cpq.base.settings import Settings, read_settings
from cpq.cli import doctor
from cpq.storage.grants import grants, is_role_name
from tests.support import postgres
from tests.support.approvals import ask, decide, person, priced_quote
from tests.support.engine import Tools, copy_of, open_app, unique_name
from tests.support.quotes import sent_quote

Role = tuple[Settings, str]
"""The settings of a server that connects as the role, and the role."""


@pytest.fixture
def owned(cluster: postgres.Cluster, postgres_template: str, tmp_path: Path) -> Iterator[Settings]:
    """The settings of the owner of the tables."""
    name = copy_of(cluster, postgres_template)
    yield read_settings({}, home=tmp_path, database_url=cluster.url(name))
    cluster.drop_database(name)


@pytest.fixture
def role(owned: Settings) -> Iterator[Role]:
    name = unique_name("server")
    as_owner(owned, grants(name))
    as_owner(owned, grants(name))  # As after an upgrade.
    yield replace(owned, database_url=owned.database_url.replace(f"//{postgres.OWNER}@", f"//{name}@")), name
    as_owner(owned, f'DROP OWNED BY "{name}"; DROP ROLE "{name}"')


def as_owner(store: Settings, script: str) -> None:
    with connected(store) as connection:
        connection.execute(sql.SQL(script))


def connected(store: Settings) -> psycopg.Connection:
    url = sa.make_url(store.database_url).set(drivername="postgresql")
    return psycopg.connect(url.render_as_string(hide_password=False))


@pytest.fixture
def served(role: Role) -> Iterator[App]:
    """The engine of a server that connects as the role."""
    app = open_app(role[0])
    yield app
    app.close()


def test_a_server_without_rights_to_the_record_does_whole_deals(served: App):
    tools = Tools(served)
    quote_id = priced_quote(tools)
    decide(person(served, "ann", "sales_manager"), ask(tools, quote_id))
    tools("quote_send", quote_id=quote_id, expected_version=1)
    tools("quote_pdf", quote_id=quote_id)
    tools.seller("quote_accept", quote_id=quote_id, expected_version=1)
    served.flush_audit()
    served.database.try_write(served.effects.monotonic() + 10)
    with served.database.reading() as connection:
        report = audit.verify(connection, "main")
    assert (report.broken_at, report.unsealed) == (None, 0)
    assert report.sealed > 6


REFUSED = [
    "UPDATE audit_entry SET caller = 'human:nobody'",
    "UPDATE audit_entry SET state = NULL",
    "UPDATE audit_entry SET seq = seq + 1000",
    "UPDATE audit_entry SET seq = NULL, hash = NULL",
    "DELETE FROM audit_entry",
    "TRUNCATE audit_entry",
    "DELETE FROM audit_head",
    "TRUNCATE audit_head",
    "DROP TABLE audit_entry",
    "DROP TRIGGER sealed_once ON audit_entry",
    "ALTER TABLE audit_entry DISABLE TRIGGER ALL",
    "CREATE FUNCTION public.refuse_second_seal(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
]


def test_the_server_refuses_every_change_of_the_record(role: Role, served: App):
    sent_quote(Tools(served))
    served.flush_audit()
    before = rows(role[0])
    for statement in REFUSED:
        with connected(role[0]) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)
    assert rows(role[0]) == before
    with connected(role[0]) as connection:
        assert connection.execute("UPDATE quote SET owner = owner").rowcount == 1, "other tables are as ever"


def rows(store: Settings) -> list[tuple[object, ...]]:
    with connected(store) as connection:
        return connection.execute("SELECT * FROM audit_entry ORDER BY id").fetchall()


def test_a_table_of_a_later_migration_can_be_used(role: Role, owned: Settings):
    as_owner(owned, "CREATE TABLE later (id serial PRIMARY KEY, name text)")
    with connected(role[0]) as connection:
        connection.execute("INSERT INTO later (name) VALUES ('x')")
        assert connection.execute("DELETE FROM later").rowcount == 1


def test_the_owner_of_the_tables_is_not_taken_for_the_role(owned: Settings):
    with pytest.raises(psycopg.errors.RaiseException, match="choose another role"):
        as_owner(owned, grants(postgres.OWNER))


def test_doctor_says_whether_the_role_could_rewrite_the_record(role: Role, owned: Settings):
    found = []
    for settings in (role[0], owned):
        app = open_app(settings)
        [told] = [one for one in doctor.check_record(app) if one.subject == "audit role"]
        found.append(told.found)
        app.close()
    assert found[0] == "the database role adds audit entries, and cannot change them"
    assert found[1].startswith("the database role may change audit entries")


@pytest.mark.parametrize("name", ['x"; DROP TABLE quote; --', "x'y", "", "Robert", "a b", "a" * 64, "x\n"])
def test_a_name_that_is_no_role_makes_no_sql(name: str):
    assert not is_role_name(name)
