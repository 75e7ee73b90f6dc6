"""The SQL for a PostgreSQL role that works with the database, and cannot change or remove what the audit recorded."""

from __future__ import annotations

import re

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.storage.schema import tables

_ROLE = re.compile(r"[a-z_][a-z0-9_]{0,62}")

SEALED = ("seq", "hash")
"""The columns of an entry that the sealer fills, once."""


def is_role_name(text: str) -> bool:
    """Whether this can be the name of a role without quotes: the SQL goes to a server as it is."""
    return _ROLE.fullmatch(text) is not None


def grants(role: str) -> str:
    """The script for the owner of the tables; it can run again, and does after each upgrade."""
    assert is_role_name(role)
    return _SCRIPT.format(
        role=role, entry=tables.audit_entry.name, head=tables.audit_head.name, columns=", ".join(SEALED)
    )


def may_change_entries(connection: Connection) -> bool:
    """Whether the role of this PostgreSQL connection can change or remove audit entries."""
    entry = tables.audit_entry.name
    rights = [f"has_column_privilege('{entry}', '{column.name}', 'UPDATE')" for column in tables.audit_entry.c]
    rights = [one for one, column in zip(rights, tables.audit_entry.c, strict=True) if column.name not in SEALED]
    rights += [f"has_table_privilege('{entry}', '{right}')" for right in ("DELETE", "TRUNCATE")]
    return bool(connection.scalar(sa.text(f"SELECT {' OR '.join(rights)}")))


_SCRIPT = """\
-- Rights of "{role}": everything the engine does, except changing or removing audit entries.
-- Run it as the owner of the tables, in their database, after `cpq init` and after each upgrade.
BEGIN;
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
    CREATE ROLE "{role}" LOGIN;
  END IF;
  IF (SELECT pg_has_role('{role}', relowner, 'MEMBER') FROM pg_class WHERE oid = 'public.{entry}'::regclass) THEN
    RAISE EXCEPTION 'role {role} is a superuser or has the rights of the owner of the tables: choose another role';
  END IF;
END $$;
GRANT USAGE ON SCHEMA public TO "{role}";
REVOKE CREATE ON SCHEMA public FROM PUBLIC, "{role}";
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "{role}";
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO "{role}";
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO "{role}";
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO "{role}";
REVOKE ALL ON {entry}, {head} FROM PUBLIC, "{role}";
GRANT SELECT, INSERT, UPDATE ({columns}) ON {entry} TO "{role}";
GRANT SELECT, INSERT, UPDATE ON {head} TO "{role}";
CREATE OR REPLACE FUNCTION refuse_second_seal() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION 'audit entry % is sealed', OLD.seq USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE OR REPLACE TRIGGER sealed_once BEFORE UPDATE ON {entry}
  FOR EACH ROW WHEN (OLD.seq IS NOT NULL) EXECUTE FUNCTION refuse_second_seal();
COMMIT;
"""
