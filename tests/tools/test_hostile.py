"""Whatever a client sends to any tool, it gets a result or the envelope, and nothing else happens: Q-01, Q-02, Q-10."""

import atexit
import json
import logging
import random
import re
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cpq.app.access import Principal, Role
from cpq.base.errors import Code
from cpq.base.settings import Settings, read_settings
from cpq.retrieval.context import indexer
from mcp_facade.envelope import Reply
from mcp_facade.registry import Tool
from mcp_facade.toolsets import ALL_TOOLS
from tests.support import engine
from tests.support.engine import Tools, open_app
from tests.support.hostile_arguments import SCRIPTS, SERVER_OWNED, SYNTAX, Maker, one_by_one

SEED = 20261116
CALLS = 100
CALLS_ON_POSTGRESQL = 50
CALLS_TO_COMPARE = 50
CALLS_OF_PROOF = 50_000
ONE_BY_ONE_MAX = 500
"""A tool with lists of lines has thousands of places for a hostile value; `proof` tries them all."""

ERROR_LENGTH_MAX = 10_000
REFUSED_AGAIN_MAX = 300
OUR_FAULTS = {Code.INTERNAL_ERROR, Code.UNAVAILABLE, Code.TIMEOUT, Code.RATE_LIMITED}
VOLATILE = {
    "total_ms",
    "created_at",
    "updated_at",
    "query_ms",
    "uptime_seconds",
    "last_indexed",
    "db_path",
    "db_size_bytes",
}

each_tool = pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Thousands of calls leave thousands of lines; only a crash is worth keeping."""
    caplog.set_level(logging.ERROR, logger="cpq")


@pytest.fixture(autouse=True)
def _nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name of a host is looked up: it would be looked for outside, which takes long and is nobody's business."""
    known = socket.getaddrinfo

    def look_up(host: Any, *rest: Any, **options: Any) -> Any:
        if host in (None, "localhost") or re.fullmatch(r"[0-9a-f.:]+", str(host)):
            return known(host, *rest, **options)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.fixture
def unlimited(store: Settings) -> Iterator[Tools]:
    with opened(store) as tools:
        yield tools


@pytest.fixture
def sqlite_unlimited(sqlite_template: Path, tmp_path: Path) -> Iterator[Tools]:
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    with opened(read_settings({}, home=tmp_path)) as tools:
        yield tools


