"""The rate limit of a caller over three servers of one PostgreSQL database."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from cpq.app.access import LOCAL_AGENT, OPERATOR
from cpq.base.errors import Code, CpqError
from cpq.base.settings import read_settings
from cpq.storage.schema.tables import call_pace
from mcp_facade.registry import Registry
from tests.support import engine
from tests.support.engine import StillEffects, open_app
from tests.support.postgres import Cluster

LIMIT = 60
LIMITED = (Code.RATE_LIMITED, True)


@pytest.fixture
def servers(cluster: Cluster, postgres_template: str, clock: StillEffects) -> Iterator[list[Registry]]:
    name = engine.copy_of(cluster, postgres_template)
    settings = read_settings({}, database_url=cluster.url(name), rate_limit_per_minute=LIMIT)
    with ExitStack() as stack:
        apps = [stack.enter_context(closing(open_app(settings, clock))) for _ in range(3)]
        yield [Registry(app, []) for app in apps]
    cluster.drop_database(name)


def passed(servers: list[Registry], calls: int, method: str = "") -> int:
    """How many of so many calls pass, when each goes to the next server."""
    count = 0
    refusals: list[CpqError] = []
    for server in itertools.islice(itertools.cycle(servers), calls):
        try:
            server.take_turn(LOCAL_AGENT, method)
            count += 1
        except CpqError as refused:
            refusals.append(refused)
    assert {(one.code, 0 < float(str(one.details["retry_after_seconds"])) <= 60) for one in refusals} <= {LIMITED}
    return count


@pytest.mark.parametrize("method", ["", "tools/list"])
def test_q02_three_servers_together_pass_no_more_than_the_limit(
    servers: list[Registry], clock: StillEffects, method: str
):
    """Each server may pass one call more than the count had room for, which is paid back."""
    assert LIMIT <= passed(servers, 240, method) <= LIMIT + len(servers)
    servers[0].take_turn(OPERATOR)  # Another caller is not concerned.
    clock.advance(seconds=30)
    assert LIMIT // 2 - len(servers) <= passed(servers, 120, method) <= LIMIT // 2 + len(servers)
    clock.advance(seconds=120)
    assert LIMIT <= passed(servers, 240, method) <= LIMIT + len(servers)


def test_calls_are_counted_together_without_a_write_for_each(servers: list[Registry]):
    written: list[str] = []
    for server in servers:
        event.listen(server._app.database._writer, "begin", lambda _connection: written.append("begin"))
    assert passed(servers, 45) == 45
    assert len(written) <= 20
    before = len(written)
    passed(servers, 300)
    refused_from = len(written)
    assert refused_from - before <= 20
    passed(servers, 300)
    assert len(written) == refused_from, "a refused call writes nothing"


def test_without_the_count_each_server_keeps_its_own_limit(servers: list[Registry], clock: StillEffects):
    with servers[0]._app.database.writing(0) as connection:
        call_pace.drop(connection)
    assert passed(servers[:1], 240) == LIMIT
    with servers[0]._app.database.reading() as connection:
        assert not sa.inspect(connection).has_table("call_pace")
