"""What a PostgreSQL server says of itself: its standbys, and how many connections it admits."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy.engine import Connection


class ServerState(NamedTuple):
    waits_for: str
    """`synchronous_standby_names`; empty where a commit waits for no standby."""
    is_waiting: bool
    """Whether our commits wait for a disk and, where there is one, for a standby."""
    synchronous: int
    """The standbys that are connected, and that a commit waits for."""
    connections_max: int
    """How many connections ordinary roles may have."""


def server_state(connection: Connection) -> ServerState:
    settings = {
        name: str(connection.exec_driver_sql(f"SHOW {name}").scalar())
        for name in (
            "synchronous_standby_names",
            "synchronous_commit",
            "max_connections",
            "superuser_reserved_connections",
        )
    }
    # A role that may not read the states of standbys sees rows without them.
    standbys = connection.exec_driver_sql(
        "SELECT count(*) FROM pg_stat_replication WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum')"
    ).scalar()
    admitted = int(settings["max_connections"]) - int(settings["superuser_reserved_connections"])
    is_waiting = settings["synchronous_commit"] not in ("off", "local")
    return ServerState(settings["synchronous_standby_names"], is_waiting, int(standbys or 0), admitted)
