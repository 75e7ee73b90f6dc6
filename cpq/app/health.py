"""What a server needs to answer, part by part; for `/readyz` and for the console."""

from __future__ import annotations

from collections.abc import Sequence

from cpq.app import App
from cpq.base.background import Loop
from cpq.base.errors import CpqError
from cpq.storage.schema import SCHEMA_VERSION


def readiness(app: App, loops: Sequence[Loop] = ()) -> dict[str, str]:
    """Each part the server needs, and `ok` or what is wrong with it; no secrets, no paths."""
    troubles = [f"{loop.name} {loop.problem}" for loop in loops if loop.problem]
    rest = {"policies": _policies(app), "background": "; ".join(troubles) or "ok"}
    try:
        found = app.schema_version()
    except CpqError:
        return {"database": "does not answer", "migrations": "unknown", **rest}
    expected = f"at {found}, needs {SCHEMA_VERSION}: run `cpq init`"
    return {"database": "ok", "migrations": "ok" if found == SCHEMA_VERSION else expected, **rest}


def _policies(app: App) -> str:
    app.policies.current()  # Nobody may have called for a while, and so nobody has looked.
    problem = app.policies.problem
    return "ok" if problem is None else f"broken, the last good ones are in use: {problem.message}"
