"""How much a command loads: a person waits for every module that it imports."""

from __future__ import annotations

import json
import os
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
    "openpyxl": "workbooks",
    "psycopg": "PostgreSQL",
    "pydantic": "files and tools",
    "rich": "progress bars",
    "starlette": "the server",
    "sqlalchemy": "the database",
    "sqlalchemy.dialects.postgresql": "PostgreSQL",
    "uvicorn": "the server",
    "weasyprint": "PDFs",
}
"""Packages that a command on a small SQLite store may do without, and what they are for."""

SCRIPT = """
import sys
from cpq.cli import main
code = main(sys.argv[1:])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""

NEEDED = {
    "token list": (430, {"sqlalchemy"}),
    "audit show": (440, {"sqlalchemy"}),
    "events list": (430, {"sqlalchemy"}),
    "quote list": (430, {"sqlalchemy"}),
    "approvals list": (535, {"sqlalchemy"}),
    "policy check": (350, {"pydantic"}),
    "console link --user dana": (455, {"sqlalchemy"}),
    "import accounts accounts.csv": (540, {"sqlalchemy", "pydantic"}),
    "export catalog": (515, {"sqlalchemy", "pydantic"}),
    "search find pump": (645, {"sqlalchemy", "numpy", "rich"}),
    "doctor": (765, {"sqlalchemy", "pydantic", "babel", "numpy"}),
}
"""How many modules each command may have loaded at its end, a little more than it needs, and which heavy packages."""

ACCOUNTS = "id,name,segment,region,country,tax_zone\nacct_new,New Ltd,smb,emea,DE,eu\n"


def test_each_command_loads_only_what_it_needs(todays_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "accounts.csv").write_text(ACCOUNTS)
    _ran("token", "grant", "--name", "dana", "--role", "sales_manager")
    loaded = {command: _ran(*command.split()) for command in NEEDED}
    needless = {command: sorted(HEAVY.keys() & modules - NEEDED[command][1]) for command, modules in loaded.items()}
    assert needless == {command: [] for command in NEEDED}
    too_many = {command: len(modules) for command, modules in loaded.items() if len(modules) > NEEDED[command][0]}
    assert too_many == {}


def test_a_failed_command_that_reads_no_store_loads_no_database_driver(tmp_path: Path):
    loaded = _ran("policy", "test", str(tmp_path), code=1)
    assert "sqlalchemy" not in loaded


def test_the_help_of_a_group_loads_none_of_its_commands():
    loaded = _ran("quote", "--help")
    assert "sqlalchemy" not in loaded


def test_a_server_that_only_searches_loads_nothing_of_deals(todays_home: Path, tmp_path: Path):
    """What it does not load, it does not hold: rules, prices, quotes, documents and the other toolsets."""
    chunk = {"id": "c1", "chunk_type": "documentation", "title": "Belts", "text": "Change belts.", "tags": []}
    (tmp_path / "belt-chunks.json").write_text(json.dumps({"chunks": [chunk]}))
    environment = {**os.environ, "CPQ_CHUNKS_DIR": str(tmp_path), "CPQ_TOOLSETS": "context"}
    run = [sys.executable, "-c", SCRIPT.replace("cpq.cli", "mcp_facade.__main__")]
    served = subprocess.run(run, capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL)
    assert served.returncode == 0, served.stderr
    loaded = set(served.stderr.splitlines()[-1].split())
    needless = ("cpq.domain.p", "cpq.services.", "cpq.retrieval.web", "cpq.retrieval.equipment.", "cpq.console")
    packages = {"cpq.services." + name for name in ("agreements", "approvals", "documents", "quotes")}
    assert "cpq.retrieval.context.commands" in loaded
    assert sorted(name for name in loaded - packages if name.startswith(needless)) == []


def _ran(*arguments: str, code: int = 0) -> set[str]:
    """The modules that are loaded when the command has ended."""
    ran = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr
    return set(ran.stderr.splitlines()[-1].split())
