"""Backups and copies: made while others write, whole or nothing after a kill, proven on the database they came to."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, audit
from cpq.app.access import OPERATOR
from cpq.app.reconciliation import reconcile
from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings, read_settings
from cpq.base.text import fingerprint
from cpq.services import backups, documents, quotes
from cpq.services.backups import snapshot
from cpq.storage import migrations, portable_rows
from cpq.storage.portable_rows import TableShape
from cpq.storage.schema import tables
from tests.support import engine, postgres
from tests.support.engine import SELLER, Tools, open_app, row_counts
from tests.support.quotes import new_quote, sent_quote

WRITERS = 2
PAUSE_SECONDS = 0.05
"""Between two quotes of a writer, so that there are few to prove afterwards."""

Progress = Callable[[int, int], None]


def quiet(_done: int, _total: int) -> None:
    pass


@pytest.fixture
def target(store: Settings, cluster: postgres.Cluster, tmp_path: Path) -> Iterator[Settings]:
    """The settings of an empty home on the other database."""
    home = tmp_path / "restored"
    if not store.is_sqlite:
        yield read_settings({}, home=home)
        return
    name = engine.unique_name("restored")
    cluster.create_database(name)
    yield read_settings({}, home=home, database_url=cluster.url(name))
    cluster.drop_database(name)


@contextmanager
def opened(settings: Settings) -> Iterator[App]:
    with closing(App(settings, engine.RunningEffects())) as app:
        yield app


def restore(settings: Settings, path: Path) -> backups.Restored:
    with opened(settings) as app:
        return backups.restore(app, path, quiet)


def save(settings: Settings, path: Path) -> backups.Saved:
    with opened(settings) as app:
        return backups.save(app, path, quiet)


def assert_proven(app: App) -> int:
    """Prices, chain and rows are right; returns the number of quotes."""
    versions, state = app.read_unaudited(
        app.new_call(OPERATOR), lambda tx: (len(list(quotes.replay_stored(tx, None))), reconcile(tx, quiet))
    )
    assert state.findings == []
    assert state.unchecked_quotes == 0
    assert versions >= state.quotes
    with app.database.reading() as connection:
        assert audit.verify(connection, "main").broken_at is None
    return state.quotes


def stored_quotes(app: App) -> set[str]:
    with app.database.reading() as connection:
        return set(connection.scalars(sa.select(tables.quote.c.id)))


@contextmanager
def writers(app: App) -> Iterator[list[str]]:
    """Threads that create quotes all the time; the list has those that were acknowledged."""
    made: list[str] = []
    is_over = threading.Event()

    def write() -> None:
        tools = Tools(app, principal=SELLER)
        while not is_over.is_set():
            made.append(new_quote(tools))
            is_over.wait(PAUSE_SECONDS)

    threads = [threading.Thread(target=write) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        while len(made) < WRITERS:
            Effects().sleep(0.01)
        yield made
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def test_a_backup_made_while_others_write_is_of_one_moment_and_restores_on_the_other_database(
    store: Settings, target: Settings, tmp_path: Path
):
    with closing(open_app(store)) as app:
        with writers(app) as made:
            before = set(made)
            saved = backups.save(app, tmp_path / "online.zip", quiet)
            while len(made) < saved.rows["quote"] + 1:
                Effects().sleep(0.01)
        assert before <= stored_quotes(app)
    restored = restore(target, tmp_path / "online.zip")
    assert restored.rows == saved.rows
    with closing(open_app(target)) as app:
        found = stored_quotes(app)
        assert before <= found < set(made)
        assert assert_proven(app) == len(found) == saved.rows["quote"]
        assert Tools(app)("catalog_search", query="suite")["items"]
        new_quote(Tools(app))


def test_a_copy_made_while_others_write_is_of_one_moment(store: Settings, target: Settings):
    with closing(open_app(store)) as app, opened(target) as other:
        with writers(app) as made:
            before = set(made)
            copied = backups.copy(app, other, quiet)
        found = stored_quotes(other)
        assert before <= found <= set(made)
        assert assert_proven(other) == len(found) == copied.rows["quote"]
        assert row_counts(other, but=()) == copied.rows
        with pytest.raises(CpqError) as refused:
            backups.copy(app, other, quiet)
    assert refused.value.code is Code.CONFLICT
    assert "is not empty: audit_entry has" in refused.value.message
    assert "to start over, drop the database" in str(refused.value.details["hint"])


KILLED = """
import os, signal, sys
from cpq.cli import main
from cpq.storage import portable_rows
real, left = portable_rows.{function}, [{after}]
def killed(connection, shape, *rest):
    if shape.name == {table!r}:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
    return real(connection, shape, *rest)
