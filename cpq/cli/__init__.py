"""The command `cpq` for operators. One file per command, with its name."""

from cpq.cli.command_line import COMMANDS, main, root

__all__ = ["COMMANDS", "main", "root"]
