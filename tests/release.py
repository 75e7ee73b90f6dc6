"""Builds everything that a release has and says what it is: `python -m tests.release`, or `make release-check`.

Wheel, source, and the bundle for Claude Desktop go to `dist`. Nothing is published.
"""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from cpq import __version__
from mcp_facade.toolsets import ALL_TOOLS
from tests.generate import ROOT

DIST = ROOT / "dist"


def main() -> int:
    problems = differences()
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    DIST.mkdir(exist_ok=True)
    for path in build(DIST):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
    print(f"\n{notes()}")
    return 0


def differences() -> list[str]:
    """Where another version stands than the code has; a tag on this commit must name it, too."""
    server = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    found = {"server.json": server["version"], "the package of server.json": server["packages"][0]["version"]}
    found["the top of CHANGELOG.md"] = _newest()[0]
    tags = subprocess.run(["git", "tag", "--points-at", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    found |= {f"the tag {tag}": tag.removeprefix("v") for tag in tags.stdout.split()}
    return [
        f"{place} has {version}, the code {__version__}" for place, version in found.items() if version != __version__
    ]


def notes() -> str:
    """What changed, as the CHANGELOG has it for the newest version."""
    return _newest()[1]


def build(target: Path) -> list[Path]:
    """The wheel, the source and the bundle, in this folder."""
    for kind in ("wheel", "sdist"):
        run = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(target)]
        subprocess.run(run, cwd=ROOT, check=True, capture_output=True)
    made = sorted(target.glob(f"quotewright-{__version__}*"))
    return [*made, bundle(target / "quotewright.mcpb")]


def bundle(path: Path) -> Path:
    """An .mcpb for Claude Desktop: a manifest, and a project that `uv` installs from the package index."""
    project = f'[project]\nname = "quotewright-bundle"\nversion = "{__version__}"\nrequires-python = ">=3.11"\n'
    project += f'dependencies = ["quotewright[semantic]=={__version__}"]\n'
    start = '"""Starts the server over stdio."""\n\nimport sys\n\nfrom cpq.cli import main\n\n'
    start += 'main(["init"])\nsys.exit(main(["serve"]))\n'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest(), indent=2) + "\n")
        archive.writestr("pyproject.toml", project)
        archive.writestr("src/server.py", start)
    return path


def manifest() -> dict[str, object]:
    """What Claude Desktop asks and shows, by version 0.4 of the format."""
    tools = [{"name": tool.name, "description": tool.description.splitlines()[0]} for tool in ALL_TOOLS]
    return {
        "manifest_version": "0.4",
        "name": "quotewright",
        "display_name": "Quotewright",
        "version": __version__,
        "description": "Configure, price and quote exactly; people approve, and every number can be proven.",
        "author": {"name": "The Quotewright authors"},
        "license": "Apache-2.0",
        "server": {
            "type": "uv",
            "entry_point": "src/server.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "src/server.py"],
                "env": {"CPQ_HOME": "${user_config.home}", "CPQ_TOOLSETS": "${user_config.toolsets}"},
            },
        },
        "tools": [tool for tool, made in zip(tools, ALL_TOOLS, strict=True) if made.toolset == "quotes"],
        "tools_generated": True,
        "prompts_generated": True,
        "user_config": {
            "home": {
                "type": "directory",
                "title": "Folder",
                "description": "Where the database and the documents live",
                "required": True,
            },
            "toolsets": {
                "type": "string",
                "title": "Toolsets",
                "description": "Comma-separated toolsets, or all",
                "default": "quotes,deals,docs",
                "required": False,
            },
        },
        "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": ">=3.11"}},
    }


def _newest() -> tuple[str, str]:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(r"^## (\S+).*?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, "CHANGELOG.md has no version"
    return found[1], found[2].strip()


if __name__ == "__main__":
    raise SystemExit(main())
