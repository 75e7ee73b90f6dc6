"""`cpq doctor`: checks the installation and its database, and reports what to do."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path

import click
import sqlalchemy as sa

from cpq import __version__
from cpq.app import Answer, App, audit, policy_store, tenant_registry, tokens
from cpq.app.access import DECIDERS, OPERATOR
from cpq.app.policy_files import load
from cpq.app.policy_keeper import HASH_SHOWN
from cpq.app.reconciliation import unsigned_states
from cpq.app.tenant_registry import TenantState
from cpq.app.transaction import Tx
from cpq.base import tenant_settings
from cpq.base.audit_key import FILE
from cpq.base.disk_space import MEGABYTE, free_bytes, shortage
from cpq.base.errors import CpqError
from cpq.base.settings import TOOLSETS, Settings, shipped, strange_variables
from cpq.base.tenant_folders import MAIN_TENANT
from cpq.cli import local_app
from cpq.cli.chosen_settings import own_settings_of, settings_of
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import moment, show_json, show_table
from cpq.retrieval import docs
from cpq.retrieval.search import table_source
from cpq.retrieval.search.installed_model import MODEL, REINSTALL, fault_of, is_installed, model_file
from cpq.retrieval.toolset_sources import sources_of
from cpq.services import documents
from cpq.services.catalog import exporter, index_repair
from cpq.services.documents import APT_LINE
from cpq.storage import distribution, grants
from cpq.storage.database_errors import storage_fault
from cpq.storage.engine import SQLITE_SAFE_VERSION, WRITE_DEADLINE_SECONDS, sqlite_version
from cpq.storage.schema import SCHEMA_VERSION
from cpq.storage.server_state import ServerState, server_state

PDF_LIBRARIES = ("pango-1.0", "pangoft2-1.0")

_ADDING_ROLE = "`cpq audit grants --role NAME` prints the rights of one that only adds them"
RECOVERY_SHOWN = timedelta(days=30)
FREE_BYTES_LOW = 1024**3
FREE_BYTES_NEEDED = 100 * 1024**2


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """One line of the report; `to_do` is filled unless the state is ok."""

    subject: str
    state: State
    found: str
    to_do: str = ""


@click.command()
@json_option
@pass_options
def doctor(options: Options) -> int:
    """Check this installation and its database. Exit code 1 when there is a problem.

    \b
    Example:
      cpq doctor
    """
    settings, own = settings_of(options), own_settings_of(options)
    policies = _check_policies(own)
    findings = [*_check_programs(), *_check_variables(options), *_check_database(settings), policies]
    findings += [_check_model(), *_check_libraries(), _check_templates(own), _check_disk(settings)]
    is_healthy = all(finding.state is not State.PROBLEM for finding in findings)
    if options.as_json:
        show_json({"healthy": is_healthy, "findings": [asdict(finding) for finding in findings]})
    else:
        rows = [(finding.state, finding.subject, finding.found, finding.to_do) for finding in findings]
        show_table(("", "checked", "found", "what to do"), rows)
    return 0 if is_healthy else 1


def _check_programs() -> Iterator[Finding]:
    yield Finding("Quotewright", State.OK, __version__)
    yield Finding("Python", State.OK, platform.python_version())
    version = ".".join(map(str, sqlite_version()))
    if sqlite_version() >= SQLITE_SAFE_VERSION:
        yield Finding("SQLite", State.OK, version)
    else:
        safe = ".".join(map(str, SQLITE_SAFE_VERSION))
        yield Finding(
            "SQLite", State.WARNING, f"{version}, which has a rare WAL bug", f"install pysqlite3 or SQLite {safe}"
        )


def _check_variables(options: Options) -> Iterator[Finding]:
    for warning in strange_variables(env_file=options.env_file, home=options.home):
        yield Finding("settings", State.WARNING, warning, "correct it, or remove it")


def _check_database(settings: Settings) -> Iterator[Finding]:
    name = settings.database_name
    try:
        with closing(App(settings)) as app:
            if not app.database.exists():
                yield Finding("database", State.PROBLEM, f"no database at {name}", "run `cpq init`")
                return
            found = app.schema_version()
            yield Finding("database", State.OK, f"{name} answers")
            yield from _check_storage(app)
            if not app.database.is_sqlite:
                yield from check_server(app)
            yield from _check_contents(app, found)
    except CpqError as error:
        yield Finding("database", State.PROBLEM, error.message, str(error.details.get("hint", "")))
    except sa.exc.DBAPIError as error:
        fault = storage_fault(error)
        to_do = f"{fault.message} The operator {fault.to_do}" if fault else "restore it from a backup"
        yield Finding("database", State.PROBLEM, f"{name} cannot be used: {error.orig}", to_do)


def _check_storage(app: App) -> Iterator[Finding]:
    """A row is really written, and on SQLite every page is read."""
    app.database.try_write(app.effects.monotonic() + WRITE_DEADLINE_SECONDS)
    if problem := app.database.check_pages():
        to_do = "stop the server and restore a backup; `cpq repair` mends the word index and documents only"
        yield Finding("pages", State.PROBLEM, problem, to_do)
    elif app.database.is_sqlite:
        yield Finding("pages", State.OK, "all can be read")


def check_server(app: App) -> Iterator[Finding]:
    """Standbys, connections and, with Citus, where the tables are."""
    with app.database.reading() as connection:
        server, alone = server_state(connection), distribution.missing(connection)
    yield standby(server)
    yield connections(app.settings, server)
    if alone:
        yield Finding("workers of Citus", State.PROBLEM, f"lack {', '.join(alone)}", "run `cpq init --distribute`")


def standby(server: ServerState) -> Finding:
    """Whether a commit that was answered is on a second machine."""
    if not server.waits_for:
        return Finding("standby", State.OK, "no synchronous one: a commit is safe on the disk of one machine")
    if not server.is_waiting:
        to_do = "set it to `on`, or a failover loses commits that were answered"
        return Finding("standby", State.WARNING, "synchronous_commit does not wait for it", to_do)
    if server.synchronous:
        return Finding("standby", State.OK, f"{server.synchronous} synchronous, commits wait for {server.waits_for}")
    to_do = "start the standby, or clear synchronous_standby_names: writes hang until then"
    return Finding("standby", State.PROBLEM, f"commits wait for {server.waits_for}, and none is connected", to_do)


def connections(settings: Settings, server: ServerState) -> Finding:
    """Whether the pools of this machine's servers fit into what the database admits."""
    wanted = settings.workers * settings.database_connections_max
    pools = f"up to {wanted} by the servers of this machine, {server.connections_max} admitted for all"
    if settings.database_pooler != "none" or wanted <= server.connections_max:
        return Finding("connections", State.OK, pools)
    to_do = "lower CPQ_DATABASE_CONNECTIONS_MAX, raise max_connections, or put PgBouncer in between"
    return Finding("connections", State.WARNING, pools, to_do)


