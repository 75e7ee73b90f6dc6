"""Floods of one caller refuse nothing to another; how long that one waits, `python -m tests.bench` shows."""

from pathlib import Path

import pytest

from tests.bench import floods


@pytest.mark.proof
@pytest.mark.usefixtures("real_clock")
@pytest.mark.parametrize("name", list(floods.FLOODS))
def test_a_flood_of_one_caller_refuses_nothing_to_another(tmp_path: Path, name: str):
    found = floods.measure(tmp_path, (name,))
    assert found[f"{name}: refusals of the second caller"] == 0, found
