"""The one owner of transactions: begin, claim the key, work, audit, commit, retry. Every edge goes through here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.app import audit, policy_store, recorded_state, retrieval_queries, tenant_registry, tokens
from cpq.app.access import DECIDERS, ENGINE, LOCAL_AGENT, OPERATOR, Permission, Principal
from cpq.app.adopted_policies import AdoptedPolicies
from cpq.app.call import OUTCOME_OK, Answer, Call, Command, Outcome, Record
from cpq.app.daily_bytes import DailyBytes
from cpq.app.idempotency import Claim
from cpq.app.loaded_tenants import LoadedTenant, LoadedTenants
from cpq.app.policy_keeper import PolicyKeeper
from cpq.app.shared_policies import SharedPolicies
from cpq.app.transaction import Tx, UnpreparedError
from cpq.base import traces
from cpq.base.audit_key import read_audit_key
from cpq.base.clock import Effects
from cpq.base.disk_space import DiskSpace
from cpq.base.errors import Code, CpqError
from cpq.base.late_modules import LateModule
from cpq.base.settings import Settings, shipped
from cpq.base.tenant_folders import MAIN_TENANT, is_tenant_id
from cpq.base.text import to_wire
from cpq.storage.database_errors import (
    is_missing_table,
    is_server_lost,
    is_taken,
    is_too_slow,
    is_transient,
    storage_fault,
)
from cpq.storage.engine import WRITE_DEADLINE_SECONDS, Database
from cpq.storage.schema import SCHEMA_VERSION, tables
from cpq.storage.tenants import of_tenant

if TYPE_CHECKING:
    from cpq.app.policy_files import Loaded
    from cpq.base import metrics
    from cpq.domain.policy.policy_set import PolicySet
else:
    metrics = LateModule("cpq.base.metrics")

log = logging.getLogger("cpq.app")

ATTEMPTS_MAX = 8
FAULT_RETRY_SECONDS = 30
"""When to try again after a fault that a person has to end."""

SWEEP_SECONDS = 3600.0
"""Interval at which expired keys and old queries are deleted, together with an audit write."""

T = TypeVar("T")


class App:
    """The engine as every edge sees it."""

    def __init__(self, settings: Settings, effects: Effects | None = None) -> None:
        self.settings = settings
        self.effects = effects or Effects()
        try:
            self.database = Database(settings, self.effects)
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError, ValueError) as error:
            raise unusable(settings, error) from error
        self.audit_key = read_audit_key(settings)
        self.daily_bytes = DailyBytes(settings.caller_mb_per_day, self.effects)
        self.disk = DiskSpace(settings.home, settings.disk_free_mb_min, self.effects)
        self.policies = self._keeper(MAIN_TENANT, settings.policies_dir or shipped("policies"))
        self.kept: dict[Any, Any] = {}
        self.tenants = LoadedTenants(self.effects, self._keeper, settings.tenants_loaded_max)
        self.operator = replace(OPERATOR, tenant_id=settings.tenant)
        self.local_agent = replace(LOCAL_AGENT, tenant_id=settings.tenant)
        """Who calls over stdio, or with the shared token."""
        self._recorder = audit.Recorder(self._write_audit)
        self._next_sweep: dict[str, float] = {}
        """By tenant. The first sweep is immediate, because many processes live for less than an hour."""

    def of(self, tenant_id: str) -> App | LoadedTenant:
        """Settings, policies and caches of a tenant. Those of the main one are the engine's own."""
        if tenant_id == MAIN_TENANT:
            return self
        if not is_tenant_id(tenant_id):
            raise tenant_registry.unknown(tenant_id)
        return self.tenants.get(self.settings, tenant_id)

    def new_call(self, principal: Principal | None = None, **options: Any) -> Call:
        return Call(principal or self.local_agent, self.effects.new_id("tr-"), **options)

    def read(self, call: Call, command: Command, work: Callable[[Tx], T]) -> T:
        """Answer from a consistent snapshot. Nothing can be written; the audit entry follows within a moment."""
        with self.admitted(call, command):
            return self.read_unaudited(call, work)

    def write(self, call: Call, command: Command, work: Callable[[Tx], Answer]) -> Outcome:
        """Run `work` exactly once in one transaction, or not at all.

        The key is claimed first, so a rival with the same key waits and then gets the same answer. A call without a key
        gets a generated one, so that a lost acknowledgement of the commit can be retried without doing the work twice.
        """
        with self.admitted(call, command) as record:
            return self.write_within(call, record, work)

    @contextmanager
    def admitted(self, call: Call, command: Command) -> Iterator[Record]:
        """`audited`, for a caller who may run the command; for a call of several reads and writes."""
        with self.audited(call, command) as record:
            self.allow(call, command)
            yield record

    @contextmanager
    def audited(self, call: Call, command: Command) -> Iterator[Record]:
        """Guarantee one audit entry for the call: written with its change, or on leaving."""
        record = Record(command)
        outcome = Code.INTERNAL_ERROR.value
        try:
            yield record
            outcome = OUTCOME_OK
        except CpqError as error:
            outcome = error.code.value
            raise
        finally:
            if not record.is_written:
                self.note(call, record.command, outcome)

    def write_within(self, call: Call, record: Record, work: Callable[[Tx], Answer]) -> Outcome:
        """`write` for callers that have already checked the permission and opened the record."""
        command = record.command
        if _is_limited(call.principal):
            self.disk.require_room()
            self.daily_bytes.require_share(call.principal.tenant_id, call.principal.caller)
        key = command.idempotency_key or call.next_write()
        outcome = self._attempt(call, lambda: self._write_once(call, command, key, work))
        record.is_written = True
        self._recorder.note_unsealed(call.principal.tenant_id)
        return outcome

    def read_unaudited(self, call: Call, work: Callable[[Tx], T]) -> T:
        """Read with neither a permission check nor an audit entry.

        For one of several reads of a call that is allowed and recorded as a whole, and for the engine's own upkeep.
        """
        answer, afterwards = self._attempt(call, lambda: self._read_once(call, work))
        if afterwards:
            self.upkeep(call, lambda tx: [store(tx) for store in afterwards])
        return answer

    def identify(self, presented: str) -> Principal | None:
        """The caller whose token this is, or None. FORBIDDEN when their tenant is suspended."""

        def look(tx: Tx) -> Principal | None:
            found = tokens.verify_token(tx, presented)
            if found is not None:
                tenant_registry.admit(tx.connection, found, writes=False)
            return found

        return self._at_the_door(look)

    def has_callers(self) -> bool:
        """Whether callers need a token: there is a shared one, or one was ever made."""
        return bool(self.settings.auth_token) or self._at_the_door(lambda tx: tokens.has_tokens(tx.connection))

    def _at_the_door(self, look: Callable[[Tx], T]) -> T:
        """Read before it is known who calls. It waits for a lost server like the call itself."""

        def once() -> T:
            with self.database.reading() as connection:
                now, load = self.effects.now(), self.policies.current
                return look(Tx(connection, ENGINE, now, self.effects, self.settings, load, self.kept, self.audit_key))

        return self._attempt(self.new_call(ENGINE), once)

    def recall(self, call: Call, command: Command) -> Answer | None:
        """The answer `write` would replay, to skip long work; CONFLICT if the key belongs to another request."""
        key = command.idempotency_key
        if key is None:
            return None
        return self.read_unaudited(call, lambda tx: Claim(tx, command, key, call.trace_id, 1).recall())

    def upkeep(self, call: Call, work: Callable[[Tx], T]) -> T:
        """Run a maintenance transaction of the engine, without key and audit entry.

        `work` may run twice, when the acknowledgement of its commit is lost, so it must be safe to repeat.
        """
        return self._attempt(call, lambda: self._upkeep_once(call, work))

    def allow(self, call: Call, command: Command) -> None:
        """Raise FORBIDDEN when the caller lacks the permission of the command."""
        if not call.principal.may(command.needs):
            raise CpqError(
                Code.FORBIDDEN,
                f"{command.name} needs the permission {command.needs.value!r}, which {call.principal.caller} lacks.",
                needs=command.needs.value,
                roles=sorted(call.principal.roles),
                hint="Ask a person with that right, or use a token of another role (`cpq token roles`).",
            )

    def note(self, call: Call, command: Command, outcome: str) -> None:
        """Add the audit entry of a call that changed nothing: a read, a refusal, a failure."""
        entry = self._entry(call, command, outcome, command.subject)
        self._recorder.add(entry, call.retrieved[-1] if call.retrieved else None)

    def flush_audit(self) -> None:
        """Return when every entry so far is written and sealed."""
        self._recorder.flush()

    def schema_version(self) -> str | None:
        """The newest migration in the database; None before `cpq init`."""
        if not self.database.exists():
            return None
        try:
            with self.database.reading() as connection:
                version: str | None = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
                return version
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            if isinstance(error, sa.exc.DBAPIError) and is_missing_table(error):
                return None
            raise unusable(self.settings, error) from error

    def may_use(self, found: str | None) -> bool:
        """Whether this code may use a database at that migration: its own, or a newer one that admits older code."""
        if found is None or found <= SCHEMA_VERSION:
            return found == SCHEMA_VERSION
        oldest = self.database.oldest_code()
        return oldest is not None and oldest <= SCHEMA_VERSION

    def require_schema(self, *, exactly: bool = False) -> None:
        """Refuse a database that this code cannot use; `exactly`: also a newer one, which has tables unknown here."""
        found, name = self.schema_version(), self.settings.database_name
        if found == SCHEMA_VERSION or (not exactly and self.may_use(found)):
            return
        if not self.database.exists():
            state = f"There is no database at {self.settings.sqlite_path.absolute()}."
            raise CpqError(
                Code.UNAVAILABLE, state, hint="Run `cpq init`, or name the right folder with --home or CPQ_HOME."
            )
        if found is None:
            state = f"The database {name} has no tables yet."
        elif found > SCHEMA_VERSION:
            state = f"The database {name} is at migration {found}, newer than this version knows ({SCHEMA_VERSION})."
            raise CpqError(Code.UNAVAILABLE, state, hint="Install the newer version of Quotewright.")
        else:
            state = f"The database {name} is at migration {found}, the code at {SCHEMA_VERSION}."
        raise CpqError(Code.UNAVAILABLE, state, hint="Run `cpq init`.")

    def require_tenant(self) -> None:
        """Refuse to work for a tenant that does not exist or is suspended (CPQ_TENANT)."""
        if self.settings.tenant != MAIN_TENANT:
            with self.database.reading() as connection:
                tenant_registry.require(connection, self.settings.tenant)

    def close(self) -> None:
        self._recorder.close()
        self.database.close()

    def _attempt(self, call: Call, once: Callable[[], T]) -> T:
        """`_retried`; what a refusal left for later is found when its transaction has ended."""
        try:
            return self._retried(call, once)
        except CpqError as refused:
            refused.complete()
            raise

    def _retried(self, call: Call, once: Callable[[], T]) -> T:
        """Retry the whole transaction on transient failures, up to ATTEMPTS_MAX times or until the deadline.

        A lost server is tried until the deadline: while a standby takes over, attempts fail quickly and mean nothing.
        """
        deadline = self.effects.monotonic() + WRITE_DEADLINE_SECONDS
        for attempt in count(1):
            call.check()
            try:
                with traces.span("transaction", database=self.database.kind, attempt=attempt):
                    return once()
            except UnpreparedError as missing:
                if attempt >= ATTEMPTS_MAX:
                    raise
                self.read_unaudited(call, missing.prepare)
            except sa.exc.TimeoutError as error:
                raise CpqError(
                    Code.UNAVAILABLE, "Too many calls wait for the database.", hint="Try again.", retry_after_seconds=2
                ) from error
            except sa.exc.DBAPIError as error:
                if fault := storage_fault(error):
                    if fault.is_of_connection and attempt == 1:
                        continue  # The fault may be over, and the connection older than its end.
                    self.database.is_suspect |= fault.is_damage
                    log.error("the database has a fault", extra={"reason": str(error.orig), "trace_id": call.trace_id})
                    raise CpqError(
                        Code.UNAVAILABLE,
                        f"{fault.message} Nothing was changed.",
                        hint=f"The operator {fault.to_do}.",
                        retry_after_seconds=FAULT_RETRY_SECONDS,
                    ) from error
                if is_taken(error):
                    raise CpqError(
                        Code.CONFLICT,
                        "Another call created the same thing a moment ago.",
                        hint="Read it, then try again.",
                    ) from error
                if is_too_slow(error):
                    raise CpqError(Code.TIMEOUT, "The database took too long; nothing was changed.") from error
                if not is_transient(error):
                    raise
                is_last = attempt >= ATTEMPTS_MAX and not is_server_lost(error)
                if is_last or self.effects.monotonic() > deadline:
                    raise CpqError(
                        Code.UNAVAILABLE,
                        "The database did not answer in time.",
                        hint="Try again with the same idempotency_key; it will not be done twice.",
                        retry_after_seconds=2,
                    ) from error
                metrics.RETRIES.inc()
                log.info("transaction retried", extra={"attempt": attempt, "trace_id": call.trace_id})
                self.effects.sleep(self.effects.jitter(min(0.02 * 2 ** min(attempt, 6), 1.0)))
        raise AssertionError("the loop returns or raises")

    def _read_once(self, call: Call, work: Callable[[Tx], T]) -> tuple[T, list[Callable[[Tx], None]]]:
        self._refresh_policies(call)
        with self.database.reading() as connection:
            tx = self._tx(call, connection, writes=False)
            answer = work(tx)
        call.check()  # The audit records a cancelled call as cancelled, not as answered.
        return answer, tx.afterwards

    def _write_once(self, call: Call, command: Command, key: str, work: Callable[[Tx], Answer]) -> Outcome:
        self._refresh_policies(
            call
        )  # Loads a changed file before the turn of this write, not while others wait for it.
        deadline = self.effects.monotonic() + WRITE_DEADLINE_SECONDS
        with self.database.writing(deadline) as connection:
            tx = self._tx(call, connection, writes=True)
            # A generated key only protects this call's own retries, and expires the next day.
            days = tx.settings.key_retention_days if command.idempotency_key else 1
            claim = Claim(tx, command, key, call.trace_id, days)
            stored = claim.take()
            if stored is None:
                claim.keep(answer := to_wire(work(tx)))
                for store in tx.afterwards:
                    store(tx)
            else:
                answer = to_wire(stored.answer)
            is_ours = stored is not None and stored.trace_id == call.trace_id
            if not is_ours:  # Otherwise our first attempt was committed with its entry; only its answer was lost.
                tokens.require_open(tx)  # Last: a write waits for its turn, its key and the rows it locks.
                entry = self._entry(call, command, OUTCOME_OK, command.subject_of(answer), answer=claim.recorded)
                for one in recorded_state.entries(tx, entry):
                    audit.record(connection, one)
            size = self.daily_bytes.count(tx) if not is_ours and _is_limited(call.principal) else 0
            call.enter_commit()
        if size:
            self.daily_bytes.settle(call.principal.tenant_id, call.principal.caller, size)
        return Outcome(answer, replayed=stored is not None and not is_ours)

    def _upkeep_once(self, call: Call, work: Callable[[Tx], T]) -> T:
        self._refresh_policies(call)
        with self.database.writing(self.effects.monotonic() + WRITE_DEADLINE_SECONDS) as connection:
            tx = self._tx(call, connection, writes=True)
            answer = work(tx)
            size = self._share(call, tx) if tx.sizes and _is_limited(call.principal) else 0
        if size:
            self.daily_bytes.settle(call.principal.tenant_id, call.principal.caller, size)
        return answer

    def _share(self, call: Call, tx: Tx) -> int:
        """Count what upkeep stores for a caller, such as pages that it reads."""
        self.daily_bytes.require_share(call.principal.tenant_id, call.principal.caller)
        return self.daily_bytes.count(tx)

    def _tx(self, call: Call, connection: Connection, *, writes: bool) -> Tx:
        """The transaction that has just begun, at its moment and under the policies in force then."""
        own: App | LoadedTenant = self
        if call.principal.tenant_id != MAIN_TENANT:
            tenant_registry.admit(connection, call.principal, writes=writes)
            own = self.of(call.principal.tenant_id)
        policies = own.policies.in_force()  # A write may have waited for its turn long after it was called.
        now = self.effects.now()
        return Tx(
            connection,
            call.principal,
            now,
            self.effects,
            own.settings,
            policies,
            own.kept,
            self.audit_key,
            retrieved=call.retrieved,
        )

    def _entry(
        self, call: Call, command: Command, outcome: str, subject: str | None, answer: str | None = None
    ) -> audit.Entry:
        return audit.Entry(
            tenant_id=call.principal.tenant_id,
            id=self.effects.new_id("au-"),
            at=self.effects.now(),
            caller=call.principal.signature,
            operation=command.name,
            arguments_hash=audit.arguments_hash(command.written),
            outcome=outcome,
            subject=subject,
            trace_id=call.trace_id,
            answer=answer,
        )

    def _keeper(self, tenant_id: str, folder: Path) -> PolicyKeeper:
        """Keeps the policies of a tenant's folder by CPQ_POLICIES_ADOPT."""
        reading = self.database.reading
        if self.settings.policies_adopt == "manual":
            return AdoptedPolicies(folder, self.effects, DECIDERS, reading=reading, tenant_id=tenant_id)
        if self.database.is_sqlite:
            return PolicyKeeper(folder, self.effects, DECIDERS)
        # Servers of other machines may use the database, with folders of their own.
        bring_into_use = partial(self._bring_into_use, tenant_id)
        made = SharedPolicies(
            folder, self.effects, DECIDERS, reading=reading, bring_into_use=bring_into_use, tenant_id=tenant_id
        )
        if tenant_id != MAIN_TENANT and isinstance(self.policies, SharedPolicies) and self.policies.is_server:
            made.is_server = True
        return made

    def _bring_into_use(self, tenant_id: str, loaded: Loaded) -> None:
        with self.database.writing(self.effects.monotonic() + WRITE_DEADLINE_SECONDS) as connection:
            policy_store.keep(connection, loaded, self.effects.now(), tenant_id)

    def _refresh_policies(self, call: Call) -> None:
        if call.principal.tenant_id == MAIN_TENANT:
            self.policies.refresh()
        else:
            self.tenants.refresh(call.principal.tenant_id)

    def _write_audit(self, tenant_id: str, batch: list[audit.Noted]) -> None:
        days = self.settings.query_retention_days
        with self.database.writing(self.effects.monotonic() + WRITE_DEADLINE_SECONDS) as connection:
            if not tenant_registry.exists(connection, tenant_id):
                log.warning("entries of no tenant are dropped", extra={"entries": len(batch)})
                return
            for start in range(0, len(batch) or 1, audit.SEAL_BATCH):
                part = batch[start : start + audit.SEAL_BATCH]
                audit.seal(connection, tenant_id, [noted.entry for noted in part])
            if days:
                retrieval_queries.record(connection, batch)
            if self.effects.monotonic() >= self._next_sweep.get(tenant_id, 0):
                over = of_tenant(tables.idempotency, tenant_id) & (
                    tables.idempotency.c.expires_at <= self.effects.now()
                )
                connection.execute(sa.delete(tables.idempotency).where(over))
                retrieval_queries.forget_old(connection, tenant_id, self.effects.now() - timedelta(days=days))
                self._next_sweep[tenant_id] = self.effects.monotonic() + SWEEP_SECONDS