def _check_contents(app: App, found: str | None) -> Iterator[Finding]:
    if not app.may_use(found):
        state = "there are no tables" if found is None else f"at {found}, this version needs {SCHEMA_VERSION}"
        is_newer = found is not None and found > SCHEMA_VERSION
        advice = "install the newer version of Quotewright" if is_newer else "run `cpq init`"
        yield Finding("migrations", State.PROBLEM, state, advice)
        return
    newest = "the newest" if found == SCHEMA_VERSION else f"newer than this version ({SCHEMA_VERSION}), which may go on"
    yield Finding("migrations", State.OK, f"at {found}, {newest}")
    yield from _check_recovery(app)
    yield from check_record(app)
    if index_repair.is_whole(app):
        yield Finding("word index", State.OK, "finds the products")
    else:
        yield Finding("word index", State.PROBLEM, "lacks products or cannot be read", "run `cpq repair`")
    if is_installed():
        yield from _check_vectors(app)
    yield from _check_tenants(app)
    counts = local_app.read(app, "catalog_count", lambda tx: dict(exporter.counts(tx)))
    summary = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    if all(counts.values()):
        yield Finding("catalogue", State.OK, summary)
    else:
        yield Finding("catalogue", State.WARNING, summary, "load yours with `cpq import`, or `cpq init --sample`")


