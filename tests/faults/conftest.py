"""Fixtures of the fault tests."""

import pytest

from cpq.app import App
from tests.support.engine import Tools


@pytest.fixture
def sqlite_tools(sqlite_app: App) -> Tools:
    return Tools(sqlite_app)
