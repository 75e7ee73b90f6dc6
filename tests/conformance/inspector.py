"""What the Inspector's command line must say about our server, in both eras and over both transports."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_facade import house_template
from mcp_facade.prompts import PROMPT_NAME
from mcp_facade.toolsets import ALL_TOOLS
from tests.conformance import node, servers

ERAS = ("legacy", "modern")
TRANSPORTS = ("stdio", "http")
EXIT_OK = 0
EXIT_TOOL_ERROR = 5

Result = dict[str, Any]


@dataclass(frozen=True)
class Inspection:
    """One command, the exit code it must end with, and what its result must hold."""

    name: str
    arguments: tuple[str, ...]
    is_right: Callable[[Result], bool]
    exit_code: int = EXIT_OK


@dataclass(frozen=True)
class Finding:
    inspection: str
    era: str
    transport: str
    problem: str | None


def inspect(url: str, home: Path) -> list[Finding]:
    """Make every inspection in every era over every transport, two at a time."""
    cases = [(case, era, transport) for case in INSPECTIONS for era in ERAS for transport in TRANSPORTS]

    def look(case: Inspection, era: str, transport: str) -> Finding:
        target = ["--transport", "http", "--server-url", url] if transport == "http" else list(_stdio(home))
        done = node.run_inspector(["--protocol-era", era, *case.arguments, *target], home)
        return Finding(case.name, era, transport, _problem(case, done.returncode, done.stdout, done.stderr))

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(look, *zip(*cases, strict=True)))


def _stdio(home: Path) -> Iterator[str]:
    yield from ("--cwd", str(home))
    for name, value in servers.environment(home).items():
        yield from ("-e", f"{name}={value}")
    yield from ("--", sys.executable, "-m", "mcp_facade")


def _problem(case: Inspection, exit_code: int, output: str, complaint: str) -> str | None:
    said = f"{output[:1500]}\n{complaint[:3000]}".strip()
    if exit_code != case.exit_code:
        return f"exit code {exit_code}, expected {case.exit_code}\n{said}"
    try:
        is_right = case.is_right(json.loads(output)["result"])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        return f"the answer could not be read: {error!r}\n{said}"
    return None if is_right else f"unexpected answer\n{said}"


def _names(listed: list[Result], key: str) -> list[str]:
    return [entry[key] for entry in listed]


def _is_twin(result: Result) -> bool:
    """The text of a tool's result is the same JSON as its structured part."""
    return bool(json.loads(result["content"][0]["text"]) == result["structuredContent"])


def _is_found(result: Result) -> bool:
    items = result["structuredContent"]["items"]
    return _is_twin(result) and not result.get("isError") and items[0]["id"] == "prod_pro_v2"


def _is_envelope(result: Result, code: str) -> bool:
    error = result["structuredContent"]["error"]
    return _is_twin(result) and result["isError"] is True and error["code"] == code and set(error) == ENVELOPE


ENVELOPE = {"code", "message", "details"}
TOOLS = [tool.name for tool in ALL_TOOLS if tool.toolset not in ("docs", "context")]
"""Those two appear with the folder that they read, and there is none here."""

RESOURCES = ["template://house/conventions", "template://house/quote"]
RESOURCE_TEMPLATES = ["product://{product_id}", "quote://{quote_id}/pdf", "template://house/characteristics/{category}"]

INSPECTIONS = (
    Inspection(
        "tools/list --strict",
        ("--method", "tools/list", "--strict"),
        lambda result: _names(result["tools"], "name") == TOOLS,
    ),
    Inspection(
        "tools/call, good",
        ("--method", "tools/call", "--tool-name", "catalog_search", "--tool-args-json", '{"query": "pro plan"}'),
        _is_found,
    ),
    Inspection(
        "tools/call, failing",
        ("--method", "tools/call", "--tool-name", "catalog_get", "--tool-args-json", '{"product_id": "nothing"}'),
        lambda result: _is_envelope(result, "NOT_FOUND"),
        EXIT_TOOL_ERROR,
    ),
    Inspection(
        "resources/list",
        ("--method", "resources/list"),
        lambda result: sorted(_names(result["resources"], "uri")) == RESOURCES,
    ),
    Inspection(
        "resources/templates/list",
        ("--method", "resources/templates/list"),
        lambda result: sorted(_names(result["resourceTemplates"], "uriTemplate")) == RESOURCE_TEMPLATES,
    ),
    Inspection(
        "resources/read",
        ("--method", "resources/read", "--uri", "product://prod_pro_v2"),
        lambda result: json.loads(result["contents"][0]["text"])["id"] == "prod_pro_v2",
    ),
    Inspection(
        "prompts/list",
        ("--method", "prompts/list"),
        lambda result: sorted(_names(result["prompts"], "name")) == sorted([PROMPT_NAME, house_template.PROMPT_NAME]),
    ),
)
