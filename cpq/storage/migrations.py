"""Brings a database to the newest schema, or back, with Alembic; the same migrations run on both databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.base.clock import Effects
from cpq.base.late_modules import LateModule
from cpq.base.settings import Settings, shipped
from cpq.storage.engine import CODE_FROM, migrating_alone, migration_engine

if TYPE_CHECKING:
    from alembic import command
    from alembic import config as alembic_settings
    from alembic import script as alembic_script
    from alembic.config import Config
else:
    command = LateModule("alembic.command")
    alembic_settings = LateModule("alembic.config")
    alembic_script = LateModule("alembic.script")


def upgrade(settings: Settings, target: str = "head") -> None:
    """Move the schema up to `target` in one transaction; on any failure nothing has changed."""
    _move(settings, lambda config: command.upgrade(config, target))


def downgrade(settings: Settings, target: str) -> None:
    """Move the schema back down to `target` (`base`: no tables at all)."""
    _move(settings, lambda config: command.downgrade(config, target))


def knows(version: str) -> bool:
    """Whether there is a migration of this number."""
    return any(shipped("migrations").joinpath("versions").glob(f"{version}_*.py"))


def oldest_code(config: Config, version: str) -> str:
    """The oldest code that may use a database at this migration.

    A migration that says `older_code_goes_on = True` only adds what older code leaves alone (expand); one that moves
    values (backfill) or takes something away (contract) says nothing, and then the code must know it.
    """
    script = alembic_script.ScriptDirectory.from_config(config)
    found = script.get_revision(version)
    while found.down_revision and getattr(found.module, "older_code_goes_on", False):
        found = script.get_revision(str(found.down_revision))
    return str(found.revision)


def alembic_config() -> Config:
    config = alembic_settings.Config()
    config.set_main_option("script_location", str(shipped("migrations")))
    return config


def _move(settings: Settings, move: Callable[[Config], None]) -> None:
    engine = migration_engine(settings)
    try:
        with migrating_alone(settings, Effects()), engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
                connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(5821)")
            config = alembic_config()
            config.attributes["connection"] = connection
            move(config)
            _check_foreign_keys(connection)
            _say_who_may_go_on(connection, config)
    finally:
        engine.dispose()


def _say_who_may_go_on(connection: Connection, config: Config) -> None:
    """Note in a PostgreSQL database which code may use it: servers are upgraded one after the other."""
    if connection.dialect.name != "postgresql":
        return
    version = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    if version is not None:
        note = f"{CODE_FROM}{oldest_code(config, version)}"
        connection.exec_driver_sql(f"COMMENT ON TABLE alembic_version IS '{note}'")


def _check_foreign_keys(connection: Connection) -> None:
    """Check that no row lost its parent, because foreign keys are off while SQLite migrates."""
    if connection.dialect.name == "sqlite":
        orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        assert not orphans, f"the migration orphaned rows: {orphans[:3]}"
