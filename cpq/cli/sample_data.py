"""The sample catalogue, prices, accounts, past quotes and guides, loaded into an empty database."""

from __future__ import annotations

from pathlib import Path

from cpq.app import Answer, App
from cpq.cli import import_guides, local_app
from cpq.cli.import_ import load_file
from cpq.services.catalog import exporter

SAMPLE = Path(__file__).parent.parent / "sample"

SAMPLE_FILES = (
    ("catalog", "catalog.yaml", "products"),
    ("price_books", "price_books.yaml", "price_books"),
    ("accounts", "accounts.yaml", "accounts"),
    ("prices", "prices.csv", "prices"),
    ("history", "past_quotes.csv", "quotes"),
)
"""Kind, file and section of each import, in this order: prices refer to products, books and accounts."""


def is_empty(app: App) -> bool:
    return not local_app.read(app, "catalog_count", lambda tx: dict(exporter.counts(tx)))["products"]


def load(app: App) -> list[Answer]:
    reports = [load_file(app, kind, SAMPLE / name, section) for kind, name, section in SAMPLE_FILES]
    work, arguments = import_guides.load(SAMPLE / "guides.yaml")
    return [*reports, local_app.write(app, "import_guides", work, arguments)]
