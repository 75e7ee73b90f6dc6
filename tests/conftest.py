"""Fixtures for the whole suite: a real SQLite file and a real PostgreSQL, each with the sample data, for every test."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cpq.app import App
from cpq.base.clock import Effects
from cpq.base.settings import Settings, read_settings
from tests.support import engine, loopback, postgres, tenant_watch
from tests.support.engine import open_app

# The suite tries the same examples every time, so that it fails for a change and never by chance.
LUCK = [check for check in HealthCheck if check is not HealthCheck.function_scoped_fixture]
settings.register_profile("suite", deadline=None, max_examples=60, derandomize=True, suppress_health_check=LUCK)
settings.register_profile("proof", deadline=None, max_examples=20_000, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

CLUSTER = "CPQ_TEST_POSTGRES"
DATABASES = ("sqlite", "postgresql")


def pytest_configure(config: pytest.Config) -> None:
    """The first process starts PostgreSQL, workers of pytest-xdist use it, and it ends with the first process."""
    loopback.stay()
    tenant_watch.watch()
    if not hasattr(config, "workerinput") and CLUSTER not in os.environ:
        cluster = postgres.start()
        os.environ[CLUSTER] = cluster.describe()
        config.add_cleanup(cluster.stop)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what goes by the real clock, so that it can be run on another day."""
    for item in items:
        if "real_clock" in getattr(item, "fixturenames", ()):
            item.add_marker("today")


@pytest.fixture(autouse=True)
def _tenants_apart() -> Iterator[None]:
    """No statement of the product reads or writes over all tenants, but for the few that are named."""
    yield
    forgetful = tenant_watch.found[:]
    tenant_watch.found.clear()
    assert not forgetful


@pytest.fixture(scope="session")
def cluster() -> postgres.Cluster:
    return postgres.attach(os.environ[CLUSTER])


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with the sample data, to be copied."""
    home = tmp_path_factory.mktemp("template")
    engine.fill_with_sample(read_settings({}, home=home))
    return home / "quotewright.db"


@pytest.fixture(scope="session")
def postgres_template(cluster: postgres.Cluster) -> str:
    """A database with the sample data, to be copied by PostgreSQL itself."""
    name = engine.unique_name("template")
    cluster.create_database(name)
    engine.fill_with_sample(read_settings({}, database_url=cluster.url(name)))
    return name


@pytest.fixture(params=DATABASES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """The settings of a store of its own with the sample data; the test runs once on each database."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "quotewright.db")
        yield read_settings({}, home=tmp_path)
        return
    cluster: postgres.Cluster = request.getfixturevalue("cluster")
    name = engine.unique_name("test")
    cluster.create_database(name, template=request.getfixturevalue("postgres_template"))
    yield read_settings({}, home=tmp_path, database_url=cluster.url(name))
    cluster.drop_database(name)


@pytest.fixture(params=DATABASES)
def empty_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """The settings of a store without any tables."""
    if request.param == "sqlite":
        yield read_settings({}, home=tmp_path)
        return
    cluster: postgres.Cluster = request.getfixturevalue("cluster")
    name = engine.unique_name("empty")
    cluster.create_database(name)
    yield read_settings({}, home=tmp_path, database_url=cluster.url(name))
    cluster.drop_database(name)


@pytest.fixture
def app(store: Settings) -> Iterator[App]:
    """The engine on a store with the sample data."""
    app = open_app(store)
    yield app
    app.close()


@pytest.fixture
def sqlite_app(sqlite_template: Path, tmp_path: Path) -> Iterator[App]:
    """The engine on SQLite alone, for what cannot depend on the database."""
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    app = open_app(read_settings({}, home=tmp_path))
    yield app
    app.close()


@pytest.fixture
def clock() -> engine.StillEffects:
    """Time that stands still until the test moves it."""
    return engine.StillEffects(engine.TODAY)


@pytest.fixture(scope="session")
def real_clock() -> Effects:
    """The clock of the machine, and the mark of a test that goes by it: `today`."""
    return Effects()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
