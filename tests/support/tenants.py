"""Tenants beside the main one: callers of theirs, work in their name, and their sample catalogue."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from cpq.app import App, Command, tenant_registry
from cpq.app.access import LOCAL_AGENT, OPERATOR, Permission, Principal
from cpq.app.tenant_registry import TenantState
from cpq.app.transaction import Tx
from cpq.services import catalog
from tests.support import engine


def of(tenant_id: str, principal: Principal = LOCAL_AGENT) -> Principal:
    return replace(principal, tenant_id=tenant_id)


def write_in(app: App, tenant_id: str, work: Callable[[Tx], Any]) -> Any:
    """What `work` returns, of the last attempt, as the operator of this tenant."""
    made: list[Any] = []

    def keep(tx: Tx) -> dict[str, Any]:
        made.append(work(tx))
        return {}

    app.write(app.new_call(of(tenant_id, OPERATOR)), Command("test", Permission.ADMINISTER), keep)
    return made[-1]


def add_tenant_with_sample(app: App, tenant_id: str) -> engine.Tools:
    """The tools of a new tenant with the sample catalogue."""
    engine.add_tenant(app, tenant_id)
    for file, section in engine.SAMPLE_FILES:
        rows = list(catalog.read_rows(engine.SAMPLE / file, section))
        write_in(app, tenant_id, partial(catalog.import_rows, rows=rows))
    return engine.Tools(app, principal=of(tenant_id))


def set_state(app: App, tenant_id: str, state: TenantState) -> None:
    write_in(app, "main", lambda tx: tenant_registry.set_state(tx, tenant_id, state))
