"""Where settings come from: flags, the environment, and a file that only the operator can have written."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from cpq.app import unusable
from cpq.base.errors import Code, CpqError
from cpq.base.settings import read_settings
from tests.support.engine import open_app

POLICIES = "CPQ_POLICIES_DIR=/file\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_of_the_current_folder_decides_nothing(folder: Path):
    """A server started in a hostile folder once took that folder's policies."""
    (folder / ".env").write_text(POLICIES)
    (folder / ".cpq").mkdir()
    (folder / ".cpq" / ".env").write_text(POLICIES)
    assert read_settings({}).policies_dir is None


def test_flags_override_the_environment_which_overrides_the_file(folder: Path):
    home = folder / "home"
    home.mkdir()
    (home / ".env").write_text("# A comment=1\nexport CPQ_POLICIES_DIR='/file'\nMCP_PORT=1\nMCP_HOST=::1\n")
    given = read_settings({"CPQ_HOME": str(home), "MCP_PORT": "2", "MCP_HOST": "localhost"}, host="127.0.0.1")
    assert (given.policies_dir, given.port, given.host) == (Path("/file"), 2, "127.0.0.1")
    assert read_settings({}, home=home).port == 1


def test_a_named_file_is_read_instead_of_that_of_the_home(folder: Path):
    (folder / "home").mkdir()
    (folder / "home" / ".env").write_text("MCP_PORT=1\n")
    (folder / "other").write_text("CPQ_HOME=elsewhere\n")
    given = read_settings({"CPQ_HOME": "home"}, env_file=Path("other"))
    assert (given.home, given.port) == (Path("home"), 8765)
    assert read_settings({}, env_file=Path("other")).home == Path("elsewhere")
    assert read_settings({"CPQ_HOME": "home"}).port == 1


def test_a_named_file_that_does_not_exist_is_refused(folder: Path):
    with pytest.raises(CpqError, match=r"There is no file .*absent"):
        read_settings({}, env_file=folder / "absent")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://app:se:cr/et@host:5432/cpq",
        "postgresql+psycopg:/app:secret@host/cpq",
        "postgresql+psycopg://app:secret@host:port/cpq",
        "postgresql+psycopg://app:sec@ret@host/cpq",
        "app:secret@host/cpq",
        "nonsense://app:secret@host/cpq",
        "postgresql+psycopg://host/cpq?user=app&password=secret",
    ],
)
def test_a_database_address_never_shows_its_password(address: str):
    settings = read_settings({}, database_url=address)
    assert not re.search("sec|cr|ret", settings.database_name)
    assert "host" in settings.database_name
    assert not re.search("sec|et@|/et", unusable(settings, ValueError(address)).message)


def test_an_address_that_cannot_be_parsed_is_refused_in_words():
    with pytest.raises(CpqError, match="cannot be parsed"):
        open_app(read_settings({}, database_url="postgresql+psycopg://app:secret@host:port/cpq"))


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_can_change_is_refused(folder: Path, mode: int):
    (folder / ".env").write_text(POLICIES)
    (folder / ".env").chmod(mode)
    with pytest.raises(CpqError, match="can be changed by other users") as refused:
        read_settings({}, home=folder)
    assert refused.value.code is Code.VALIDATION_ERROR
    assert "chmod go-w" in str(refused.value.details["hint"])


def test_a_file_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / ".env").write_text(POLICIES)
    owner = (folder / ".env").stat().st_uid
    if owner == 0:  # Only root can give a file away, and only another user's file can be refused.
        os.chown(folder / ".env", 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(CpqError, match="belongs to another user"):
        read_settings({}, home=folder)


@pytest.mark.parametrize("kind", ["folder", "pipe", "large"])
def test_what_is_no_small_file_is_refused_and_never_waited_for(folder: Path, kind: str):
    path = folder / ".env"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(b"A" * 1_000_001)
    with pytest.raises(CpqError, match=r"The file of settings .*\.env (is|cannot)"):
        read_settings({}, home=folder)
