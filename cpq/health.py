"""What a server needs to answer, part by part; for `/readyz` and for the console."""

from __future__ import annotations

from cpq.app import App
from cpq.errors import CpqError
from cpq.schema import SCHEMA_VERSION


def readiness(app: App) -> dict[str, str]:
    """Each part the server needs, and `ok` or what is wrong with it; no secrets, no paths."""
    policies = _policies(app)
    try:
        found = app.schema_version()
    except CpqError:
        return {"database": "does not answer", "migrations": "unknown", "policies": policies}
    expected = f"at {found}, needs {SCHEMA_VERSION}: run `cpq init`"
    return {
        "database": "ok",
        "migrations": "ok" if found == SCHEMA_VERSION else expected,
        "policies": policies,
    }


def _policies(app: App) -> str:
    app.policies.current()  # Nobody may have called for a while, and so nobody has looked.
    problem = app.policies.problem
    return "ok" if problem is None else f"broken, the last good ones are in use: {problem.message}"
