"""Replaces this process by a module of the MCP edge."""

from __future__ import annotations

import os
import sys

from cpq.base.env_file import read_variables
from cpq.base.settings import TOKEN_VARIABLE
from cpq.cli.common_options import Options


def become(options: Options, module: str, *arguments: str) -> None:
    """Replace this process by a module of the MCP edge, so that signals, pipes and the exit code are its own."""
    sys.stdout.flush()
    # -P: a file in the current folder must not shadow a module of the product.
    command = [sys.executable, "-P", "-m", module, *arguments]
    os.execve(command[0], command, _environment(options))  # noqa: S606 - our own module, and no shell


def _environment(options: Options) -> dict[str, str]:
    """The environment with the options of this command line, for a process that reads its settings from there."""
    variables = read_variables(os.environ, options.env_file, options.home)
    variables.pop(TOKEN_VARIABLE, None)  # From the shell or a file that was named, never from a file of settings.
    given = {
        TOKEN_VARIABLE: options.given_secret(),
        "CPQ_HOME": str(options.home) if options.home else None,
        "CPQ_DATABASE_URL": options.database_url,
        "CPQ_TENANT": options.tenant,
        "MCP_LOG_LEVEL": "DEBUG" if options.debug else None,
    }
    return {**variables, **{name: value for name, value in given.items() if value}}
