"""The policies of a folder while people edit it: changes are picked up, mistakes are told and change nothing."""

import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cpq.app.policy_keeper import LOOK_SECONDS, REST_SECONDS, PolicyKeeper
from cpq.base.errors import CpqError
from tests.support.engine import StillEffects
from tests.support.policies import MINIMAL

BROKEN = "validity_days: [\n"


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.write_text(text)
        # The clock of a file system may be coarse, and two writes within one of its steps look alike.
        os.utime(path, ns=(0, len(text)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policies").mkdir()
    write(tmp_path / "policies", MINIMAL)
    return tmp_path / "policies"


@pytest.fixture
def keeper(folder: Path, clock: StillEffects) -> PolicyKeeper:
    return PolicyKeeper(folder, clock)


def later(keeper: PolicyKeeper, clock: StillEffects) -> int:
    """What the policies say of the validity of a quote after the keeper has had time to look."""
    clock.advance(seconds=LOOK_SECONDS)
    return keeper.current().terms.validity_days


def test_a_changed_file_is_picked_up_at_the_next_look(keeper: PolicyKeeper, folder: Path, clock: StillEffects):
    assert keeper.current().terms.validity_days == 30
    write(folder, {"terms.yaml": MINIMAL["terms.yaml"].replace("30", "5", 1)})
    assert keeper.current().terms.validity_days == 30
    assert later(keeper, clock) == 5
    assert keeper.problem is None


def test_while_one_caller_reads_what_changed_the_others_go_on(keeper: PolicyKeeper, folder: Path, clock: StillEffects):
    keeper.current()
    write(folder, {"terms.yaml": MINIMAL["terms.yaml"].replace("30", "5", 1)})
    with keeper._lock:
        assert later(keeper, clock) == 30
    assert later(keeper, clock) == 5


def test_a_file_that_is_being_saved_is_read_when_it_rests(folder: Path):
    clock = StillEffects(datetime.now(UTC))
    keeper = PolicyKeeper(folder, clock)
    keeper.current()
    write(folder, {"terms.yaml": MINIMAL["terms.yaml"].replace("30", "5", 1)})
    (folder / "terms.yaml").touch()
    clock.advance(seconds=(folder / "terms.yaml").stat().st_ctime + REST_SECONDS / 2 - clock.now().timestamp())
    keeper._next_look = 0
    assert keeper.current().terms.validity_days == 30
    assert later(keeper, clock) == 5


@pytest.mark.parametrize("text", ["", "\n", "# to be written\n", "---\n", "~\n"])
def test_a_file_that_was_emptied_takes_no_cap_away(keeper: PolicyKeeper, folder: Path, clock: StillEffects, text: str):
    capped = "ladders: [{id: cap, over: discount, steps: [{id: high, above: 5, then: {severity: block}}]}]"
    write(folder, {"discounts.yaml": capped})
    assert len(keeper.current().ladders) == 1
    write(folder, {"discounts.yaml": text})
    assert later(keeper, clock) == 30
    assert len(keeper.current().ladders) == 1
    assert keeper.problem is not None
    assert "the file is empty" in keeper.problem.message


def test_a_broken_file_is_told_once_while_the_last_good_ones_stay(
    keeper: PolicyKeeper, folder: Path, clock: StillEffects, caplog: pytest.LogCaptureFixture
):
    keeper.current()
    write(folder, {"terms.yaml": BROKEN})
    assert [later(keeper, clock) for _ in range(3)] == [30, 30, 30]
    assert keeper.problem is not None
    assert keeper.problem.message.startswith("terms.yaml, line 2")
    told = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [(record.name, vars(record)["problem"]) for record in told] == [("cpq.policy", keeper.problem.message)]
    write(folder, {"terms.yaml": MINIMAL["terms.yaml"].replace("30", "7", 1)})
    assert later(keeper, clock) == 7
    assert keeper.problem is None


def test_a_folder_that_was_away_is_taken_up_again_as_it_was(
    keeper: PolicyKeeper, folder: Path, clock: StillEffects, caplog: pytest.LogCaptureFixture
):
    keeper.current()
    folder.rename(folder.with_name("away"))
    assert [later(keeper, clock) for _ in range(3)] == [30, 30, 30]
    assert keeper.problem is not None
    assert keeper.problem.message == "There is no folder of policies 'policies'."
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1
    folder.with_name("away").rename(folder)
    assert later(keeper, clock) == 30
    assert keeper.problem is None


def test_without_policies_that_ever_held_there_are_none(keeper: PolicyKeeper, folder: Path, clock: StillEffects):
    write(folder, {"terms.yaml": BROKEN})
    for _ in range(2):
        with pytest.raises(CpqError, match=r"terms\.yaml, line 2"):
            keeper.current()
    write(folder, MINIMAL)
    assert keeper.current().terms.validity_days == 30


def test_a_file_over_which_the_loader_stumbles_is_told_as_long_as_it_is_there(
    keeper: PolicyKeeper, folder: Path, clock: StillEffects, monkeypatch: pytest.MonkeyPatch
):
    """No file is known that does this; it must be as harmless as one that is refused."""
    keeper.current()

    def stumble(*_: object) -> None:
        raise RecursionError("a secret")

    with monkeypatch.context() as patched:
        patched.setattr("cpq.app.policy_files.load_with_texts", stumble)
        write(folder, {"terms.yaml": MINIMAL["terms.yaml"].replace("30", "5", 1)})
        for _ in range(3):
            assert later(keeper, clock) == 30
            assert keeper.problem is not None
            assert keeper.problem.message == "The policies could not be read: RecursionError."
    write(folder, {"terms.yaml": MINIMAL["terms.yaml"].replace("30", "7", 1)})
    assert later(keeper, clock) == 7
    assert keeper.problem is None
