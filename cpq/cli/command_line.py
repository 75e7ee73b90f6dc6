"""The command `cpq` for operators. Its subcommands are in the modules beside this one."""

from __future__ import annotations

import gc
import json
import logging
from pathlib import Path

import click

from cpq import __version__
from cpq.base.clock import Effects
from cpq.base.errors import CpqError
from cpq.base.text import shown, shown_on_one_line, to_wire
from cpq.cli import next_command
from cpq.cli.common_options import Options, pass_options
from cpq.cli.lazy_group import LazyGroup

log = logging.getLogger("cpq.cli")

PROBLEMS_SHOWN_MAX = 20
YOUNG_MAX = 20_000
"""New objects between two garbage collections: importing makes many, and none of them is garbage."""

COMMANDS = {
    "init": ("cpq.cli.init:init", "Create or migrate the database; safe to repeat."),
    "demo": ("cpq.cli.demo:demo", "Watch a real MCP client use the server."),
    "serve": ("cpq.cli.serve:serve", "Serve MCP over stdio or HTTP."),
    "import": ("cpq.cli.import_:import_", "Load products, prices, accounts or quotes from files."),
    "catalog": ("cpq.cli.catalog:catalog_", "Find dead values, contradictions and redundant rules of products."),
    "export": ("cpq.cli.export:export", "Write the catalogue to a file, or a quote as PDF, HTML, JSON, UBL or CSV."),
    "search": ("cpq.cli.search:search_", "Search equipment and past quotes by words and meaning."),
    "quote": ("cpq.cli.quote:quote", "Do a deal: create, price, request, send, accept; prove prices, verify PDFs."),
    "order": ("cpq.cli.order:order", "Show and export orders: what customers accepted, and when it is billed."),
    "agreements": ("cpq.cli.agreements:agreements_", "Show what customers own and which renewals are due; prove it."),
    "policy": (
        "cpq.cli.policy:policy",
        "Check, test, show, compare, copy and adopt policies; try a change on stored quotes.",
    ),
    "templates": ("cpq.cli.templates:templates", "Copy the templates of documents, to change logo, colours and texts."),
    "events": ("cpq.cli.events:events_", "List webhook events and their deliveries, and deliver them again."),
    "approvals": ("cpq.cli.approvals:approvals_", "List pending approval requests, and decide them."),
    "console": ("cpq.cli.console:console", "Make sign-in links for the console, where people decide."),
    "web": ("cpq.cli.web:web", "Add web pages to the index, list them, and remove them."),
    "docs": ("cpq.cli.docs:docs_", "Index and search the Markdown pages that agents read."),
    "context": ("cpq.cli.context:context_", "Cut code and documentation into the chunks that agents search."),
    "token": ("cpq.cli.token:token", "Manage callers, their roles and their tokens."),
    "tenant": ("cpq.cli.tenant:tenant", "Create, suspend and list tenants: sellers whose data is kept apart."),
    "audit": ("cpq.cli.audit:audit_", "Show the record of all calls, and verify it."),
    "backup": ("cpq.cli.backup:backup", "Write everything into one file while servers run."),
    "restore": ("cpq.cli.restore:restore", "Load a backup into an empty database, and prove it."),
    "copy": ("cpq.cli.copy:copy", "Copy everything to another database, from SQLite to PostgreSQL or back."),
    "doctor": ("cpq.cli.doctor:doctor", "Check the installation, and report what to do."),
    "repair": ("cpq.cli.repair:repair", "Restore lost or damaged indexes and documents."),
}


def main(arguments: list[str] | None = None, effects: Effects | None = None) -> int:
    """Run one command. 0: done, 1: failed, 2: not understood."""
    options = Options(effects=effects or Effects())
    gc.set_threshold(YOUNG_MAX, 20, 20)
    try:
        result = root.main(args=arguments, prog_name="cpq", standalone_mode=False, obj=options)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("Stopped.", err=True)
    except CpqError as error:
        _show_failure(error, options)
    except Exception as error:
        if options.debug:
            log.exception("command failed")
        else:
            _show_fault(error)
    return 1


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Start here: cpq init --sample, then cpq demo.",
)
@click.version_option(__version__, message="Quotewright %(version)s")
@click.option(
    "--home", type=click.Path(file_okay=False, path_type=Path), help="Folder of the data; instead of CPQ_HOME."
)
@click.option("--database-url", metavar="URL", help="Database to use; instead of CPQ_DATABASE_URL.")
@click.option("--tenant", metavar="ID", help="Tenant to work for; instead of CPQ_TENANT. `cpq tenant list` has them.")
@click.option(
    "--env-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of settings to read; instead of .env in the folder of the data.",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with your token, for commands in a person's name; instead of CPQ_TOKEN or the question for it.",
)
@click.option("--debug", is_flag=True, help="Log everything to stderr, with tracebacks.")
@pass_options
def root(
    options: Options,
    home: Path | None,
    database_url: str | None,
    tenant: str | None,
    env_file: Path | None,
    token_file: Path | None,
    debug: bool,
) -> None:
    """Quotewright: configure, price and quote, for AI agents and the people who approve their quotes.

    \b
    Example:
      cpq --home /srv/quotes doctor
    """
    options.home = home.expanduser() if home else None
    options.database_url, options.env_file, options.debug = database_url, env_file, debug
    options.token_file, options.tenant = token_file, tenant


def _show_failure(error: CpqError, options: Options) -> None:
    command = next_command.of_call(error.details.get("next_call"), options.subject, options.person)
    if options.as_json:
        body = {"code": error.code.value, "message": shown(error.message), "details": to_wire(error.details) or None}
        body |= {"next_command": command} if command else {}
        click.echo(json.dumps({"error": body}, ensure_ascii=False, indent=2))
        return
    click.echo(f"Error: {shown(error.message)}", err=True)
    near = error.details.get("nearest")
    if near:
        click.echo(f"Did you mean {' or '.join(map(str, near)) if isinstance(near, list) else near}?", err=True)
    for problem in _further_problems(error):
        click.echo(shown_on_one_line(f"- {problem}"), err=True)
    if hint := error.details.get("hint"):
        click.echo(shown(str(hint)), err=True)
    if command:
        click.echo(f"Next: {command}", err=True)


def _further_problems(error: CpqError) -> list[str]:
    """The problems of a refusal that has several. Those of an import, which have lines, are in its table already."""
    problems = error.details.get("problems")
    if not isinstance(problems, list) or len(problems) < 2:
        return []
    found = [
        problem for problem in problems if isinstance(problem, dict) and "message" in problem and "line" not in problem
    ]
    more = len(found) - PROBLEMS_SHOWN_MAX
    shown = [f"{problem.get('field', '')}: {problem['message']}".lstrip(": ") for problem in found]
    return [*shown[:PROBLEMS_SHOWN_MAX], *([f"and {more} more"] if more > 0 else [])]


def _show_fault(error: Exception) -> None:
    """Only the first line: the rest of a driver's message is SQL and the values of a row."""
    first_line = str(error).partition("\n")[0]
    click.echo(f"Error: unexpected {type(error).__name__}: {first_line}", err=True)
    click.echo("Run the command again with --debug after cpq to see where.", err=True)
