"""The readiness of each part of a server, for `/readyz` and for the console."""

from __future__ import annotations

from collections.abc import Sequence

from cpq.app import App
from cpq.base.background import Loop
from cpq.base.errors import CpqError
from cpq.storage.schema import SCHEMA_VERSION


def readiness(app: App, loops: Sequence[Loop] = ()) -> dict[str, str]:
    """Each part the server needs, with `ok` or its problem; no secrets, no paths."""
    troubles = [f"{loop.name} {loop.problem}" for loop in loops if loop.problem]
    rest = {"policies": _policies(app), "background": "; ".join(troubles) or "ok"}
    try:
        found = app.schema_version()
    except CpqError:
        return {"database": "does not answer", "migrations": "unknown", **rest}
    expected = f"at {found}, needs {SCHEMA_VERSION}: run `cpq init`"
    return {"database": "ok", "migrations": "ok" if found == SCHEMA_VERSION else expected, **rest}


def _policies(app: App) -> str:
    app.policies.current()  # Check the folder now: it is otherwise checked only when a call comes.
    problem = app.policies.problem
    return "ok" if problem is None else f"broken, the last good ones are in use: {problem.message}"
