"""Options that every command shares: where the data is, how much to log, the output format, and examples of files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.base.settings import TOKEN_VARIABLE

F = TypeVar("F", bound=Callable[..., Any])

EXAMPLES = Path(__file__).parent.parent / "sample" / "examples"


@dataclass
class Options:
    """Filled while the command line is parsed; `main` reads it when a command fails."""

    home: Path | None = None
    database_url: str | None = None
    tenant: str | None = None
    env_file: Path | None = None
    token_file: Path | None = None
    debug: bool = False
    as_json: bool = False
    subject: str | None = None
    """The quote that the command is about, for the advice after a refusal."""
    person: str | None = None
    """Who acts, for commands that a person does in their own name."""
    effects: Effects = field(default_factory=Effects)

    def given_secret(self) -> str:
        """The token of the person who types; never by an argument, which every user of the machine sees."""
        if self.token_file is None:
            return os.environ.get(TOKEN_VARIABLE, "").strip()
        try:
            return self.token_file.expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CpqError(
                Code.VALIDATION_ERROR, f"The token cannot be read from {self.token_file}.", field="--token-file"
            ) from error


pass_options = click.make_pass_decorator(Options)


def as_option(function: F) -> F:
    """Adds `--as NAME`: the command is done by this person, with the rights of their roles and nobody else's."""

    def remember(ctx: click.Context, _parameter: click.Parameter, value: str) -> None:
        ctx.ensure_object(Options).person = value

    return click.option(
        "--as",
        metavar="NAME",
        required=True,
        expose_value=False,
        callback=remember,
        help="The person who does it; `cpq token grant` gives them a role.",
    )(function)


def key_option(function: F) -> F:
    """Adds `--key`: the same command with the same key is done once."""
    return click.option(
        "--key", metavar="TEXT", help="Idempotency key: repeated with the same key, nothing is done twice."
    )(function)


def json_option(function: F) -> F:
    """Adds `--json`: answers and failures as JSON on stdout."""

    def remember(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
        ctx.ensure_object(Options).as_json = value

    return click.option(
        "--json", is_flag=True, expose_value=False, callback=remember, help="Print JSON instead of a table."
    )(function)


def example_option(*names: str, history: str = "") -> Callable[[F], F]:
    """Adds `--example FILE`: write the example whose name ends like FILE, and do nothing else.

    `history` is the example for a command that was given `--history`.
    """

    def write(ctx: click.Context, _parameter: click.Parameter, target: Path | None) -> None:
        if target is None:
            return
        fitting = [history] if ctx.params.get("history") else names
        found = next((name for name in fitting if Path(name).suffix == target.suffix.lower()), None)
        if found is None:
            endings = " or ".join(Path(name).suffix for name in fitting)
            message = (
                f"{target} must end in {endings}" if endings else f"the example is a folder, so {target} has no ending"
            )
            raise click.BadParameter(message, ctx, param_hint="--example")
        if target.exists():
            raise click.BadParameter(f"{target} exists already, and is not replaced", ctx, param_hint="--example")
        copy = shutil.copytree if (EXAMPLES / found).is_dir() else shutil.copyfile
        try:
            copy(EXAMPLES / found, target)
        except OSError as error:
            raise click.FileError(str(target), error.strerror or "it cannot be written") from error
        past = "--history " if ctx.params.get("history") else ""
        click.echo(f"Wrote an example to {target}. Change it, then: {ctx.command_path} {past}{target}")
        ctx.exit()

    return click.option(
        "--example",
        metavar="FILE" if Path(names[0]).suffix else "DIR",
        type=click.Path(path_type=Path),
        expose_value=False,
        callback=write,
        help="Write a small valid example there, and import nothing.",
    )