portable_rows.{function} = killed
sys.exit(main({arguments!r}))
"""


def run_until_killed(home: Path, arguments: list[str], function: str, table: str, after: int = 1) -> None:
    """Run `cpq` in a process of its own, which dies by SIGKILL when it comes to a table."""
    program = KILLED.format(function=function, table=table, after=after, arguments=["--home", str(home), *arguments])
    ran = subprocess.run(
        [sys.executable, "-c", program], env=engine.bare_environment(), capture_output=True, check=False
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()


def database_of(settings: Settings) -> list[str]:
    return ["--database-url", settings.database_url] if settings.database_url else []


def test_what_is_killed_in_the_middle_leaves_nothing_and_works_when_it_is_repeated(
    store: Settings,
    target: Settings,
    tmp_path: Path,
    real_clock: Effects,
):
    with closing(open_app(store)) as app:
        quote_id = sent_quote(Tools(app))
        counts = row_counts(app)
    file = tmp_path / "kept" / "quotes.zip"
    if store.is_sqlite:
        run_until_killed(store.home, ["backup", str(file)], "read", "quote_line")
        assert not file.exists()
        assert len(list(file.parent.iterdir())) == 1, "the part that was written has another name"
    save(store, file)
    assert list(file.parent.iterdir()) == [file], "what the killed one left is gone"
    run_until_killed(target.home, [*database_of(target), "restore", str(file)], "insert", "quote_line")
    with opened(target) as app:
        assert not any(row_counts(app, but=()).values())
    if target.is_sqlite:
        to = ["copy", "--to", f"sqlite:///{target.sqlite_path}"]
        run_until_killed(store.home, [*database_of(store), *to], "digest", "quote_line")
        with opened(target) as app:
            assert not any(row_counts(app, but=()).values())
    assert restore(target, file).was_there is False
    assert restore(target, file).was_there is True, "a restore that was stopped at its end can be repeated"
    with opened(target) as app:
        assert row_counts(app) == counts
        assert Tools(app)("quote_get", quote_id=quote_id)["quote"]["status"] == "sent"
        assert_proven(app)


def test_a_restore_neither_overwrites_nor_mixes(sqlite_app: App, tmp_path: Path):
    settings, file = sqlite_app.settings, tmp_path / "one.zip"
    backups.save(sqlite_app, file, quiet)
    new_quote(Tools(sqlite_app))
    before = row_counts(sqlite_app)
    with pytest.raises(CpqError) as refused:
        backups.restore(sqlite_app, file, quiet)
    assert "is not empty" in refused.value.message
    assert row_counts(sqlite_app) == before
    other = settings.model_copy(update={"home": tmp_path / "other"})
    (other.home / "policies").mkdir(parents=True)
    (other.home / "policies" / "approval.yaml").write_text("mine")
    in_the_way = next(name for name in zipfile.ZipFile(file).namelist() if name.startswith("policies/"))
    (other.home / in_the_way).parent.mkdir(parents=True, exist_ok=True)
    (other.home / in_the_way).write_text("mine")
    with pytest.raises(CpqError) as refused:
        restore(other, file)
    assert f"{Path(in_the_way).name} is there already and differs" in refused.value.message
    assert not other.sqlite_path.exists()


def test_a_backup_has_the_documents_the_policies_and_the_templates_and_is_for_the_operator_alone(
    sqlite_app: App, tmp_path: Path
):
    made = Path(Tools(sqlite_app)("quote_pdf", quote_id=sent_quote(Tools(sqlite_app)))["file_path"])
    saved = backups.save(sqlite_app, tmp_path, quiet)
    assert Path(saved.path).parent == tmp_path
    assert oct(Path(saved.path).stat().st_mode & 0o777) == "0o600"
    assert (saved.documents, saved.missing_documents) == (1, [])
    other = read_settings({}, home=tmp_path / "other")
    restored = restore(other, Path(saved.path))
    store = documents.Store(other.home)
    assert store.read(made.stem) == made.read_bytes()
    assert restored.documents == 1
    assert [Path(folder).name for folder in restored.folders] == ["policies", "templates"]
    with closing(open_app(other.model_copy(update={"policies_dir": other.home / "policies"}))) as app:
        assert app.policies.current().content_hash == sqlite_app.policies.current().content_hash
    assert {path.stat().st_mode & 0o077 for path in other.home.rglob("*")} == {0}
    with pytest.raises(CpqError, match="There is already a file"):
        backups.save(sqlite_app, Path(saved.path), quiet)
    made.unlink()
    assert backups.save(sqlite_app, tmp_path / "second.zip", quiet).missing_documents == [made.stem]


KEY = "cXVvdGV3cmlnaHQgdGVzdHMsIHRoaXJ0eS10d28gYnl0ZXMh"


def key_file(path: Path, key: str) -> Path:
    path.write_text(key + "\n")
    path.chmod(0o600)
    return path


def test_the_audit_key_signs_a_backup_and_is_in_it_only_when_asked_for(sqlite_template: Path, tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(sqlite_template, home / "quotewright.db")
    with opened(read_settings({}, home=home, audit_key_file=key_file(tmp_path / "key", KEY))) as app:
        saved = backups.save(app, tmp_path / "plain.zip", quiet)
        asked = backups.save(app, tmp_path / "secret.zip", quiet, with_audit_key=True)
    assert (saved.is_signed, saved.has_audit_key, asked.has_audit_key) == (True, False, True)
    assert KEY.encode() not in b"".join(
        zipfile.ZipFile(saved.path).read(one) for one in zipfile.ZipFile(saved.path).namelist()
    )
    wrong = key_file(tmp_path / "wrong", KEY[::-1].replace("h", "A") + "A" * (-len(KEY) % 4))
    with pytest.raises(CpqError, match="not by the audit key of this installation"):
        restore(read_settings({}, home=tmp_path / "one", audit_key_file=wrong), Path(saved.path))
    assert not (tmp_path / "one").exists()
    keyed = read_settings({}, home=tmp_path / "two", audit_key_file=tmp_path / "key")
    assert restore(keyed, Path(asked.path)).signature == "right"
    assert (tmp_path / "two" / "audit.key").read_text().strip() == KEY


@pytest.fixture(scope="module")
def whole(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of the sample data."""
    home = tmp_path_factory.mktemp("whole")
    shutil.copy(sqlite_template, home / "quotewright.db")
    save(read_settings({}, home=home), home / "whole.zip")
    return home / "whole.zip"


