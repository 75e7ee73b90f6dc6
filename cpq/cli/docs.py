"""`cpq docs`: indexes and searches the pages that agents search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from cpq.app import App
from cpq.base.text import shown_on_one_line
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, show_json, show_pairs
from cpq.retrieval import docs
from cpq.retrieval.search.lexicon import terms
from cpq.retrieval.search.passages import excerpt

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
EXCERPT_CHARACTERS = 400


@click.group("docs")
def docs_() -> None:
    """Index and search the Markdown pages of CPQ_DOCS_DIR, as agents do with the toolset docs.

    \b
    Example:
      cpq docs search "who approves 12 percent off"
    """


@docs_.command()
@click.argument("folder", metavar="[DIR]", required=False, type=FOLDER)
@json_option
@pass_options
def index(options: Options, folder: Path | None) -> None:
    """Read all pages of DIR, or of CPQ_DOCS_DIR, and compute missing embeddings. Resumes after an interruption.

    A server does the same by itself; this command does it ahead of time, and for CPQ_DOCS_DIR removes the embeddings
    of deleted texts.

    \b
    Example:
      cpq docs index handbook
    """
    with _opened(options, folder) as app:
        _index(app, forgets=folder is None)
        found = local_app.read(app, "docs_status", docs.status)
    if options.as_json:
        show_json(found)
        return
    embedding = found["embedding"]
    counts = {"pages": found["index"]["total_pages"], "passages": found["index"]["total_chunks"]}
    by_meaning = f"{embedding['model']}" if embedding["provider"] == "local" else "no: install quotewright[semantic]"
    show_pairs([("folder", found["server"]["docs_root"]), *counts.items(), ("by meaning", by_meaning)])
    for problem in found["problems"]:
        click.echo(shown_on_one_line(f"{problem['file_path']} {problem['problem']}"), err=True)


@docs_.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--dir", "folder", type=FOLDER, help="Folder to search; instead of CPQ_DOCS_DIR.")
@click.option("--top-k", type=int, default=docs.TOP_K_DEFAULT, show_default=True, help="How many passages, 1 to 20.")
@click.option("--filter", "file_filter", metavar="PATTERN", help="Only these pages: terms, 'terms/*', '**/*.md'.")
@click.option("--full", is_flag=True, help="Show whole passages.")
@json_option
@pass_options
def search(
    options: Options, query: tuple[str, ...], folder: Path | None, top_k: int, file_filter: str | None, full: bool
) -> None:
    """Show the passages that best match a question, with their pages and headings.

    \b
    Example:
      cpq docs search net 60 --filter terms
    """
    asked = " ".join(query)
    with _opened(options, folder) as app:
        _index(app, forgets=False)
        found = local_app.read(
            app,
            "search_docs",
            lambda tx: docs.search(tx, asked, top_k=top_k, file_filter=file_filter),
            query=asked,
        )
    if options.as_json:
        show_json(found)
        return
    for number, hit in enumerate(found["results"], 1):
        about = hit["metadata"]
        click.secho(
            shown_on_one_line(f"{number}. {about['file_path']}: {about['heading_path']}") + f"  ({hit['score']:.2f})",
            bold=True,
        )
        text = hit["content"] if full else excerpt(hit["content"], terms(asked), EXCERPT_CHARACTERS)
        click.echo("\n".join(f"   {shown_on_one_line(line)}" for line in text.splitlines()))
    click.echo(
        f"{len(found['results'])} of {found['total_chunks']:,} passages, {found['mode']}, {found['query_ms']} ms"
    )


@contextmanager
def _opened(options: Options, folder: Path | None) -> Iterator[App]:
    with local_app.opened(options) as app:
        if folder is not None:
            app.settings = app.settings.model_copy(update={"docs_dir": folder})
        docs.require(app.settings)
        yield app


def _index(app: App, *, forgets: bool) -> None:
    with Meter("Reading", app.effects) as meter:
        docs.read(app, meter)
    with Meter("Indexing", app.effects) as meter:
        docs.index(app, meter, forgets=forgets)
