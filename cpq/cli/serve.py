"""`cpq serve`: the MCP server over stdio or HTTP."""

from __future__ import annotations

import click

from cpq.cli import mcp_process
from cpq.cli.common_options import Options, pass_options


@click.command()
@click.option(
    "--transport", type=click.Choice(["stdio", "streamable-http"]), help="Default: MCP_TRANSPORT, else stdio."
)
@click.option("--host", help="Address to listen on; instead of MCP_HOST.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; instead of MCP_PORT.")
@click.option("--workers", type=click.IntRange(1, 64), help="Processes that serve HTTP; instead of MCP_WORKERS.")
@click.option("--toolsets", metavar="LIST", help="Comma-separated toolsets, or all; instead of CPQ_TOOLSETS.")
@click.option(
    "--as", "as_name", metavar="NAME", help="Act as this caller (stdio); as a person with CPQ_TOKEN or --token-file."
)
@pass_options
def serve(options: Options, /, **chosen: str | int | None) -> None:
    """Serve MCP until the client disconnects (stdio) or the process is stopped (HTTP).

    \b
    Example:
      cpq serve --transport streamable-http --port 8765
    """
    flags = {"as" if name == "as_name" else name: value for name, value in chosen.items() if value is not None}
    mcp_process.become(
        options, "mcp_facade", *(part for name, value in flags.items() for part in (f"--{name}", str(value)))
    )