def rewritten(whole: Path, path: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """The backup with other contents in its parts; None leaves a part out."""
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w") as made:
        for name in source.namelist():
            content = change(name, source.read(name))
            if content is not None:
                made.writestr(name, content)
    return path


def refused_restore(path: Path, home: Path) -> str:
    with pytest.raises(CpqError) as refused:
        restore(read_settings({}, home=home), path)
    assert refused.value.code is Code.CONFLICT
    assert not home.exists(), "nothing was written"
    return refused.value.message


@pytest.mark.parametrize("name", ["tables/price.jsonl", "policies/approvals.yaml", "manifest.json"])
@pytest.mark.parametrize("damage", ["changed", "shorter", "missing"])
def test_a_changed_backup_is_refused_with_the_part_named(whole: Path, tmp_path: Path, name: str, damage: str):
    name = (
        name
        if name in zipfile.ZipFile(whole).namelist()
        else next(one for one in zipfile.ZipFile(whole).namelist() if one.startswith("policies/"))
    )

    def change(one: str, content: bytes) -> bytes | None:
        if one != name:
            return content
        return {"changed": content[:40] + b"X" + content[41:], "shorter": content[:-9], "missing": None}[damage]

    assert name in refused_restore(rewritten(whole, tmp_path / "bad.zip", change), tmp_path / "home")


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.6, 0.999])
def test_a_backup_that_was_cut_off_is_refused_with_the_part_named(whole: Path, tmp_path: Path, share: float):
    content = whole.read_bytes()
    path = tmp_path / "cut.zip"
    path.write_bytes(content[: int(len(content) * share)])
    message = refused_restore(path, tmp_path / "home")
    assert "is cut off" in message if share else "does not begin like a backup" in message


