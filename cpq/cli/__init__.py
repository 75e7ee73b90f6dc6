"""The command `cpq`: what an operator does at a terminal. One file per command, named like it."""

from cpq.cli.command_line import COMMANDS, main, root

__all__ = ["COMMANDS", "main", "root"]
