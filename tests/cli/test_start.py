"""How much a command loads: a person waits for every module that it imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "alembic": "migrations",
    "babel": "documents",
    "httpx2": "sign-in",
    "jinja2": "documents and pages",
    "mcp": "the server",
    "numpy": "search by meaning",
    "prometheus_client": "the metrics of a server",
    "psycopg": "PostgreSQL",
    "rich": "progress bars",
    "starlette": "the server",
    "sqlalchemy.dialects.postgresql": "PostgreSQL",
    "uvicorn": "the server",
    "weasyprint": "PDFs",
}
"""Packages that a command on a small SQLite store does without, and what they are for."""

SCRIPT = """
import sys
from cpq.cli import main
code = main(sys.argv[1:])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""

MODULES_MAX = {
    "token list": 490,
    "audit show": 490,
    "events list": 500,
    "quote list": 540,
    "approvals list": 560,
    "policy check": 560,
    "console link --user dana": 520,
}
"""How many modules each command may have loaded at its end, a little more than it needs today."""


@pytest.mark.parametrize("command", list(MODULES_MAX))
def test_a_command_loads_only_what_it_needs(todays_home: Path, command: str):
    if command.startswith("console"):
        _ran("token", "grant", "--name", "dana", "--role", "sales_manager")
    loaded = _ran(*command.split())
    found = {name: HEAVY[name] for name in HEAVY if name in loaded}
    assert not found
    assert len(loaded) <= MODULES_MAX[command]


def test_the_help_of_a_group_loads_none_of_its_commands():
    loaded = _ran("quote", "--help")
    assert "sqlalchemy" not in loaded


def _ran(*arguments: str) -> set[str]:
    """The modules that are loaded when the command has ended."""
    ran = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=True)
    return set(ran.stderr.splitlines()[-1].split())
