"""The health page: the state of each part, and recent failures."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

from starlette.responses import Response

from cpq import __version__
from cpq.app import Answer, audit
from cpq.app.health import readiness
from cpq.app.transaction import Tx
from cpq.console.visit import Visit
from cpq.services import approvals
from cpq.storage.schema import SCHEMA_VERSION

CALLS_LOOKED_AT = 5_000
FAULTS = ("INTERNAL_ERROR", "UNAVAILABLE", "TIMEOUT")
FAULTS_SHOWN = 20


def show(visit: Visit) -> Response:
    def work(tx: Tx) -> Answer:
        entries = audit.recent(tx.connection, tx.tenant_id, among=CALLS_LOOKED_AT)
        counts = Counter(entry.outcome for entry in entries)
        faults = [asdict(entry) for entry in entries if entry.outcome in FAULTS][:FAULTS_SHOWN]
        queue = approvals.pending(tx, role=None, limit=1)
        return {
            "refused": dict(counts.most_common()),
            "faults": faults,
            "waiting": queue["total"],
            "oldest": queue["items"][0]["requested_at"] if queue["items"] else None,
            "policy_hash": visit.policies.current().content_hash,
        }

    answer = visit.read("health", work)
    settings = visit.app.settings
    return visit.page(
        "health.html",
        **answer,
        parts=readiness(visit.app, visit.request.app.state.loops) | {"policies": visit.policies.state()},
        database="SQLite" if settings.is_sqlite else "PostgreSQL",
        version=__version__,
        schema_version=SCHEMA_VERSION,
        calls=CALLS_LOOKED_AT,
    )
