"""A group whose commands are imported when they are used, so that `cpq --help` does not load a database driver."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import click


class LazyGroup(click.Group):
    """Holds commands as `module:attribute` with one line of help; imports the module when the command is used.

    Commands that are added as to any group come first.
    """

    def __init__(self, *, lazy: Mapping[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(**settings)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the table, which is the order of use."""
        return [*self.commands, *self._lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._lazy[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        near = get_close_matches(args[0], known, n=1) if args[0] not in known else []
        if near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            width = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
            added = [(name, command.get_short_help_str(width)) for name, command in self.commands.items()]
            formatter.write_dl([*added, *((name, line) for name, (_, line) in self._lazy.items())])
