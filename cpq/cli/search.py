"""`cpq search`: makes the vectors for search, and searches as agents do."""

from __future__ import annotations

from typing import Any

import click

from cpq.app import Answer, App, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.settings import TOOLSETS
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, moment, show_json, show_table
from cpq.retrieval import context, equipment, nearest_products, past_quotes
from cpq.retrieval.search import table_source, vector_repository
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.installed_model import is_installed
from cpq.retrieval.search.table_source import Source
from cpq.retrieval.toolset_sources import sources_of
from cpq.services.reports import query_report

SHOWN_CHARACTERS = 100
PLACES = ("lines", "quotes", "equipment")


@click.group("search")
def search_() -> None:
    """Search equipment and past quotes by words and meaning.

    \b
    Example:
      cpq search find 100HP oilless food grade
    """


@search_.command()
@json_option
@pass_options
def index(options: Options) -> None:
    """Compute the missing vectors for search by meaning. After an interruption, run it again to resume.

    Servers do the same in the background; this command is faster, and removes the vectors of deleted texts. It includes
    the chunks of CPQ_CHUNKS_DIR when that is set. Without the extra `semantic` there is nothing to compute, and search
    uses words only.

    \b
    Example:
      cpq search index
    """
    command = Command("search_index", Permission.ADMINISTER)
    with local_app.opened(options) as app, app.admitted(app.new_call(app.operator), command):
        rows = [_index(app, source) for source in sources_of(TOOLSETS)]
        if app.settings.chunks_dir is not None and app.settings.chunks_dir.is_dir():
            with Meter("Reading context", app.effects) as meter:
                rows.append(context.index(app, meter))
    if options.as_json:
        show_json({"is_semantic": is_installed(), "corpora": rows})
        return
    columns = ("passages", "made", "forgotten")
    show_table(("corpus", *columns), [tuple(row.values()) for row in rows], numbers=columns)
    if not is_installed():
        click.echo("Words only: pip install 'quotewright[semantic]' adds meaning.", err=True)


@search_.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--in", "place", type=click.Choice(PLACES), default="lines", show_default=True, help="What to search.")
@click.option("--category", help="Only lines or equipment of this category.")
@click.option("--top", type=click.IntRange(1, 50), default=5, show_default=True, help="How many hits.")
@json_option
@pass_options
def find(options: Options, words: tuple[str, ...], place: str, category: str | None, top: int) -> None:
    """Search past lines, past quotes or equipment as an agent would.

    \b
    Example:
      cpq search find 100HP oilless food grade
      cpq search find --in equipment quiet compressor for a dental lab
    """
    query = " ".join(words)

    def work(tx: Tx) -> Answer:
        if place == "equipment":
            return dict(equipment.search(tx, query, bounds={}, words={}, category_id=category, top_k=top))
        if place == "quotes":
            return dict(past_quotes.search(tx, query, top_k=top))
        return dict(past_quotes.search_lines(tx, query, category=category, top_k=top))

    with local_app.opened(options) as app:
        found = local_app.read(app, "search_find", work, query=query, place=place, category=category, top=top)
    if options.as_json:
        show_json(found)
        return
    rows = [(f"{hit['score']:.2f}", hit["confidence"], *_described(hit)) for hit in found["results"]]
    show_table(("score", "confidence", "where", "what"), rows, numbers=("score",))
    if not rows:
        click.echo(found.get("hint", "Nothing found."), err=True)


@search_.command()
@click.option("--tool", help="Only searches of this tool: search_equipment, cortex_search, search_docs, …")
@click.option("--failed", is_flag=True, help="Only searches that found nothing, or nothing near.")
@click.option("--frequent", is_flag=True, help="The failed queries that occur most often, instead of each search.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many.")
@json_option
@pass_options
def queries(options: Options, tool: str | None, failed: bool, frequent: bool, limit: int) -> None:
    """Show what callers searched for, latest first: who, with which tool, how many hits, and how good the best was.

    Queries are kept for CPQ_QUERY_RETENTION_DAYS.

    \b
    Example:
      cpq search queries --failed
      cpq search queries --frequent --tool search_equipment
    """

    def work(tx: Tx) -> Answer:
        if frequent:
            return {"items": query_report.often_failed(tx, tool=tool, limit=limit)}
        return dict(query_report.queries(tx, tool=tool, failed_only=failed, limit=limit, page=1))

    asked = {"tool": tool, "failed": failed, "frequent": frequent, "limit": limit}
    with local_app.opened(options) as app:
        found = local_app.read(app, "search_queries", work, needs=Permission.SEE_QUERIES, **asked)
    if options.as_json:
        show_json(found)
    elif frequent:
        often = [(one["count"], one["tool"], one["query"], moment(one["last_at"])) for one in found["items"]]
        show_table(("times", "tool", "query", "last"), often, numbers=("times",))
    else:
        rows = [
            (moment(one["at"]), one["caller"], one["tool"], one["query"], one["hits"], _best(one))
            for one in found["items"]
        ]
        show_table(("at", "who", "tool", "query", "hits", "best"), rows, numbers=("hits",))


def _best(item: dict[str, Any]) -> str:
    """The band and the score of the best hit."""
    score = None if item["score"] is None else f"{item['score']:.2f}"
    return " ".join(filter(None, (item["confidence"], score))) or ("nothing" if item["is_failed"] else "")


def _index(app: App, source: Source) -> dict[str, Any]:
    call = app.new_call(app.operator)

    def look(tx: Tx) -> list[Corpus]:
        others = nearest_products.sources(tx) if source is equipment.SOURCE else []
        return [table_source.current(tx, variant) for variant in (*past_quotes.variants(tx, source), *others)]

    corpora = app.read_unaudited(call, look)
    made = 0
    for corpus in corpora:
        with Meter(f"Reading {source.corpus}", app.effects) as meter:
            made += vector_repository.embed(app, call, corpus, progress=meter)
    forgotten = app.upkeep(call, lambda tx: vector_repository.forget(tx, *corpora))
    return {"corpus": source.corpus, "passages": len(corpora[0]), "made": made, "forgotten": forgotten}


def _described(hit: dict[str, Any]) -> tuple[str, str]:
    if "product" in hit:
        return hit["product"]["id"], hit["product"]["name"]
    quote = hit.get("source_quote") or hit["quote"]
    text = hit["line_item"]["description"] if "line_item" in hit else hit["summary"]
    where = f"{quote['quote_id']}, {quote['customer'] or 'customer withheld'}, {quote['quoted_on']}"
    flat = " ".join(text.split())
    return where, flat if len(flat) <= SHOWN_CHARACTERS else f"{flat[:SHOWN_CHARACTERS]}…"
