"""Policy folders on the command line: the default, and the name of the folder in failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpq.app.access import DECIDERS
from cpq.app.policy_files import load
from cpq.base.errors import CpqError
from cpq.base.late_modules import LateModule
from cpq.base.settings import shipped
from cpq.base.text import shown_on_one_line
from cpq.cli.chosen_settings import own_settings_of, settings_of
from cpq.cli.common_options import Options
from cpq.domain.policy.policy_set import PolicySet

if TYPE_CHECKING:
    from cpq.cli import local_app
else:
    local_app = LateModule("cpq.cli.local_app")  # Loads the database driver, which only adopted policies need.

FOLDER = click.Path(file_okay=False, path_type=Path)


def chosen(options: Options, given: Path | None) -> Path:
    """The given folder, or else the one in use."""
    return given or own_settings_of(options).policies_dir or shipped("policies")


def remark(options: Options, given: Path | None) -> None:
    """Say on stderr when the folder in use waits for adoption, so that nobody takes it for what servers use."""
    if given is not None or settings_of(options).policies_adopt != "manual":
        return
    try:
        with local_app.opened(options) as app:
            state = app.of(app.settings.tenant).policies.state()
    except CpqError as error:
        state = f"{error.message} {error.details.get('hint', '')}"
    if state != "ok":
        click.echo(f"Note: {shown_on_one_line(state)}", err=True)


def loaded(folder: Path) -> PolicySet:
    with naming(folder):
        return load(folder, DECIDERS)


@contextmanager
def naming(folder: Path) -> Iterator[None]:
    """Add the folder to a load failure, so that of two compared folders the invalid one is named."""
    try:
        yield
    except CpqError as error:
        details = {**error.details, "folder": str(folder)}
        if "problems" in details:
            details["hint"] = f"`cpq policy check {folder}` lists every problem."
        raise CpqError(error.code, f"{folder}: {error.message}", **details) from error
