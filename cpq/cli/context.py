"""`cpq context`: makes the chunk files that the toolset `context` searches."""

from __future__ import annotations

from pathlib import Path

import click

from cpq.base.text import shown_on_one_line
from cpq.cli.chosen_settings import settings_of
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, show_json, show_table
from cpq.retrieval.context import indexer

SKIPPED_SHOWN_MAX = 20


@click.group("context")
def context_() -> None:
    """Cut code, documentation and data into the chunks that agents search with the toolset context.

    \b
    Example:
      cpq context index .
    """


@context_.command()
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--to",
    "target",
    type=click.Path(file_okay=False, path_type=Path),
    help="Target folder; instead of CPQ_CHUNKS_DIR.",
)
@json_option
@pass_options
def index(options: Options, folder: Path, target: Path | None) -> None:
    """Cut the Markdown, Python, YAML, JSON and TOML files of DIR into chunks, and write them to CPQ_CHUNKS_DIR.

    Markdown is cut by heading, Python by symbol, data by its first level. A server that watches the folder loads the
    new files within a second.

    \b
    Example:
      cpq context index . --to .cortex/chunks
    """
    settings, effects = settings_of(options), options.effects
    into = target or settings.chunks_dir or Path(".cortex/chunks")
    with Meter("Cutting", effects) as meter:
        made = indexer.make(folder, into, effects.now(), meter)
    if options.as_json:
        show_json({"folder": str(into), "sources": made.sources, "chunks": made.chunks, "skipped": made.skipped})
        return
    show_table(("file", "chunks"), list(made.chunks.items()), numbers=("chunks",))
    click.echo(f"{made.sources:,} sources, into {shown_on_one_line(str(into))}")
    for path, reason in sorted(made.skipped.items())[:SKIPPED_SHOWN_MAX]:
        click.echo(shown_on_one_line(f"left out: {path} {reason}"), err=True)
    if len(made.skipped) > SKIPPED_SHOWN_MAX:
        click.echo(f"and {len(made.skipped) - SKIPPED_SHOWN_MAX} more", err=True)
    if into != settings.chunks_dir:
        click.echo(f"Serve them with CPQ_CHUNKS_DIR={shown_on_one_line(str(into))} CPQ_TOOLSETS=context.")
