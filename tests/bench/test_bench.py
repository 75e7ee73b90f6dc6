"""The benchmarks themselves still run; what they measure is for people to judge, never for an assertion."""

import subprocess
import sys

import pytest


@pytest.mark.proof
def test_the_benchmarks_run_to_their_end():
    command = [sys.executable, "-m", "tests.bench", "--products", "12000", "--quotes", "500", "--stored", "500"]
    command += ["--seconds", "2", "--pending", "200", "--lines", "2000", "--chunks", "1000", "--calls", "6000"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "12,000 products" in ran.stdout
    assert "500 stored quotes" in ran.stdout
    assert "queue of 200" in ran.stdout
