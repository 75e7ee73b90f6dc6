"""Copies a folder that ships with the product, or the one in use, so that it can be changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from cpq.cli.output import counted

TARGET = click.Path(path_type=Path)


def copy_folder(source: Path, target: Path, *, variable: str, what: str) -> None:
    """Copy all files of a folder into a new one, and say how to use it."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise click.BadParameter(f"{target} exists and is not empty; nothing was copied", param_hint="DIR")
    if target.resolve().is_relative_to(source.resolve()):
        raise click.BadParameter(f"{target} is inside {source}, which is copied", param_hint="DIR")
    try:
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    except OSError as error:
        raise click.FileError(str(target), str(error)) from error
    copied = counted(sum(path.is_file() for path in target.rglob("*")), "file")
    click.echo(f"Copied {copied} of the {what} in {source} to {target}.")
    click.echo(f"Next: set {variable}={target.absolute()}, here and for the server.")
