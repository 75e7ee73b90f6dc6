"""`cpq token`: manages callers, their roles, and their secrets, which are shown once."""

from __future__ import annotations

from datetime import datetime

import click

from cpq.app import Answer, tokens
from cpq.app.access import PERMISSIONS, Permission, PrincipalKind, Role
from cpq.app.tokens import RECOVERY, TokenSummary
from cpq.app.transaction import Tx
from cpq.base.errors import bad_field
from cpq.base.text import to_wire
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_table


@click.group()
def token() -> None:
    """Create, list and revoke the tokens that callers present over HTTP.

    \b
    Example:
      cpq token create --name dana --role sales_manager
    """


@token.command()
@click.option("--name", required=True, help="Name of the caller: a person or a program.")
@click.option("--role", required=True, help="Role of the caller; `cpq token roles` lists the roles.")
@click.option("--kind", type=click.Choice(["agent", "human"]), help="Default: agent for the role agent, else human.")
@click.option("--days", type=click.IntRange(1, 3650), help="How long it is valid. Default: until it is revoked.")
@click.option("--owner", metavar="NAME", help="The person behind a program; the quotes it makes are theirs.")
@click.option("--recover", is_flag=True, help="A token for an administrator when none has one; everybody will see it.")
@json_option
@pass_options
def create(
    options: Options,
    name: str,
    role: str,
    kind: PrincipalKind | None,
    days: int | None,
    owner: str | None,
    recover: bool,
) -> None:
    """Create a token and print its secret, once. A second token for a name adds its role to the caller.

    Once an administrator has a token, theirs is needed for people, and for roles that decide or administer.

    \b
    Example:
      TOKEN=$(cpq token create --name crm-bot --role agent --owner dana --days 90)
    """
    secret = ""

    def work(tx: Tx) -> Answer:
        nonlocal secret  # Kept out of the answer, because answers are stored.
        summary, secret = tokens.create_token(tx, name=name, role=role, kind=kind, days=days, owner=owner)
        return _row(summary, tx.now)

    arguments = {"name": name, "role": role, "kind": kind, "days": days, "owner": owner}
    if recover and role != Role.ADMIN:
        raise bad_field("--recover", "--recover is for the role admin only", allowed=[Role.ADMIN])
    with local_app.opened(options) as app:
        if recover:
            made = local_app.write(app, RECOVERY, work, arguments, subject=RECOVERY)
        else:
            is_person = kind == "human" or (kind is None and role != Role.AGENT)
            grantor = local_app.grantor(app, options, name, role, is_person=is_person)
            made = local_app.write(app, "token_create", work, arguments, principal=grantor)
    if recover:
        click.echo("No administrator agreed to this. The record says so, and `cpq doctor` for 30 days.", err=True)
    if options.as_json:
        show_json({**made, "secret": secret})
        return
    click.echo(f"Token {made['id']} for {made['caller']} ({', '.join(made['roles'])}).", err=True)
    click.echo("The secret is not stored: save it now, it cannot be shown again.", err=True)
    click.echo(secret)


@token.command()
@click.option("--name", required=True, help="Name of the person.")
@click.option("--role", required=True, help="Role of the person; `cpq token roles` lists the roles.")
@click.option("--days", type=click.IntRange(1, 3650), help="How long it is valid. Default: until it is revoked.")
@json_option
@pass_options
def grant(options: Options, name: str, role: str, days: int | None) -> None:
    """Give a person a role for the console, without a secret. They sign in with a link or the company's provider.

    Once an administrator has a token, theirs is needed.

    \b
    Example:
      cpq token grant --name dana --role sales_manager
    """

    def work(tx: Tx) -> Answer:
        return _row(tokens.grant(tx, name=name, role=role, days=days), tx.now)

    with local_app.opened(options) as app:
        arguments = {"name": name, "role": role, "days": days}
        grantor = local_app.grantor(app, options, name, role, is_person=True)
        made = local_app.write(app, "token_grant", work, arguments, principal=grantor)
    if options.as_json:
        show_json(made)
        return
    click.echo(f"{made['caller']} is {', '.join(made['roles'])} ({made['id']}).")
    click.echo(f"Next: `cpq console link --user {name}` makes a sign-in link.")


@token.command()
@click.option(
    "--name", required=True, help="The other name: an e-mail address, or a subject of the company's provider."
)
@click.option("--person", required=True, metavar="NAME", help="The name by which the person is known.")
@pass_options
def alias(options: Options, name: str, person: str) -> None:
    """Make a name another name of a person, whose rights and deeds are then one, however they sign in.

    Nobody decides what they made under another name. Once an administrator has a token, theirs is needed.

    \b
    Example:
      cpq token alias --name dana@acme.example --person dana
    """

    def work(tx: Tx) -> Answer:
        return {"name": name, "person": tokens.add_name(tx, name=name, person=person)}

    with local_app.opened(options) as app:
        grantor = local_app.grantor(app, options, person, Role.SALES_REP, is_person=True)
        arguments = {"name": name, "person": person}
        made = local_app.write(app, "token_alias", work, arguments, principal=grantor)
    click.echo(f"{made['name']} is another name of {made['person']}.")


@token.command("list")
@json_option
@pass_options
def list_(options: Options) -> None:
    """Show all tokens, without their secrets.

    \b
    Example:
      cpq token list
    """

    def work(tx: Tx) -> Answer:
        return {"items": [_row(summary, tx.now) for summary in tokens.list_tokens(tx)]}

    with local_app.opened(options) as app:
        answer = local_app.read(app, "token_list", work, needs=Permission.ADMINISTER)
    if options.as_json:
        show_json(answer)
    elif answer["items"]:
        rows = [to_wire({**item, "roles": ", ".join(item["roles"])}) for item in answer["items"]]
        show_table(list(rows[0]), [list(row.values()) for row in rows])
    else:
        click.echo("There are no tokens. `cpq token create` creates one.")


@token.command()
@click.argument("token_id", metavar="ID")
@pass_options
def revoke(options: Options, token_id: str) -> None:
    """Revoke a token at once. Repeating it changes nothing.

    \b
    Example:
      cpq token revoke tok-01kq3v8n5e7d9xw2rjfb
    """

    def work(tx: Tx) -> Answer:
        tokens.revoke_token(tx, token_id)
        return {"id": token_id}

    with local_app.opened(options) as app:
        local_app.write(app, "token_revoke", work, {"id": token_id}, subject=token_id)
    click.echo(f"Token {token_id} is revoked.")


@token.command()
@json_option
@pass_options
def roles(options: Options) -> None:
    """Show what each role may do.

    \b
    Example:
      cpq token roles
    """
    if options.as_json:
        show_json({"roles": {role: sorted(allowed) for role, allowed in PERMISSIONS.items()}})
    else:
        rows = [
            (role, *("yes" if one in allowed else "-" for one in Permission)) for role, allowed in PERMISSIONS.items()
        ]
        show_table(("role", *Permission), rows)


def _row(summary: TokenSummary, now: datetime) -> Answer:
    return {
        "id": summary.id,
        "caller": summary.principal.caller,
        "roles": sorted(summary.principal.roles),
        "owner": summary.principal.owner,
        "created_at": summary.created_at,
        "expires_at": summary.expires_at,
        "revoked_at": summary.revoked_at,
        "state": _state(summary, now),
    }


def _state(summary: TokenSummary, now: datetime) -> str:
    if summary.revoked_at is not None:
        return "revoked"
    return "expired" if summary.expires_at is not None and summary.expires_at <= now else "valid"