def _check_tenants(app: App) -> Iterator[Finding]:
    """How many there are, and the folders of those that cannot be used."""
    with app.database.reading() as connection:
        tenants = tenant_registry.listed(connection)[1:]
    if not tenants or app.settings.tenant != MAIN_TENANT:
        return
    suspended = [one.id for one in tenants if one.state is not TenantState.ACTIVE]
    found = f"{len(tenants):,} beside main" + (f", suspended: {', '.join(suspended)}" if suspended else "")
    yield Finding("tenants", State.OK, found)
    for one in tenants:
        try:
            own = tenant_settings.settings_of(app.settings, one.id)
            if own.policies_dir is not None:
                load(own.policies_dir, DECIDERS)
            documents.design_of(own)
        except CpqError as error:
            yield Finding(f"tenant {one.id}", State.PROBLEM, error.message, str(error.details.get("hint", "")))


def _check_vectors(app: App) -> Iterator[Finding]:
    """How far search by meaning is; until then words decide."""

    def look(tx: Tx) -> Answer:
        names = ((f"texts of {source.corpus}", source) for source in sources_of(TOOLSETS))
        return {name: table_source.progress(tx, source) for name, source in names}

    figures = dict(local_app.read(app, "search_progress", look))
    with app.database.reading() as connection:
        tenants = {one.id for one in tenant_registry.listed(connection)}
    for tenant_id in app.settings.docs_roots if app.settings.has_own_pages else ():
        if tenant_id not in tenants:
            what = f"CPQ_DOCS_DIRS names {tenant_id}, and there is no such tenant"
            yield Finding("pages of tenants", State.PROBLEM, what, f"run `cpq tenant create {tenant_id}`, or remove it")
            continue
        name = "passages of pages" + ("" if tenant_id == MAIN_TENANT else f" of {tenant_id}")
        call = app.new_call(replace(OPERATOR, tenant_id=tenant_id))
        figures |= app.read_unaudited(call, lambda tx, name=name: {name: docs.progress(tx)})  # type: ignore[misc] # A default.
    found = ", ".join(f"{done:,} of {total:,} {name.replace('_', ' ')}" for name, (done, total) in figures.items())
    is_whole = all(done == total for done, total in figures.values())
    yield Finding("vectors", State.OK, found if is_whole else f"{found}; a server or `cpq search index` makes the rest")


def _check_recovery(app: App) -> Iterator[Finding]:
    """A token for an administrator that no administrator agreed to stays in sight for a while."""
    with app.database.reading() as connection:
        found = audit.about(connection, app.settings.tenant, [tokens.RECOVERY], newest=1)
    if found and found[0].entry.at > app.effects.now() - RECOVERY_SHOWN:
        who = f"made without an administrator on {moment(found[0].entry.at)}"
        yield Finding("token", State.WARNING, who, "if nobody of you did it, revoke it: `cpq token list`")


def check_record(app: App) -> Iterator[Finding]:
    """What the audit record proves: whether the key has signed every state, and whether our role could rewrite it."""
    if app.audit_key is None:
        yield Finding("audit record", State.OK, f"states are not signed: no key ({FILE})")
    elif plain := local_app.read(app, "audit_unsigned", unsigned_states):
        to_do = "`cpq audit verify --state` compares them, then `cpq audit baseline` signs those that are whole"
        found = "1 state has no signature" if plain == 1 else f"{plain:,} states have no signature"
        yield Finding("audit record", State.WARNING, found, to_do)
    else:
        yield Finding("audit record", State.OK, "every state has a signature")
    if app.database.is_sqlite:
        return
    with app.database.reading() as connection:
        may_change = grants.may_change_entries(connection)
    if not may_change:
        yield Finding("audit role", State.OK, "the database role adds audit entries, and cannot change them")
    elif app.audit_key is None:
        yield Finding("audit role", State.OK, f"the database role may change audit entries; {_ADDING_ROLE}")
    else:
        yield Finding("audit role", State.WARNING, "the database role may change audit entries", _ADDING_ROLE)


