"""Writes what is generated: tables, tool snapshots, schemas, CONTRACT.md and ATTACKS.md. `python -m tests.generate`."""

import json
import re
from dataclasses import fields
from pathlib import Path

import click

from cpq.app.access import PERMISSIONS, Permission
from cpq.base.errors import Code
from cpq.base.settings import Settings
from cpq.cli import root
from cpq.domain.policy.facts import LINE_FACTS, QUOTE_FACTS
from cpq.domain.policy.files.reference import json_schema
from mcp_facade.registry import Tool
from mcp_facade.toolsets import ALL_TOOLS
from tests import attacks, contract, ledger

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "cpq" / "guide"
POLICIES = ROOT / "policies"
SNAPSHOTS = ROOT / "tests" / "tools" / "snapshots"


def guide_tables() -> dict[str, str]:
    """Every generated table by its name, which is that of its page in the guide, too."""
    tools = [["tool", "toolset", "needs", "what it does"]]
    tools += [[f"`{t.name}`", t.toolset, t.needs.value, t.description.splitlines()[0]] for t in ALL_TOOLS]
    errors = [["code", "means"], *([f"`{code.value}`", code.meaning] for code in Code)]
    settings = [["variable", "default", "meaning"]]
    for field in fields(Settings):
        default = "unset" if field.default in (None, "") else f"`{field.default}`"
        settings.append([f"`{field.metadata['variable']}`", default, field.metadata["description"]])
    roles = [["role", *(permission.value for permission in Permission)]]
    for role, rights in PERMISSIONS.items():
        roles.append([f"`{role}`", *("yes" if permission in rights else "" for permission in Permission)])
    return {
        "tools": _table(tools),
        "errors": _table(errors),
        "commands": _table([["command", "does"], *_commands()]),
        "settings": _table(settings),
        "roles": _table(roles),
        "contract": _table(contract.summary()),
        "attacks": attacks.summary(),
        "ledger": ledger.page(),
    }


def _commands() -> list[list[str]]:
    """Every command that does something, with its arguments and the first sentence of its help."""
    rows: list[list[str]] = []

    def walk(path: str, command: click.Command) -> None:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                walk(f"{path} {name}", inner)
            return
        arguments = [part.make_metavar(click.Context(command)) for part in command.params if _is_argument(part)]
        said = " ".join((command.help or "").split("\n\n")[0].split())
        rows.append([f"`{' '.join([path, *arguments])}`", said])

    walk("cpq", root)
    return rows


def _is_argument(part: click.Parameter) -> bool:
    return isinstance(part, click.Argument)


def with_tables(text: str, tables: dict[str, str]) -> str:
    """A document's text with every generated table in its place."""
    for name, rows in tables.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        assert marked.search(text), f"there is no place for the table {name!r}"
        text = marked.sub(lambda found, rows=rows: f"{found[1]}{rows}\n{found[2]}", text)  # type: ignore[misc]
    return text


def policy_tables() -> dict[str, str]:
    """Every fact that a policy can read."""
    rows = [["fact", "type", "unit", "pricing rules", "meaning"]]
    for prefix, facts in (("", QUOTE_FACTS), ("line.", LINE_FACTS)):
        for name, fact in facts.items():
            early = "yes" if fact.is_before_pricing else ""
            rows.append([f"`{prefix}{name}`", fact.kind, fact.unit, early, fact.meaning])
    rows.append(
        ["`line.attributes.…`", "as declared", "", "yes", "an attribute of the product, declared in terms.yaml"]
    )
    return {"facts": _table(rows)}


def policy_schema() -> str:
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def snapshot(tool: Tool) -> str:
    """What a client is told of a tool; a change of it is a change of the contract and shows in the diff."""
    described = {
        "name": tool.name,
        "title": tool.title,
        "toolset": tool.toolset,
        "needs": tool.needs.value,
        "writes": tool.writes,
        "is_destructive": tool.is_destructive,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
    }
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    pages = [(GUIDE / f"{name}.md", {name: rows}) for name, rows in guide_tables().items()]
    for path, tables in [*pages, (POLICIES / "README.md", policy_tables())]:
        path.write_text(with_tables(path.read_text(encoding="utf-8"), tables), encoding="utf-8")
    (POLICIES / "schema.json").write_text(policy_schema(), encoding="utf-8")
    SNAPSHOTS.mkdir(exist_ok=True)
    for old in SNAPSHOTS.glob("*.json"):
        old.unlink()
    for tool in ALL_TOOLS:
        (SNAPSHOTS / f"{tool.name}.json").write_text(snapshot(tool), encoding="utf-8")
    (ROOT / "tests" / "CONTRACT.md").write_text(contract.table(), encoding="utf-8")
    (ROOT / "tests" / "ATTACKS.md").write_text(attacks.table(), encoding="utf-8")


def _table(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


if __name__ == "__main__":
    main()
