"""`cpq export`: writes catalogue and prices as files for `cpq import`, and quotes as documents or data."""

from __future__ import annotations

import click

from cpq.cli.lazy_group import LazyGroup

EXPORT_COMMANDS = {
    "catalog": ("cpq.cli.export_catalog:export_catalog", "Write all products, with their categories in JSON and YAML."),
    "prices": ("cpq.cli.export_prices:export_prices", "Write all prices, with the price books in JSON and YAML."),
    "guides": ("cpq.cli.export_guides:export_guides", "Write all guides for guided selling."),
    "quote": ("cpq.cli.export_quote:export_quote", "Write a quote as PDF, HTML, JSON, UBL or CSV."),
}


@click.group(cls=LazyGroup, lazy=EXPORT_COMMANDS)
def export() -> None:
    """Write the catalogue or its prices as a file for `cpq import`, or a quote as a document or as data.

    \b
    Example:
      cpq export catalog --output catalog.yaml
    """
