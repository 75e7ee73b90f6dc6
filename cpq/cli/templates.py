"""`cpq templates`: copies the templates of documents, to change logo, colours and texts."""

from __future__ import annotations

from pathlib import Path

import click

from cpq.base.settings import shipped
from cpq.cli.chosen_settings import own_settings_of
from cpq.cli.common_options import Options, pass_options
from cpq.cli.folder_copy import TARGET, copy_folder


@click.group()
def templates() -> None:
    """Copy the templates of documents, to change logo, colours and texts.

    \b
    Example:
      cpq templates copy ./templates
    """


@templates.command("copy")
@click.argument("target", metavar="DIR", type=TARGET)
@pass_options
def copy_templates(options: Options, target: Path) -> None:
    """Copy the templates in use, with branding, labels and fonts, into a new folder, to make them your own.

    \b
    Example:
      cpq templates copy ./templates
    """
    source = own_settings_of(options).templates_dir or shipped("pdf_templates")
    copy_folder(source, target, variable="CPQ_TEMPLATES_DIR", what="templates")
