"""The official conformance suite, the Inspector and a TypeScript client, as one long test."""

import subprocess
import sys

import pytest

from tests.conformance.servers import ROOT


@pytest.mark.proof
def test_the_server_conforms_to_both_protocol_eras():
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
