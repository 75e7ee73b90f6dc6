"""What the tests of the command line share: a home of their own, and a way to run `cpq` in it."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cpq.base.clock import Effects
from cpq.cli import main
from tests.support import postgres
from tests.support.engine import RunningEffects

try:
    import pysqlite3 as sqlite_driver
except ImportError:
    import sqlite3 as sqlite_driver


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


Run = Callable[..., Ran]
SignIn = Callable[[str, str], None]


@pytest.fixture
def empty_home(cluster: postgres.Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which nothing has been done yet; no setting of the machine reaches the test.

    The cluster is found by a variable that this removes, so that it comes first.
    """
    for name in list(os.environ):
        if name.startswith(("CPQ_", "MCP_")) or name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CPQ_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("sample")
    assert main(["--home", str(home), "init", "--sample"], RunningEffects()) == 0
    return home


@pytest.fixture
def home(empty_home: Path, sample_home: Path) -> Path:
    """A home with the sample data."""
    shutil.copytree(sample_home, empty_home)
    return empty_home


@pytest.fixture
def todays_home(empty_home: Path, real_clock: Effects) -> Path:
    """A home with the sample data for commands in processes of their own."""
    assert main(["init", "--sample"], real_clock) == 0
    return empty_home


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Runs `cpq` with these arguments in this process; logging is afterwards as it was before."""
    handlers, level = logging.root.handlers[:], logging.root.level

    def run_once(*arguments: object) -> Ran:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments], RunningEffects())
        return Ran(code, *capfd.readouterr())

    yield run_once
    logging.captureWarnings(False)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture
def signs_in(run: Run, monkeypatch: pytest.MonkeyPatch) -> SignIn:
    """Gives a person a token and the shell its secret, so that commands are done in their name."""

    def sign_in(name: str, role: str) -> None:
        monkeypatch.setenv("CPQ_TOKEN", run("token", "create", "--name", name, "--role", role).out.strip())

    return sign_in


def query(home: Path, statement: str, *values: object) -> list[Any]:
    """Look into the database, or change it behind the product's back.

    With the product's own driver: of two copies of SQLite in one process, either drops the locks of the other.
    """
    connection = sqlite_driver.connect(home / "quotewright.db")
    try:
        with connection:
            return connection.execute(statement, values).fetchall()
    finally:
        connection.close()
