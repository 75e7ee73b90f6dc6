"""Fixtures for tests that go through the tools."""

import pytest

from cpq.app import App
from tests.support.engine import Tools


@pytest.fixture
def tools(app: App) -> Tools:
    return Tools(app)


@pytest.fixture
def sqlite_tools(sqlite_app: App) -> Tools:
    return Tools(sqlite_app)