def _check_libraries() -> Iterator[Finding]:
    """Loads the libraries as WeasyPrint does, but without it: importing WeasyPrint takes a second, or fails."""
    missing = [name for name in PDF_LIBRARIES if not _loads(name)]
    if missing:
        yield Finding("PDF libraries", State.PROBLEM, f"missing: {', '.join(missing)}", APT_LINE)
    else:
        yield Finding("PDF libraries", State.OK, ", ".join(PDF_LIBRARIES))


def _check_model() -> Finding:
    """Without the model search uses words only, which is no problem."""
    file = model_file()
    if file is None:
        return Finding("search", State.OK, "by words; pip install 'quotewright[semantic]' adds meaning")
    if fault := fault_of(file):
        return Finding("search", State.PROBLEM, f"{fault} Searches fail", REINSTALL)
    return Finding("search", State.OK, f"by words and meaning ({MODEL})")


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(f"lib{name}.so.0" if sys.platform == "linux" else ctypes.util.find_library(name) or name)
    except OSError:
        return False
    return True


def _check_policies(settings: Settings) -> Finding:
    folder = settings.policies_dir or shipped("policies")
    if settings.policies_adopt == "manual":
        return _check_adopted(settings, folder)
    if not folder.is_dir():
        return Finding("policies", State.PROBLEM, f"there is no folder {folder}", "correct CPQ_POLICIES_DIR")
    try:
        policies = load(folder, DECIDERS)
    except CpqError as error:
        to_do = f"correct it; a running server keeps the last valid policies, a new one {_without_folder(settings)}"
        return Finding("policies", State.PROBLEM, f"in {folder}: {error.message}", to_do)
    return Finding("policies", State.OK, f"{folder}, {policies.content_hash[:HASH_SHOWN]}")


def _check_adopted(settings: Settings, folder: Path) -> Finding:
    """Where people adopt policies: whether the folder is what they adopted."""
    try:
        with closing(App(settings)) as app:
            app.require_schema()
            policies = app.of(settings.tenant).policies
            state, in_use = policies.state(), policies.current().content_hash[:HASH_SHOWN]
    except CpqError as error:
        return Finding("policies", State.PROBLEM, error.message, str(error.details.get("hint", "")))
    if state == "ok":
        return Finding("policies", State.OK, f"{folder}, {in_use}, as adopted")
    to_do = "look at `cpq policy adopt --dry-run`, then adopt the folder or restore it"
    return Finding("policies", State.WARNING, f"in {folder}: {state}", to_do)


def _without_folder(settings: Settings) -> str:
    """What a server does that starts now, while the folder is broken."""
    try:
        with closing(App(settings)) as app:
            app.require_schema()
            find = partial(policy_store.last_used, tenant_id=settings.tenant)
            stored = local_app.read(app, "policy_stored", lambda tx: find(tx.connection))
            if stored is None:
                return "does not start"
            policy_store.rebuilt(stored, DECIDERS)
    except CpqError:
        return "does not start"
    return f"uses {stored.content_hash[:HASH_SHOWN]}, which a server stored"


def _check_templates(settings: Settings) -> Finding:
    try:
        design = documents.design_of(settings)
    except CpqError as error:
        return Finding("PDF templates", State.PROBLEM, error.message, str(error.details.get("hint", "")))
    return Finding("PDF templates", State.OK, f"{design.folder}, in {', '.join(sorted(design.labels))}")


def _check_disk(settings: Settings) -> Finding:
    home = settings.home.absolute()
    free = free_bytes(home)
    space = f"{free // MEGABYTE:,} MB free for {home}"
    if shortage(free, settings.disk_free_mb_min):
        found = f"{space}, fewer than {settings.disk_free_mb_min:,} MB: callers can only read"
        return Finding("disk", State.PROBLEM, found, "make room, or move CPQ_HOME")
    if free < FREE_BYTES_NEEDED:
        return Finding("disk", State.PROBLEM, space, "make room, or move CPQ_HOME")
    is_enough = free >= FREE_BYTES_LOW
    return Finding("disk", State.OK if is_enough else State.WARNING, space, "" if is_enough else "make room soon")
