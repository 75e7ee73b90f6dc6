"""`cpq web`: read pages into the index of the web toolset, see what is there, and take pages away."""

from __future__ import annotations

import click

from cpq.app import Answer, Command
from cpq.app.access import OPERATOR, Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.text import to_wire
from cpq.cli import engine
from cpq.cli.options import Options, json_option, pass_options
from cpq.cli.output import Meter, show_json
from cpq.retrieval.web import crawler, repository, view_texts
from cpq.retrieval.web.rules.addresses import read_address


@click.group()
def web() -> None:
    """Read web pages into the index, see what is there, and take pages away.

    \b
    Example:
      cpq web ingest https://vendor.example/products --depth 2
    """


@web.command()
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option(
    "--depth",
    type=click.IntRange(0, crawler.CRAWL_DEPTH_MAX),
    default=0,
    show_default=True,
    help="How many links deep to go on the same sites.",
)
@click.option(
    "--pages", "pages_max", type=click.IntRange(1, 10_000), default=500, show_default=True, help="Most pages to read."
)
@json_option
@pass_options
def ingest(options: Options, urls: tuple[str, ...], depth: int, pages_max: int) -> int:
    """Read pages, and what they link to on the same sites. Exit code 1 when a page failed.

    Pages that are indexed are read again only if they changed.

    \b
    Example:
      cpq web ingest https://vendor.example/products --depth 2 --pages 200
    """
    addresses = [read_address(url, "URL") for url in urls]
    with engine.opened(options) as app:
        call = app.new_call(OPERATOR)
        command = Command("web_ingest", Permission.ADMINISTER, {"urls": list(urls), "depth": depth, "pages": pages_max})
        app.allow(call, command)
        results = []
        with Meter("Reading pages", app.effects) as meter:
            for got in crawler.crawl(app, call, addresses, depth=depth, pages_max=pages_max):
                results.append(got)
                meter(len(results))
        with Meter("Reading for meaning", app.effects) as meter:
            crawler.embed(app, call, progress=meter)
        app.note(call, command, "OK")
    report = view_texts.ingest_view(results)
    if options.as_json:
        show_json(to_wire(report))
    else:
        click.echo(report["text"], nl=False)
    return 1 if report["failed"] else 0


@web.command()
@click.argument("url", required=False)
@json_option
@pass_options
def status(options: Options, url: str | None) -> None:
    """Show which pages are indexed, and which could not be read again.

    \b
    Example:
      cpq web status https://vendor.example/products
    """
    address = read_address(url, "URL") if url else None
    with engine.opened(options) as app:
        found = engine.read(app, "web_status", lambda tx: view_texts.status(tx, address, include_urls=True), url=url)
    if options.as_json:
        show_json(to_wire(found))
    else:
        click.echo(found["text"], nl=False)


@web.command()
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@json_option
@pass_options
def forget(options: Options, urls: tuple[str, ...]) -> None:
    """Take pages out of the index.

    \b
    Example:
      cpq web forget https://vendor.example/old-page
    """
    addresses = [read_address(url, "URL") for url in urls]

    def work(tx: Tx) -> Answer:
        pages = {address.url: repository.find_page(tx, address.url) for address in addresses}
        if missing := [url for url, page in pages.items() if page is None]:
            raise CpqError(
                Code.NOT_FOUND, f"Not indexed: {', '.join(missing)}.", hint="`cpq web status` lists what is."
            )
        known = [page for page in pages.values() if page is not None]
        repository.forget(tx, known)
        return {"forgotten": [page.url for page in known]}

    with engine.opened(options) as app:
        answer = engine.write(app, "web_forget", work, {"urls": list(urls)})
    if options.as_json:
        show_json(answer)
    else:
        click.echo(f"Forgotten: {', '.join(answer['forgotten'])}.")
