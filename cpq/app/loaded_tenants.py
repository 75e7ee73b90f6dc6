"""What a process holds of each tenant beside the main one: settings, policies and caches, of those in use only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cpq.app.access import DECIDERS
from cpq.app.policy_keeper import PolicyKeeper
from cpq.base import tenant_settings
from cpq.base.clock import Effects
from cpq.base.settings import Settings, shipped
from cpq.base.tenant_settings import Stamp

LOOK_SECONDS = 1.0
"""How old the settings of a tenant may be."""

Keeper = Callable[[str, Path], PolicyKeeper]


@dataclass
class LoadedTenant:
    settings: Settings
    policies: PolicyKeeper
    stamp: Stamp
    looked_at: float
    kept: dict[Any, Any] = field(default_factory=dict)
    """Caches between transactions, such as search indexes; gone when the tenant has to make room."""


class LoadedTenants:
    """The tenants that were asked for last. Safe for many threads."""

    def __init__(self, effects: Effects, keeper: Keeper, most: int) -> None:
        """`keeper` makes that of a tenant's own folder; those without one share the policies of the product."""
        self._effects = effects
        self._keeper = keeper
        self._most = most
        self._lock = threading.Lock()
        self._loaded: OrderedDict[str, LoadedTenant] = OrderedDict()
        self._shipped = PolicyKeeper(shipped("policies"), effects, DECIDERS)

    def __len__(self) -> int:
        return len(self._loaded)

    def __contains__(self, tenant_id: str) -> bool:
        return tenant_id in self._loaded

    def get(self, settings: Settings, tenant_id: str) -> LoadedTenant:
        """The tenant as its folder was a second ago or less; the one that was asked for longest ago makes room."""
        with self._lock:
            found = self._loaded.get(tenant_id)
            if found is not None:
                self._loaded.move_to_end(tenant_id)
                if self._effects.monotonic() - found.looked_at < LOOK_SECONDS:
                    return found
        stamp = tenant_settings.stamp(settings, tenant_id)
        if found is None or found.stamp != stamp:
            found = self._made(settings, tenant_id, stamp, found)
        found.looked_at = self._effects.monotonic()
        with self._lock:
            kept = self._loaded.setdefault(tenant_id, found)
            if kept.stamp != stamp:
                kept = self._loaded[tenant_id] = found
            while len(self._loaded) > self._most:
                self._loaded.popitem(last=False)
        return kept

    def refresh(self, tenant_id: str) -> None:
        """Read changed policies of a tenant that is loaded, before others wait for a write of it."""
        if (found := self._loaded.get(tenant_id)) is not None:
            found.policies.refresh()

    def all(self) -> list[LoadedTenant]:
        with self._lock:
            return list(self._loaded.values())

    def forget(self, tenant_id: str) -> None:
        with self._lock:
            self._loaded.pop(tenant_id, None)

    def _made(self, settings: Settings, tenant_id: str, stamp: Stamp, before: LoadedTenant | None) -> LoadedTenant:
        made = tenant_settings.settings_of(settings, tenant_id)
        folder = made.policies_dir
        if before is not None and before.settings.policies_dir == folder:
            policies = before.policies
        else:
            policies = self._shipped if folder is None else self._keeper(tenant_id, folder)
        is_same_place = before is not None and before.settings.docs_dir == made.docs_dir
        kept = before.kept if before is not None and is_same_place else {}
        return LoadedTenant(made, policies, stamp, self._effects.monotonic(), kept)
