"""The readiness of each part of a server, for `/readyz` and for the console."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa

from cpq.app import App, policy_store
from cpq.app.access import ENGINE
from cpq.app.shared_policies import SharedPolicies
from cpq.base.background import Loop
from cpq.base.errors import CpqError
from cpq.storage.database_errors import storage_fault
from cpq.storage.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from cpq.app.policy_files import Loaded

log = logging.getLogger("cpq.policy")

PAGES_SECONDS = 6 * 3600.0
"""How often a server reads every page of its database."""

LOOK_SECONDS = 5.0

STUCK_SECONDS = 5.0
"""From when on a server counts as one that does not answer."""

TRY_SECONDS = 1.0
"""How long a probe waits for its turn to write."""


def readiness(app: App, loops: Sequence[Loop] = ()) -> dict[str, str]:
    """Each part the server needs, with `ok` or its problem; no secrets, no paths."""
    troubles = [f"{loop.name} {loop.problem}" for loop in loops if loop.problem]
    shortage = app.disk.problem
    stuck = _stuck(app)  # First, because the policies in force are in the database, too.
    rest = {
        "disk": f"{shortage}: nothing is stored until the operator makes room" if shortage else "ok",
        "policies": "unknown" if stuck else app.policies.state(),
        "pages": "damaged: the operator runs `cpq doctor`" if app.database.page_problem else "ok",
        "background": "; ".join(troubles) or "ok",
    }
    if app.policies.elsewhere is not None:
        rest["deciding"] = app.policies.not_deciding().message
    if stuck:
        return {"database": stuck, "migrations": "unknown", **rest}
    try:
        found = app.schema_version()
        is_usable = app.may_use(found)
    except (CpqError, sa.exc.SQLAlchemyError):
        return {"database": "does not answer", "migrations": "unknown", **rest}
    to_do = "run `cpq init`" if found is None or found < SCHEMA_VERSION else "install the newer version"
    expected = f"at {found}, needs {SCHEMA_VERSION}: {to_do}"
    return {"database": _writes(app), "migrations": "ok" if is_usable else expected, **rest}


def page_loop(app: App) -> Loop:
    """Reads every page now and then, and soon after a call has met a damaged one."""
    due = app.effects.monotonic()

    def look() -> float:
        nonlocal due
        if app.database.is_suspect or app.effects.monotonic() >= due:
            app.database.check_pages()
            due = app.effects.monotonic() + PAGES_SECONDS
        return LOOK_SECONDS

    return Loop("page check", look)


def policy_loop(app: App) -> Loop:
    """Stores the policies that the server uses, for a start while the folder is broken, and looks at the folder."""
    kept: Loaded | None = None
    shown = "ok"
    is_shared = isinstance(app.policies, SharedPolicies)
    if isinstance(app.policies, SharedPolicies):
        app.policies.begin_to_serve()

    def look() -> float:
        nonlocal kept, shown
        state = app.policies.state()
        if state not in ("ok", shown) and app.policies.problem is None:  # A problem is in the log already.
            log.warning("the policies of the folder are not in force", extra={"state": state})
        shown = state
        loaded = app.policies.loaded
        if loaded is not None and loaded is not kept and not is_shared:
            app.upkeep(app.new_call(ENGINE), lambda tx: policy_store.keep(tx.connection, loaded, tx.now))
            kept = loaded
        return LOOK_SECONDS

    return Loop("policies", look)


def _stuck(app: App) -> str | None:
    """Calls that have waited long for the database, for example for a standby that no longer answers."""
    stuck = [waited for waited in app.database.waits() if waited >= STUCK_SECONDS]
    return f"does not answer: {len(stuck)} calls wait for it, the longest for {max(stuck):.0f} s" if stuck else None


def _writes(app: App) -> str:
    if not app.database.exists():
        return "is not there"
    try:
        app.database.try_write(app.effects.monotonic() + TRY_SECONDS)
    except sa.exc.DBAPIError as error:
        fault = storage_fault(error)
        return fault.message if fault else "cannot be written"
    except (CpqError, sa.exc.TimeoutError):
        return "ok"  # Busy: somebody else is writing, for example a large import.
    return "ok"
