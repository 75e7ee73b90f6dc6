"""Servers and the notes of their addresses: kept while they run, known to be old however they ended."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from cpq.base.running_servers import FOLDER, RunningServer, announced, running

ONE = RunningServer("http://127.0.0.1:8765", 8765, os.getpid(), "2026-03-01T08:00:00Z")
OTHER = RunningServer("http://127.0.0.1:9000", 9000, os.getpid(), "2026-03-01T09:00:00Z")

KILLED = """
import os, signal, sys
from pathlib import Path
from cpq.base.running_servers import RunningServer, announced
with announced(Path(sys.argv[1]), RunningServer("http://127.0.0.1:1", 1, os.getpid(), "2026-03-01T08:00:00Z")):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_home_without_servers_has_none(tmp_path: Path):
    assert running(tmp_path) == []


def test_servers_are_found_while_they_run_the_newest_first(tmp_path: Path):
    with announced(tmp_path, ONE):
        with announced(tmp_path, OTHER):
            assert running(tmp_path) == [OTHER, ONE]
        assert running(tmp_path) == [ONE]
    assert running(tmp_path) == []
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_the_note_of_a_killed_server_is_old_and_goes(tmp_path: Path):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -9
    assert len(list((tmp_path / FOLDER).iterdir())) == 1
    assert running(tmp_path) == []
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_a_note_of_a_process_number_that_lives_again_is_old_too(tmp_path: Path):
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / f"{os.getpid()}-1.json").write_text(json.dumps(asdict(ONE)))
    assert running(tmp_path) == []