def test_a_flipped_bit_is_refused_with_the_part_named(whole: Path, tmp_path: Path):
    content = whole.read_bytes()
    largest = sorted(zipfile.ZipFile(whole).infolist(), key=lambda one: one.compress_size)[-4:]
    for info in largest:
        flipped = bytearray(content)
        flipped[info.header_offset + 100 + info.compress_size // 2] ^= 0x20
        (tmp_path / "flipped.zip").write_bytes(flipped)
        assert info.filename in refused_restore(tmp_path / "flipped.zip", tmp_path / "home")


def forged(whole: Path, path: Path, *, more: dict[str, bytes] | None = None, **changes: Any) -> Path:
    """The backup with further parts and another manifest, whose checksums are right."""
    manifest = json.loads(zipfile.ZipFile(whole).read("manifest.json")) | changes
    for name, content in (more or {}).items():
        manifest["parts"][name] = {"sha256": sha256(content).hexdigest(), "bytes": len(content)}
    signed = {name: value for name, value in manifest.items() if name not in ("checksum", "signature")}
    written = json.dumps({**signed, "checksum": fingerprint(signed)}).encode()
    rewritten(whole, path, lambda name, content: written if name == "manifest.json" else content)
    with zipfile.ZipFile(path, "a") as made:
        for name, content in (more or {}).items():
            made.writestr(name, content)
    return path


ODD_TABLE = {"name": "quote; DROP", "columns": [["id", "plain"]], "part": "tables/quote.jsonl"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"format": 2}, "which this version does not know"),
        ({"schema_version": "9999"}, "which this version does not know"),
        ({"schema_version": "../0001"}, "which this version does not know"),
        ({"tables": [ODD_TABLE]}, "in a way that cannot be"),
        ({"more": {"policies/../../out.yaml": b""}}, "has a name that cannot be"),
        ({"more": {f"documents/{'0' * 64}.pdf": b"another"}}, "is not the document of its name"),
    ],
)
def test_a_forged_manifest_is_refused(whole: Path, tmp_path: Path, changes: dict[str, Any], told: str):
    assert told in refused_restore(forged(whole, tmp_path / "odd.zip", **changes), tmp_path / "home")


def test_a_backup_of_an_older_schema_is_restored_and_brought_up_to_date(
    store: Settings, target: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with closing(open_app(store)) as app:
        quote_id = sent_quote(Tools(app))
    migrations.downgrade(store, "0038")
    with opened(store) as app:
        with app.database.reading() as connection:
            known = sa.inspect(connection)
            older = [
                TableShape(shape.name, tuple(one for one in shape.columns if one[0] in columns))
                for shape in portable_rows.shapes()
                if known.has_table(shape.name)
                for columns in [{column["name"] for column in known.get_columns(shape.name)}]
            ]
        assert len(older) < len(portable_rows.shapes())
        with monkeypatch.context() as then:
            then.setattr(portable_rows, "shapes", lambda: older)
            then.setattr(snapshot, "SCHEMA_VERSION", "0038")
            then.setattr("cpq.app.app.SCHEMA_VERSION", "0038")
            backups.save(app, tmp_path / "older.zip", quiet)
    assert restore(target, tmp_path / "older.zip").schema_version == "0038"
    with closing(open_app(target)) as app:
        assert Tools(app)("quote_get", quote_id=quote_id)["quote"]["status"] == "sent"
        app.read_unaudited(app.new_call(OPERATOR), lambda tx: list(quotes.replay_stored(tx, None)))


def test_a_backup_without_room_leaves_nothing(sqlite_app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(CpqError) as refused:
        backups.save(sqlite_app, tmp_path / "full" / "one.zip", quiet)
    assert refused.value.code is Code.UNAVAILABLE
    assert "No space left on device" in refused.value.message
    assert list((tmp_path / "full").iterdir()) == []