def _is_limited(principal: Principal) -> bool:
    """Whether limits apply: an administrator imports, makes room and revokes tokens without them."""
    return not principal.may(Permission.ADMINISTER)


def unusable(settings: Settings, error: Exception) -> CpqError:
    """The error for a database that cannot be opened or does not answer."""
    reason = str(error.orig if isinstance(error, sa.exc.DBAPIError) else error).partition("\n")[0]
    if isinstance(error, ValueError):
        reason = "its address cannot be parsed."  # The parser's own words may quote a part of a password.
    return CpqError(
        Code.UNAVAILABLE,
        f"The database {settings.database_name} cannot be used: {reason}",
        hint="Check CPQ_HOME: a folder that you may write to."
        if settings.is_sqlite
        else "Check CPQ_DATABASE_URL, and that its server runs and lets you in.",
    )


def open_app(settings: Settings, effects: Effects | None = None, *, with_policies: bool = True) -> App:
    """The engine on a migrated database with valid policies; otherwise CpqError with the next step.

    Where the folder of policies is broken, it begins with those that a server stored last. Who only searches opens it
    without them, which saves a tenth of its memory.
    """
    app = App(settings, effects)
    try:
        app.require_schema()
        app.require_tenant()
        try:
            if with_policies:
                app.policies.current()
        except CpqError as problem:
            if settings.policies_adopt == "manual":
                raise
            app.policies.fall_back(_stored_policies(app, problem), problem)
    except CpqError:
        app.close()
        raise
    return app


def _stored_policies(app: App, problem: CpqError) -> PolicySet:
    """The policies that a server stored last; the problem of the folder, when there are none that can be used."""
    with app.database.reading() as connection:
        stored = policy_store.last_used(connection)
    if stored is None:
        raise problem
    try:
        return policy_store.rebuilt(stored, DECIDERS)
    except CpqError as refused:
        raise CpqError(
            problem.code, f"{problem.message.rstrip('.')}. {refused.message}", **problem.details
        ) from refused
