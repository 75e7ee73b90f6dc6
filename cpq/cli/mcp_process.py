"""A module of the MCP edge in the place of this process."""

from __future__ import annotations

import os
import sys

from cpq.cli.common_options import Options


def become(options: Options, module: str, *arguments: str) -> None:
    """Let a module of the MCP edge take this process's place: signals and pipes reach it, and its exit code is ours."""
    sys.stdout.flush()
    # -P: a file in the current folder never takes the place of one of our modules.
    command = [sys.executable, "-P", "-m", module, *arguments]
    os.execve(command[0], command, _environment(options))  # noqa: S606 - our own module, and no shell


def _environment(options: Options) -> dict[str, str]:
    """What was said on this command line, for a process that reads its settings from the environment."""
    said = {
        "CPQ_HOME": str(options.home.expanduser()) if options.home else None,
        "CPQ_DATABASE_URL": options.database_url,
        "MCP_LOG_LEVEL": "DEBUG" if options.debug else None,
    }
    return {**os.environ, **{name: value for name, value in said.items() if value}}
