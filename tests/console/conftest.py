"""Fixtures for the console: a server with sample data, over plain HTTP and in a real browser."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from cpq.base.settings import Settings, read_settings
from tests.support import chromium, engine
from tests.support.console import WAIT_SECONDS, Console, serving


@pytest.fixture
def console(store: Settings, clock: engine.StillEffects) -> Iterator[Console]:
    """The server on each database, with a clock that the test moves."""
    with serving(store, clock) as running:
        yield running


@pytest.fixture
def sqlite_console(sqlite_template: Path, tmp_path: Path, clock: engine.StillEffects) -> Iterator[Console]:
    """The server on SQLite alone, for what cannot depend on the database."""
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    with serving(read_settings({}, home=tmp_path), clock) as running:
        yield running


@pytest.fixture
def live_console(sqlite_template: Path, tmp_path: Path) -> Iterator[Console]:
    """The server with a clock that runs, for a real browser."""
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    with serving(read_settings({}, home=tmp_path)) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium. It goes with its module: while it runs, Playwright holds the event loop of the thread."""
    with sync_playwright() as playwright:
        # A library that moves the clock of the tests makes Chromium spin; ages of cookies are relative.
        environment: dict[str, str | float | bool] = {**os.environ, "LD_PRELOAD": ""}
        started = playwright.chromium.launch(
            executable_path=chromium.find(), args=chromium.FLAGS, env=environment, timeout=1_000 * WAIT_SECONDS
        )
        yield started
        started.close()
