"""The web toolset: how much HTML is read in a second, and how long an answer from 500 indexed pages takes."""

import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from cpq.app import open_app
from cpq.base.settings import read_settings
from cpq.retrieval.web import crawler, repository
from cpq.retrieval.web.fetcher import Known
from cpq.retrieval.web.rules.addresses import read_address
from cpq.retrieval.web.rules.html_markdown import convert
from cpq.retrieval.web.rules.page_passages import passages_of
from cpq.storage import migrations
from tests.support.engine import Tools

PAGES = 500
ROUNDS = 40
PASSES = 5
"""The quickest counts: another process on the same core slows a pass, nothing makes one too quick."""

_TOPICS = (
    "oil filter belt motor dryer valve noise warranty pressure tank cooler inverter sensor gasket bearing coupling"
)
_WORDS = (
    "the compressor delivers air at constant pressure while service intervals depend on load dust and temperature"
    " of the room where it stands and every part can be ordered by its number from the dealer who keeps most in stock"
)
TOPICS, WORDS = _TOPICS.split(), _WORDS.split()


def measure(home: Path) -> dict[str, float]:
    return {**_conversion(), **_answers(home)}


def _conversion() -> dict[str, float]:
    """Pages as documentation has them: prose, lists, tables, listings, links; by the processor's time."""
    base = read_address("https://vendor.example/docs/")
    pages = [_page(number, sections=40) for number in range(20)]
    megabytes = sum(len(page) for page in pages) / 1e6
    seconds = min(_seconds(lambda page: convert(page, base), pages) for _ in range(PASSES))
    whole = min(_seconds(lambda page: passages_of(convert(page, base)), pages) for _ in range(PASSES))
    return {"conversion MB/s": megabytes / seconds, "conversion and passages MB/s": megabytes / whole}


def _seconds(work: Callable[[str], object], pages: list[str]) -> float:
    began = time.process_time()
    for page in pages:
        assert work(page)
    return time.process_time() - began


def _answers(home: Path) -> dict[str, float]:
    settings = read_settings({}, home=home, rate_limit_per_minute=0)
    migrations.upgrade(settings)
    app = open_app(settings)
    call = app.new_call()
    for number in range(PAGES):
        address = read_address(f"https://vendor.example/p/{number}.html")
        page = convert(_page(number, sections=1), address)
        passages = passages_of(page)
        app.upkeep(
            call,
            lambda tx, a=address, p=page, s=passages: repository.keep(
                tx, a, p, s, kind="html", known=Known(), content_hash=a.url
            ),  # type: ignore[misc] # Defaults.
        )
    began = time.process_time()
    made = crawler.embed(app, call)
    embedding = time.process_time() - began
    tools = Tools(app)
    chosen = random.Random(1)
    taken, spent = [], []
    for number in range(ROUNDS + 5):
        query = f"How is the {chosen.choice(TOPICS)} of the {chosen.choice(TOPICS)} serviced at part {number}?"
        url = f"https://vendor.example/p/{chosen.randrange(PAGES)}.html"
        cpu, began = time.process_time(), time.perf_counter()
        answer = tools("answer", url=url, query=query)
        if number >= 5:  # Warm.
            taken.append((time.perf_counter() - began) * 1000)
            spent.append((time.process_time() - cpu) * 1000)
        assert answer["urls_ingested"] == 0
        assert answer["iterations"] == 0
    app.close()
    return {
        "passages": made,
        "embedding a passage of 240 tokens CPU ms": embedding * 1000 / max(1, made),
        "answer from 500 pages p50 ms": statistics.median(taken),
        "answer from 500 pages, longest ms": max(taken),
        "answer from 500 pages CPU ms": statistics.median(spent),
    }


def _page(number: int, sections: int) -> str:
    """The same page for the same number; links lead to pages that are indexed."""
    chosen = random.Random(number)

    def prose(count: int) -> str:
        return " ".join(chosen.choices(WORDS, k=count))

    parts = []
    for section in range(sections):
        topic = chosen.choice(TOPICS)
        rows = "".join(
            f"<tr><td>{chosen.choice(TOPICS)} {n}</td><td>{chosen.randrange(900)} mm</td></tr>" for n in range(5)
        )
        items = "".join(f"<li>{prose(8)} <code>A-{chosen.randrange(999)}</code></li>" for _ in range(4))
        link = (
            f'<a class="reference internal" href="/p/{chosen.randrange(PAGES)}.html"><span>{topic} service</span></a>'
        )
        parts.append(
            f'<section id="s{section}"><h2>The {topic} of the {chosen.choice(TOPICS)}'
            f'<a class="headerlink" href="#s{section}">¶</a>'
            f"</h2>\n<p>{prose(60)} <b>{topic}</b>, see {link}. {prose(40)}</p>\n<ul>{items}</ul>\n"
            f'<table class="docutils"><thead><tr><th>Part</th><th>Size</th></tr></thead><tbody>{rows}</tbody>'
            f'</table>\n<div class="highlight-sh"><pre><span class="k">order</span> {topic} {section}\n</pre></div>'
            f'<div class="admonition note"><p class="admonition-title">Note</p><p>{prose(20)}</p></div></section>'
        )
    body = "\n".join(parts)
    return f"<!doctype html><html><head><title>Page {number}</title></head><body><main>{body}</main></body></html>"
