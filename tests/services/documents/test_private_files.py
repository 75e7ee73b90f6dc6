"""What the engine stores is for the operator alone, whatever the umask of whoever started it."""

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cpq.app.access import LOCAL_AGENT
from cpq.base import running_servers
from cpq.base.running_servers import RunningServer
from cpq.base.settings import Settings
from cpq.services.documents.file_store import Store
from cpq.storage import migrations
from tests.support.engine import open_app


@pytest.fixture
def _careless() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_careless")
def test_home_database_and_documents_are_for_the_operator_alone(empty_store: Settings, tmp_path: Path):
    home = tmp_path / "deep" / "home"
    settings = empty_store.model_copy(update={"home": home})
    documents = Store(home)
    with running_servers.announced(home, RunningServer("http://127.0.0.1:1", 1, 1, "2026-11-16T09:00:00Z")):
        with documents.incoming(b"%PDF"):
            pass
        migrations.upgrade(settings)
        with closing(open_app(settings)) as app:
            app.read_unaudited(app.new_call(LOCAL_AGENT), lambda tx: tx.now)
        made = [home, *home.rglob("*")]
        rights = {str(path.relative_to(home)): stat.S_IMODE(path.stat().st_mode) for path in made}
    assert len(rights) >= 5
    assert {name: oct(mode) for name, mode in rights.items() if mode & 0o077} == {}
