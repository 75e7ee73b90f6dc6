"""The free space of the disk: the rule for given figures, and how often the disk is looked at."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cpq.base.disk_space import LOOK_SECONDS, DiskSpace, free_bytes, shortage
from cpq.base.errors import CpqError
from tests.support.engine import StillEffects


@pytest.mark.parametrize(
    ("free", "least", "found"),
    [
        (199_999_999, 200, "199 MB of the disk are free, fewer than 200 MB"),
        (200_000_000, 200, None),
        (0, 200, "0 MB of the disk are free, fewer than 200 MB"),
        (0, 0, None),
        (5_000_000_000, 10_000, "5,000 MB of the disk are free, fewer than 10,000 MB"),
    ],
)
def test_a_disk_has_room_at_its_limit_and_not_below(free: int, least: int, found: str | None):
    assert shortage(free, least) == found


def test_the_disk_is_looked_at_every_few_seconds_and_has_room_again_by_itself():
    effects = StillEffects(datetime(2026, 1, 1, tzinfo=UTC))
    figures = [1, 1, 900_000_000]
    space = DiskSpace(Path("/"), 200, effects, look=lambda _folder: figures.pop(0))
    for _ in range(5):
        with pytest.raises(CpqError, match="0 MB of the disk are free"):
            space.require_room()
    assert len(figures) == 2
    effects.advance(seconds=LOOK_SECONDS)
    assert space.problem is not None
    effects.advance(seconds=LOOK_SECONDS)
    space.require_room()
    assert not figures


def test_the_disk_of_a_folder_that_is_not_there_yet_is_known(tmp_path: Path):
    assert free_bytes(tmp_path / "not" / "yet") > 0
