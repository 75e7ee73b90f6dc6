"""`cpq policy`: checks, tests, shows, compares and adopts policies, and tries them on stored quotes."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import click

from cpq.app.access import DECIDERS
from cpq.app.policy_files import load_with_cases, run_tests
from cpq.base.errors import CpqError
from cpq.base.text import shown_on_one_line
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.folder_copy import TARGET, copy_folder
from cpq.cli.lazy_group import LazyGroup
from cpq.cli.output import counted, show_json, show_table
from cpq.cli.policy_folders import FOLDER, chosen, loaded, naming, remark
from cpq.domain.policy.diff import differences
from cpq.domain.policy.files.cases import CaseResult
from cpq.domain.policy.overview import tables
from cpq.domain.policy.policy_set import PolicySet

DOTS_A_LINE = 80
HASH_LENGTH = 12
TITLES = {
    "roles": "Who approves",
    "policies": "What needs approval, warns or blocks, in the order of the answer",
    "pricing": "What changes a price before any discount",
    "terms": "Terms",
    "rates": "Exchange rates",
    "tax": "Tax in percent",
}
NUMBERS: dict[str, tuple[str, ...]] = {"roles": (), "policies": (), "pricing": ("value",), "terms": ()}
"""Number columns; in the other tables all columns but the first."""
LATE_COMMANDS = {
    "adopt": ("cpq.cli.policy_adopt:adopt", "Adopt the folder of policies, and show what differs."),
    "simulate": ("cpq.cli.policy_simulate:simulate", "List stored quotes that new policies decide differently."),
}
"""The commands about policies that need the database."""


@click.group(cls=LazyGroup, lazy=LATE_COMMANDS)
def policy() -> None:
    """Check, test, show, compare, copy and adopt policies, and try a change on all stored quotes.

    DIR is a folder of policy files. Default: the one in use, CPQ_POLICIES_DIR or the shipped one.

    \b
    Example:
      cpq policy check ./policies
    """


@policy.command()
@click.argument("folder", metavar="[DIR]", required=False, type=FOLDER)
@json_option
@pass_options
def check(options: Options, folder: Path | None) -> int:
    """List all problems of the policies and their cases. Exit code 1 when there are any.

    \b
    Example:
      cpq policy check ./policies
    """
    where = chosen(options, folder)
    remark(options, folder)
    try:
        with naming(where):
            policies, cases = load_with_cases(where, DECIDERS)
    except CpqError as error:
        if "problems" not in error.details:
            raise
        return _show_problems(options, where, error)
    if options.as_json:
        show_json({"valid": True, "hash": policies.content_hash, "cases": len(cases), "problems": []})
    else:
        click.echo(f"No problems: {_contents(policies)}; {counted(len(cases), 'case')}.")
        click.echo(f"The hash of these policies is {policies.content_hash}.")
    return 0


@policy.command()
@click.argument("folder", metavar="[DIR]", required=False, type=FOLDER)
@click.option("--verbose", "-v", is_flag=True, help="Name every case, not only those that fail.")
@json_option
@pass_options
def test(options: Options, folder: Path | None, verbose: bool) -> int:
    """Run the cases in the `*_test.yaml` files. Exit code 1 when a case fails, or without cases.

    \b
    Example:
      cpq policy test ./policies -v
    """
    where = chosen(options, folder)
    remark(options, folder)
    with naming(where):
        results = run_tests(where, DECIDERS)
    failed = [result for result in results if not result.is_passed]
    if options.as_json:
        cases = [{**result._asdict(), "passed": result.is_passed} for result in results]
        show_json({"passed": len(results) - len(failed), "failed": len(failed), "cases": cases})
    else:
        _show_cases(results, verbose=verbose)
        for result in failed:
            click.echo(f"\nFAILED {where / result.file}:{result.line}: {shown_on_one_line(result.name)}")
            click.echo(f"    {shown_on_one_line(result.message)}")
        click.echo(f"\n{_verdict(results, failed)}")
    return 1 if failed or not results else 0


@policy.command()
@click.argument("folder", metavar="[DIR]", required=False, type=FOLDER)
@json_option
@pass_options
def show(options: Options, folder: Path | None) -> None:
    """Show ladders, rules, roles, pricing rules, terms and tax as tables.

    \b
    Example:
      cpq policy show
    """
    where = chosen(options, folder)
    remark(options, folder)
    policies = loaded(where)
    found = tables(policies)
    if options.as_json:
        show_json({"hash": policies.content_hash, **{name: _objects(table) for name, table in found.items()}})
        return
    click.echo(f"{where}, {policies.content_hash[:HASH_LENGTH]}")
    for name, (heading, *rows) in found.items():
        click.echo(f"\n{TITLES[name]}")
        if rows:
            show_table(heading, rows, numbers=NUMBERS.get(name, heading[1:]))
        else:
            click.echo("nothing")


@policy.command("copy")
@click.argument("target", metavar="DIR", type=TARGET)
@pass_options
def copy_policies(options: Options, target: Path) -> None:
    """Copy the policies in use, with their cases, into a new folder, to make them your own.

    \b
    Example:
      cpq policy copy ./policies
    """
    copy_folder(chosen(options, None), target, variable="CPQ_POLICIES_DIR", what="policies")


@policy.command()
@click.argument("old", type=FOLDER)
@click.argument("new", type=FOLDER)
@json_option
@pass_options
def diff(options: Options, old: Path, new: Path) -> None:
    """Show which rules, ladders, terms and rates differ between two folders, with old and new values.

    \b
    Example:
      cpq policy diff ./policies ./policies-2027
    """
    before, after = (loaded(folder) for folder in (old, new))
    changes = differences(before, after)
    if options.as_json:
        hashes = {"old": before.content_hash, "new": after.content_hash}
        show_json({"hashes": hashes, "changes": [change._asdict() for change in changes]})
    elif changes:
        show_table(("", "what", "field", "old", "new"), changes)
        click.echo(f"\n{counted(len(changes), 'change')}.")
    elif before.content_hash == after.content_hash:
        click.echo("No difference.")
    else:
        click.echo("No rule, ladder, term or rate differs; only names of conditions or declared attributes do.")


def _show_problems(options: Options, where: Path, error: CpqError) -> int:
    problems: Any = error.details["problems"]
    if options.as_json:
        show_json({"valid": False, "hash": None, "cases": None, "problems": problems})
        return 1
    for problem in problems:
        near = problem.get("nearest", [])
        meant = f" (did you mean {' or '.join(near)}?)" if near else ""
        place = f"{where / problem['file']}:{problem['line']}:{problem['column']}"
        click.echo(shown_on_one_line(f"{place}: {problem['message']}{meant}"))
    click.echo(f"\n{counted(len(problems), 'problem')}.")
    return 1


def _show_cases(results: list[CaseResult], *, verbose: bool) -> None:
    """Print a line for each case, or a line for each file with a dot for each passed case."""
    for file, group in groupby(results, key=lambda result: result.file):
        cases = list(group)
        if verbose:
            for case in cases:
                state = "PASSED" if case.is_passed else "FAILED"
                click.echo(shown_on_one_line(f"{state} {file}:{case.line}: {case.name}"))
        else:
            marks = "".join("." if case.is_passed else "F" for case in cases)
            for start in range(0, len(marks), DOTS_A_LINE):
                click.echo(f"{shown_on_one_line(file)} {marks[start : start + DOTS_A_LINE]}")


def _verdict(results: list[CaseResult], failed: list[CaseResult]) -> str:
    if not results:
        return "There are no cases. Cases are in files that end in _test.yaml."
    files = counted(len({result.file for result in results}), "file")
    passed = f"{len(results) - len(failed):,} passed in {files}."
    return f"{len(failed):,} failed, {passed}" if failed else passed


def _contents(policies: PolicySet) -> str:
    steps = sum(len(ladder.steps) for ladder in policies.ladders)
    counts = [
        f"{counted(len(policies.ladders), 'ladder')} of {counted(steps, 'step')}",
        counted(len(policies.rules), "rule"),
        counted(len(policies.pricing), "pricing rule"),
        counted(len(policies.tax), "tax zone"),
    ]
    return ", ".join(counts)


def _objects(table: list[list[str]]) -> list[dict[str, str]]:
    heading, *rows = table
    return [dict(zip(heading, row, strict=True)) for row in rows]
