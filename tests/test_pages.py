"""README and the guide are true: each of their blocks is run, page by page and in order, in a new folder."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import click
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from cpq.base.clock import Effects
from cpq.cli import root
from tests.support import pages

PAGES = [pages.ROOT / "README.md", *sorted((pages.ROOT / "cpq" / "guide").glob("*.md"))]
WITH_BLOCKS = [page for page in PAGES if pages.blocks(page)]
OPTION = re.compile(r"^--?[a-z]")


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.stem)
def test_a_page_can_be_followed_from_its_first_line_to_its_last(page: Path, tmp_path: Path, real_clock: Effects):
    (tmp_path / "here").mkdir()
    with pages.reader(tmp_path / "here") as here:
        for block in pages.blocks(page):
            if not block.reason:
                pages.run(block, here)


def test_what_is_not_run_says_why_in_words_of_a_closed_list():
    given = {block.reason for page in PAGES for block in pages.blocks(page) if block.reason}
    assert given - pages.REASONS.keys() == set()


def test_the_runner_sees_a_command_that_fails_and_an_output_that_is_not_there(tmp_path: Path):
    (tmp_path / "here").mkdir()
    with pages.reader(tmp_path / "here") as here:
        pages.run(_block("sh", "export name=one; echo first $name; mkdir sub; cd sub"), here)
        pages.run(_block("text", "first …\n"), here)
        with pytest.raises(AssertionError, match="not in the output"):
            pages.run(_block("text", "second\n"), here)
        pages.run(_block("json", '{"a": 1}', "deep/a.json"), here)
        with pytest.raises(AssertionError, match="no yaml"):
            pages.run(_block("yaml", "a: [", "a.yaml"), here)
        with pytest.raises(AssertionError, match="exit code 3"):
            pages.run(_block("sh", '[ "$(basename "$PWD") $name" = "sub one" ]; (exit 3); echo never'), here)


def _block(language: str, text: str, name: str = "") -> pages.Block:
    return pages.Block("here.md", 1, language, name, text, "")


def _servers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every server that a page tells a client to use."""
    for page in PAGES:
        for block in pages.blocks(page):
            if block.language == "json":
                read = json.loads(block.text)
                for server in {**read.get("mcpServers", {}), **read.get("servers", {})}.values():
                    yield f"{page.stem}-{block.line}", server


@pytest.mark.parametrize("server", [pytest.param(one, id=place) for place, one in _servers()])
def test_a_client_with_the_settings_of_a_page_reaches_the_tools(
    server: dict[str, Any], sqlite_template: Path, tmp_path: Path, real_clock: Effects
):
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    variables = {"CPQ_HOME": str(tmp_path), "PYTHONPATH": str(pages.ROOT)}
    if "url" in server:
        with pages.reader(tmp_path) as here:
            (tmp_path / "home").mkdir()
            pages.run(_block("sh", f"CPQ_HOME={tmp_path} cpq serve --transport streamable-http", "server"), here)
            address = server["url"].replace(pages.PORT, str(here.port))
            assert server["headers"]["Authorization"].startswith("Bearer ")
            assert "quote_create" in anyio.run(_names_over_http, address)
        return
    assert Path(server["command"]).name == "cpq"
    program = ["-c", "import sys; from cpq.cli import main; sys.exit(main())", *server["args"]]
    given = StdioServerParameters(command=sys.executable, args=program, env={**server["env"], **variables})
    assert "quote_create" in anyio.run(_names, given)


async def _names(server: StdioServerParameters) -> list[str]:
    async with Client(server) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


async def _names_over_http(address: str) -> list[str]:
    async with httpx2.AsyncClient() as http, Client(streamable_http_client(address, http_client=http)) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_only_commands_and_options_that_exist(page: Path):
    text = page.read_text(encoding="utf-8")
    wrong = [call for call in re.findall(r"`(?:[A-Z_]+=\S+ )*(cpq [^`]+)`", text) if not _exists(shlex.split(call)[1:])]
    assert wrong == []


def _exists(words: list[str]) -> bool:
    """Whether these words lead to a command that has the options among them."""
    command: click.Command = root
    options = _options(root)
    rest = iter(words)
    for word in rest:
        if OPTION.match(word):
            name, _, value = word.partition("=")
            if name not in options:
                return False
            if options[name] and not value:
                next(rest, None)
        elif isinstance(command, click.Group) and re.fullmatch(r"[a-z]+", word):
            found = command.get_command(click.Context(root), word)
            if found is None:
                return False
            command = found
            options |= _options(command)
    return True


def _options(command: click.Command) -> dict[str, bool]:
    """Every option, and whether it takes a value."""
    own = [part for part in command.params if isinstance(part, click.Option)]
    return {"--help": False} | {name: not part.is_flag for part in own for name in (*part.opts, *part.secondary_opts)}
