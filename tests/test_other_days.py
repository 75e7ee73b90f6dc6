"""The suite passes on any day: what goes by the real clock runs once more with the clock of the machine moved ahead."""

import os
import subprocess
import sys
from pathlib import Path

import libfaketime
import pytest

from tests.support.engine import STARTED

ROOT = Path(__file__).parent.parent
DAYS_AHEAD = 400
LIBRARY = Path(libfaketime.__file__).parent / "vendor/libfaketime/src/libfaketime.so.1"
"""Moves the clock of a process and its children."""


@pytest.mark.proof
@pytest.mark.skipif(sys.platform != "linux", reason="the library is built for Linux")
def test_what_goes_by_the_real_clock_passes_400_days_ahead(tmp_path: Path):
    environment = {
        **{name: value for name, value in os.environ.items() if name != STARTED},
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME": f"+{DAYS_AHEAD}d",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # Waiting and measuring go on as usual.
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "today and not proof"]
    on_sqlite = ("-k", "not postgresql")  # What depends on the day does so on both databases.
    ran = subprocess.run(
        [*command, *on_sqlite, f"--basetemp={tmp_path / 'ahead'}"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1_200,
    )
    assert ran.returncode == 0, ran.stdout[-8_000:] + ran.stderr[-2_000:]