@cache
def roots() -> dict[str, Path]:
    """Pages and chunks for the toolsets that read folders, outside any repository."""
    folder = Path(tempfile.mkdtemp(prefix="cpq-hostile-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    docs = shutil.copytree(engine.SAMPLE / "handbook" / "terms", folder / "docs" / "terms").parent
    indexer.make(docs, folder / "chunks", datetime(2026, 11, 16, tzinfo=UTC))
    return {"docs_dir": docs, "chunks_dir": folder / "chunks"}


@contextmanager
def opened(settings: Settings) -> Iterator[Tools]:
    app = open_app(settings.model_copy(update={"rate_limit_per_minute": 0, "web_pause_seconds": 0.0, **roots()}))
    yield Tools(app)
    app.close()


def made_arguments(tool: Tool, seed: int = SEED) -> Iterator[dict[str, Any]]:
    maker = Maker(tool.input_schema, seed)
    while True:
        yield maker.arguments()


def some_by_one(tool: Tool, most: int = ONE_BY_ONE_MAX, **options: Any) -> list[dict[str, Any]]:
    every = list(one_by_one(tool.input_schema, **options))
    return every if len(every) <= most else random.Random(SEED).sample(every, most)


def shown(arguments: Mapping[str, Any]) -> str:
    """For the message of a failed test; some values are too long or too deep to print."""
    try:
        return ascii(dict(arguments))[:2000]
    except (RecursionError, ValueError):
        return ", ".join(f"{name!a}: {type(value)}" for name, value in arguments.items())[:2000]


class Judge:
    """Holds every reply of one tool to the contract."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._schema = Draft202012Validator(tool.output_schema)
        self._seen: set[str] = set()

    def check(self, reply: Reply, arguments: Mapping[str, Any]) -> None:
        assert reply.code not in OUR_FAULTS, f"{reply.body} for {shown(arguments)}"
        text = reply.text
        if text in self._seen:
            return
        self._seen.add(text)
        assert json.loads(text.encode().decode()) == reply.body, shown(arguments)
        assert self._schema.is_valid(reply.body), f"{text[:2000]} for {shown(arguments)}"
        if reply.is_error:
            assert reply.body.keys() == {"error"}, shown(arguments)
            assert reply.body["error"].keys() == {"code", "message", "details"}, shown(arguments)
            assert len(text) < ERROR_LENGTH_MAX, f"{len(text)} characters for {shown(arguments)}"


def call_with_each(tools: Tools, tool: Tool, calls: Iterable[dict[str, Any]]) -> None:
    """Judge every reply; then show that reads and refused writes leave every table as it was."""
    judge = Judge(tool)
    refused: list[dict[str, Any]] = []
    before = engine.row_counts(tools.app)
    for arguments in calls:
        reply = tools.reply(tool.name, arguments)
        judge.check(reply, arguments)
        if reply.is_error and tool.writes and len(refused) < REFUSED_AGAIN_MAX:
            refused.append(arguments)
    if tool.writes:
        before = engine.row_counts(tools.app)
        for arguments in refused:
            assert tools.reply(tool.name, arguments).is_error
    assert engine.row_counts(tools.app) == before


@each_tool
def test_q01_no_arguments_bring_anything_but_a_result_or_the_envelope(unlimited: Tools, tool: Tool):
    if unlimited.app.settings.is_sqlite:
        call_with_each(unlimited, tool, chain(some_by_one(tool), islice(made_arguments(tool), CALLS)))
    else:
        call_with_each(unlimited, tool, islice(made_arguments(tool), CALLS_ON_POSTGRESQL))


@pytest.mark.proof
@each_tool
@pytest.mark.parametrize("seed", range(4))
def test_q01_very_many_arguments_bring_nothing_else_either(sqlite_unlimited: Tools, tool: Tool, seed: int):
    call_with_each(sqlite_unlimited, tool, islice(made_arguments(tool, seed), CALLS_OF_PROOF // 4))


@pytest.mark.proof
@each_tool
def test_q01_no_hostile_value_in_any_place_does(sqlite_unlimited: Tools, tool: Tool):
    call_with_each(sqlite_unlimited, tool, one_by_one(tool.input_schema))


@each_tool
def test_both_databases_answer_alike(sqlite_unlimited: Tools, cluster, postgres_template: str, tool: Tool):
    database = engine.copy_of(cluster, postgres_template)
    texts = some_by_one(tool, values=(*SYNTAX, *SCRIPTS), most=ONE_BY_ONE_MAX // 4)
    with opened(read_settings({}, database_url=cluster.url(database))) as postgres_unlimited:
        for arguments in chain(texts, islice(made_arguments(tool), CALLS_TO_COMPARE)):
            one = sqlite_unlimited.reply(tool.name, arguments)
            other = postgres_unlimited.reply(tool.name, arguments)
            assert one.code == other.code, shown(arguments)
            if one.is_error or not tool.writes:
                assert lasting(one.body) == lasting(other.body), shown(arguments)
    cluster.drop_database(database)


def lasting(value: Any) -> Any:
    """Without what depends on when the two databases were filled."""
    if isinstance(value, dict):
        return {name: lasting(part) for name, part in value.items() if name not in VOLATILE}
    if isinstance(value, str):
        return re.sub(r"\d+ms", "ms", value)
    return [lasting(part) for part in value] if isinstance(value, list) else value


GIVEN_OUT = {"guided_selling"}
"""Tools with an argument that only they give out: a made-up state is refused, whatever its form."""

BEYOND_A_SCHEMA = {"product_configure": ("/locked", "/options"), "quote_check": ("/quote_id", "/line_items")}
"""Arguments that no schema bounds: the names of one product's options, and two ways to say what is checked."""

HERE = [tool for tool in ALL_TOOLS if not tool.writes and not tool.is_open_world and tool.name not in GIVEN_OUT]


@pytest.mark.parametrize("tool", HERE, ids=lambda tool: tool.name)
def test_what_the_schema_allows_is_understood(sqlite_unlimited: Tools, tool: Tool):
    maker = Maker(tool.input_schema, SEED)
    replies = [sqlite_unlimited.reply(tool.name, maker.valid_arguments()) for _ in range(200)]
    beyond = BEYOND_A_SCHEMA.get(tool.name, ())
    # None of these are there to be found.
    if tool.subject not in ("quote_id", "agreement_id", "order_id") and "/line_items" not in beyond:
        assert "OK" in {reply.code for reply in replies}
    for reply in replies:
        if reply.code not in ("OK", Code.NOT_FOUND):
            assert reply.code == Code.VALIDATION_ERROR
            assert reply.body["error"]["details"]["field"].startswith(beyond or ("nothing",)), reply.body


@each_tool
@pytest.mark.parametrize("field", SERVER_OWNED)
def test_what_the_server_owns_cannot_be_sent(sqlite_unlimited: Tools, tool: Tool, field: str):
    if field in tool.input_schema["properties"]:
        pytest.skip("an argument of this tool")
    before = engine.row_counts(sqlite_unlimited.app)
    arguments = Maker(tool.input_schema, SEED).valid_arguments()
    everybody = Tools(sqlite_unlimited.app, principal=Principal("all", "human", frozenset(Role)))
    error = everybody.error(tool.name, **arguments, **{field: "x"})
    assert (error["code"], error["details"]["field"]) == (Code.VALIDATION_ERROR, f"/{field}")
    assert engine.row_counts(sqlite_unlimited.app) == before


def test_q03_only_the_first_of_very_many_refused_arguments_are_named(sqlite_unlimited: Tools):
    error = sqlite_unlimited.error("catalog_search", query="air", **{f"f{number}": 1 for number in range(100_000)})
    assert error["message"] == "/f0: is not an argument of this tool (and 99999 more)"
    assert len(error["details"]["problems"]) == 20


@pytest.mark.parametrize("name", ["", "catalog_serch", "x" * 100_000, "\0", "\ud800", "../x", "__init__"])
def test_q01_an_unknown_tool_is_answered_in_the_envelope(sqlite_unlimited: Tools, name: str):
    error = sqlite_unlimited.error(name)
    assert error["code"] == Code.NOT_FOUND
    assert "catalog_search" in error["details"]["allowed"]
    assert len(json.dumps(error)) < ERROR_LENGTH_MAX
