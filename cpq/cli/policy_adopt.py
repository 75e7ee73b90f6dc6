"""`cpq policy adopt`: puts the folder of policies into force, where CPQ_POLICIES_ADOPT is manual."""

from __future__ import annotations

import re
from collections.abc import Mapping

import click

from cpq.app import Answer, policy_store
from cpq.app.access import DECIDERS, Permission
from cpq.app.policy_files import Loaded, load_with_texts
from cpq.app.policy_store import StoredSet
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.text import read_json
from cpq.cli import local_app
from cpq.cli.chosen_settings import settings_of
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import counted, moment, show_json, show_table
from cpq.cli.policy_folders import chosen, naming
from cpq.domain.policy.diff import Change, differences


@click.command()
@click.option("--hash", "expected", metavar="HASH", help="Adopt only this content; all 64 digits of its hash.")
@click.option("--dry-run", is_flag=True, help="Only show what differs: adopt nothing.")
@json_option
@pass_options
def adopt(options: Options, expected: str | None, dry_run: bool) -> None:
    """Adopt the folder of policies, and show what differs from the set that was adopted before.

    With CPQ_POLICIES_ADOPT=manual servers use only what was adopted; they change to it within a second.
    `cpq policy check` prints the hash of a folder, also where it was reviewed.

    \b
    Example:
      cpq policy adopt --dry-run
    """
    folder = chosen(options, None)
    with naming(folder):
        loaded = load_with_texts(folder, DECIDERS)
    found = loaded.policies.content_hash
    _require(expected, found)
    with local_app.opened(options) as app:
        before, used = local_app.read(
            app,
            "policy_adopted",
            lambda tx: (
                policy_store.adopted(tx.connection, tx.tenant_id),
                policy_store.last_used(tx.connection, tx.tenant_id),
            ),
            needs=Permission.ADMINISTER,
        )
        is_new = not policy_store.is_in_force(before, used, loaded)
        if is_new and not dry_run:
            asked = {"hash": found, "before": before and before.content_hash}
            local_app.write(app, "policy_adopt", lambda tx: _adopt(tx, loaded), asked, subject=found)
    files, changes = _changed_files(before, loaded), _changes(before, loaded)
    if options.as_json:
        hashes = {"old": before and before.content_hash, "new": found}
        shown = {"adopted": is_new and not dry_run, "hashes": hashes, "files": files}
        show_json({**shown, "changes": [change._asdict() for change in changes]})
        return
    click.echo(_headline(before, found, is_new=is_new, dry_run=dry_run))
    if is_new:
        _show_changes(files, changes)
    if settings_of(options).policies_adopt == "auto":
        click.echo("CPQ_POLICIES_ADOPT is auto: servers use a changed folder without adoption.")


def _adopt(tx: Tx, loaded: Loaded) -> Answer:
    return {"adopted": policy_store.adopt(tx, loaded)}


def _require(expected: str | None, found: str) -> None:
    """Refuse a folder with another content than the expected one, or a part of a hash, which others may share."""
    if expected is None or expected.lower() == found:
        return
    if not re.fullmatch(r"[0-9a-fA-F]{64}", expected):
        raise CpqError(
            Code.VALIDATION_ERROR,
            "--hash needs all 64 hexadecimal digits of a hash; nothing was adopted.",
            field="--hash",
            hint="`cpq policy check` prints it.",
        )
    raise CpqError(
        Code.CONFLICT,
        f"The folder has the content {found}, not {expected}; nothing was adopted.",
        hint="`cpq policy adopt --dry-run` shows what differs from the adopted set.",
    )


def _changed_files(before: StoredSet | None, loaded: Loaded) -> dict[str, str]:
    """Each file that differs from the adopted one, with `added`, `removed` or `changed`."""
    old, new = _texts(before), loaded.texts
    kinds = {name: "added" if name not in old else "removed" if name not in new else "changed" for name in {*old, *new}}
    return {name: kinds[name] for name in sorted(kinds) if old.get(name) != new.get(name)}


def _texts(before: StoredSet | None) -> Mapping[str, str]:
    try:
        found = read_json(before.files) if before else {}
    except ValueError:
        return {}  # Somebody changed them; `rebuilt` says so.
    return found if isinstance(found, dict) else {}


def _changes(before: StoredSet | None, loaded: Loaded) -> list[Change]:
    if before is None:
        return []
    try:
        return differences(policy_store.rebuilt(before, DECIDERS), loaded.policies)
    except CpqError as refused:
        click.echo(refused.message, err=True)
        return []


def _headline(before: StoredSet | None, found: str, *, is_new: bool, dry_run: bool) -> str:
    if before is not None and before.adopted_at:
        whose = f"adopted {moment(before.adopted_at)} by {before.adopted_by}"
        if not is_new:
            return f"{found} is in force already, {whose}. Nothing was changed."
        instead = f"instead of {before.content_hash}, {whose}"
    else:
        instead = "as the first set"
    return f"{found} would be adopted, {instead}. Nothing was changed." if dry_run else f"Adopted {found}, {instead}."


def _show_changes(files: Mapping[str, str], changes: list[Change]) -> None:
    if files:
        click.echo(f"Files: {', '.join(f'{name} {kind}' for name, kind in files.items())}.")
    if changes:
        show_table(("", "what", "field", "old", "new"), changes)
        click.echo(f"\n{counted(len(changes), 'change')}.")
