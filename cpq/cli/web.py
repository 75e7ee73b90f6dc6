"""`cpq web`: adds web pages to the index of the web toolset, lists them, and removes them."""

from __future__ import annotations

import click

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.text import to_wire
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, show_json
from cpq.retrieval.web import crawler, repository, views
from cpq.retrieval.web.rules.addresses import read_address


@click.group()
def web() -> None:
    """Add web pages to the index, list them, and remove them.

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
    "--pages",
    "pages_max",
    type=click.IntRange(1, 10_000),
    default=500,
    show_default=True,
    help="Maximum of pages.",
)
@json_option
@pass_options
def ingest(options: Options, urls: tuple[str, ...], depth: int, pages_max: int) -> int:
    """Read pages, and the pages they link to on the same sites. Exit code 1 when a page failed.

    Indexed pages are read again only if they changed.

    \b
    Example:
      cpq web ingest https://vendor.example/products --depth 2 --pages 200
    """
    addresses = [read_address(url, "URL") for url in urls]
    asked = {"urls": list(urls), "depth": depth, "pages": pages_max}
    with local_app.opened(options) as app:
        call = app.new_call(app.operator)
        with app.admitted(call, Command("web_ingest", Permission.ADMINISTER, asked)):
            results = []
            with Meter("Reading pages", app.effects) as meter:
                for got in crawler.crawl(app, call, addresses, depth=depth, pages_max=pages_max):
                    results.append(got)
                    meter(len(results))
            with Meter("Reading for meaning", app.effects) as meter:
                crawler.embed(app, call, progress=meter)
    report = views.ingest_view(results)
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
    """Show the indexed pages, and those that could not be read again.

    \b
    Example:
      cpq web status https://vendor.example/products
    """
    address = read_address(url, "URL") if url else None

    def work(tx: Tx) -> Answer:
        return {"status": views.status(tx, address, include_urls=True)}

    with local_app.opened(options) as app:
        found = local_app.read(app, "web_status", work, url=url)["status"]
    if options.as_json:
        show_json(to_wire(found))
    else:
        click.echo(found["text"], nl=False)


@web.command()
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@json_option
@pass_options
def forget(options: Options, urls: tuple[str, ...]) -> None:
    """Remove pages from the index.

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

    with local_app.opened(options) as app:
        answer = local_app.write(app, "web_forget", work, {"urls": list(urls)})
    if options.as_json:
        show_json(answer)
    else:
        click.echo(f"Removed: {', '.join(answer['forgotten'])}.")
