"""`cpq import guides`: loads guides for guided selling."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any, cast

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError, bad_field
from cpq.cli import local_app
from cpq.cli.common_options import Options, example_option, json_option, pass_options
from cpq.cli.import_ import answer_of, show_report
from cpq.cli.output import show_json, show_table
from cpq.domain.guided_selling.guide_file import read_guides
from cpq.domain.yaml_source import BYTES_MAX, too_large
from cpq.services import guided_selling


@click.command("guides")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@example_option("guides.yaml")
@json_option
@pass_options
def import_guides(options: Options, file: Path) -> None:
    """Load guides for guided selling from a YAML file; other guides stay.

    Under guides, each has id, name, description, categories and questions, and may have among (what all its products
    have) and active. A question has id, ask, why, and either options or a number, and may have ask_when: earlier
    questions with the answers after which it is asked. An option has id, label, need and prefer: the values that a
    product needs, or better has, by the name of an option, spec or attribute; a value, a list of some, or {min, max}. A
    number has unit and at_least or at_most, the name that it is compared with, and may have min and max.
    All or nothing: each problem is listed with its line and column.

    \b
    Example:
      cpq import guides guides.yaml
    """
    with local_app.opened(options) as app:
        try:
            report = local_app.write(app, "import_guides", *load(file))
        except CpqError as error:
            if not options.as_json:
                _show_problems(error)
            raise
    if options.as_json:
        show_json(report)
    else:
        show_report(report)


def load(file: Path) -> tuple[Any, dict[str, Any]]:
    """The work that imports a file of guides, and the arguments for its audit entry."""
    if file.stat().st_size > BYTES_MAX:
        raise bad_field("FILE", f"{file.name}: {too_large()}", maximum=BYTES_MAX)
    content = file.read_bytes()
    try:
        read = read_guides(file.name, content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise bad_field("FILE", f"{file.name} is not UTF-8 text") from None

    def work(tx: Tx) -> Answer:
        return answer_of(guided_selling.import_guides(tx, read))

    return work, {"file": file.name, "sha256": hashlib.sha256(content).hexdigest()}


def _show_problems(error: CpqError) -> None:
    found = cast("list[dict[str, Any]]", error.details.get("problems", []))
    rows = [
        (
            one["line"],
            one["column"],
            one["message"] + (f"; did you mean {one['nearest'][0]}?" if "nearest" in one else ""),
        )
        for one in found
    ]
    if rows:
        show_table(("line", "column", "reason"), rows, numbers=("line", "column"), stream=sys.stderr)
