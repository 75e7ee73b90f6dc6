"""Brings a database to the newest schema, or back, with Alembic; the same migrations run on both databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlalchemy.engine import Connection

from cpq.base.clock import Effects
from cpq.base.late_modules import LateModule
from cpq.base.settings import Settings, shipped
from cpq.storage.engine import migrating_alone, migration_engine

if TYPE_CHECKING:
    from alembic import command
    from alembic import config as alembic_settings
    from alembic.config import Config
else:
    command = LateModule("alembic.command")
    alembic_settings = LateModule("alembic.config")


def upgrade(settings: Settings, target: str = "head") -> None:
    """Move the schema up to `target` in one transaction; on any failure nothing has changed."""
    _move(settings, lambda config: command.upgrade(config, target))


def downgrade(settings: Settings, target: str) -> None:
    """Move the schema back down to `target` (`base`: no tables at all)."""
    _move(settings, lambda config: command.downgrade(config, target))


def knows(version: str) -> bool:
    """Whether there is a migration of this number."""
    return any(shipped("migrations").joinpath("versions").glob(f"{version}_*.py"))


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
    finally:
        engine.dispose()


def _check_foreign_keys(connection: Connection) -> None:
    """Check that no row lost its parent, because foreign keys are off while SQLite migrates."""
    if connection.dialect.name == "sqlite":
        orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        assert not orphans, f"the migration orphaned rows: {orphans[:3]}"
