"""The engine behind the commands: settings from the options, an opened `App`, and calls in the operator's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import sqlalchemy as sa

from cpq import logs, migrating
from cpq.access import OPERATOR, Permission
from cpq.app import Answer, App, Command
from cpq.cli.options import Options
from cpq.config import Settings, read_settings
from cpq.db import Tx
from cpq.errors import Code, CpqError

Work = Callable[[Tx], Answer]


def settings_of(options: Options) -> Settings:
    """The settings, with what was said on the command line; logging is set up by them."""
    home = options.home.expanduser() if options.home else None
    settings = read_settings(home=home, database_url=options.database_url)
    options.debug = options.debug or settings.log_level == "DEBUG"
    # At a terminal the answer is the message: what a server logs as information would stand in its way.
    level = "ERROR" if settings.log_level == "ERROR" else "WARNING"
    logs.configure("DEBUG" if options.debug else level, settings.log_format)
    return settings


@contextmanager
def opened(options: Options) -> Iterator[App]:
    """The engine on a ready database; CpqError with the next step when it is not."""
    settings = settings_of(options)
    if not database_exists(settings):
        raise CpqError(Code.UNAVAILABLE, f"There is no database at {database_name(settings)}.", hint="Run `cpq init`.")
    with started(settings) as app:
        app.require_schema()
        yield app


@contextmanager
def started(settings: Settings) -> Iterator[App]:
    """The engine on a database that answers, whatever its schema."""
    try:
        app = App(settings)
    except (OSError, sa.exc.ArgumentError, sa.exc.NoSuchModuleError) as error:
        raise _unusable(settings, error) from error
    try:
        _require_answer(app)
        yield app
    finally:
        app.close()


def read(app: App, name: str, work: Work, *, needs: Permission = Permission.READ, **arguments: object) -> Answer:
    return app.read(app.new_call(OPERATOR), Command(name, needs, arguments), work)


def write(app: App, name: str, work: Work, arguments: Mapping[str, object], subject: str | None = None) -> Answer:
    """A change only the operator makes: everything the command line writes needs the right to administer."""
    command = Command(name, Permission.ADMINISTER, arguments, subject=subject)
    return app.write(app.new_call(OPERATOR), command, work).answer


def migrate(settings: Settings) -> str | None:
    """Bring the database to the newest schema; the migration it was at before, None when it is new."""
    before = None
    if database_exists(settings):
        with started(settings) as app:
            before = app.schema_version()
    try:
        migrating.upgrade(settings)
    except (sa.exc.OperationalError, OSError) as error:
        raise _unusable(settings, error) from error
    return before


def database_exists(settings: Settings) -> bool:
    """False when asking would create an empty file; a server is always worth asking."""
    return not settings.is_sqlite or settings.sqlite_path.is_file()


def database_name(settings: Settings) -> str:
    """For people: the file, or the address without the password."""
    if settings.is_sqlite:
        return str(settings.sqlite_path)
    return sa.engine.make_url(settings.database_url).render_as_string(hide_password=True)


def _require_answer(app: App) -> None:
    try:
        with app.database.reading():
            pass
    except sa.exc.DBAPIError as error:
        raise _unusable(app.settings, error) from error


def _unusable(settings: Settings, error: Exception) -> CpqError:
    reason = str(error.orig if isinstance(error, sa.exc.DBAPIError) else error).partition("\n")[0]
    return CpqError(
        Code.UNAVAILABLE,
        f"The database {database_name(settings)} cannot be used: {reason}",
        hint="Check CPQ_HOME and CPQ_DATABASE_URL; `cpq doctor` says more.",
    )
