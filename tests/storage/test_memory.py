"""A process's memory does not follow the size of its store."""

import sys
from pathlib import Path

import pytest

from cpq.app import App
from tests.support.engine import Tools
from tests.support.quotes import SEATS, new_quote


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux lists what a process maps.")
def test_a_server_maps_no_page_of_its_database_file(app: App):
    tools = Tools(app)
    for _ in range(3):
        new_quote(tools, SEATS)
    tools("quote_list", limit=5)
    mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    assert [name for name in mapped if name.endswith(".db")] == []
