"""Faults of the disk, the database and a worker: callers are told what happened and who mends it, and it then works."""

import errno
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
import sqlalchemy as sa
from mcp import Client
from mcp.shared.exceptions import MCPError

from cpq.app import App
from cpq.app.health import page_loop, readiness
from cpq.base.disk_space import DiskSpace
from cpq.base.settings import Settings
from cpq.services.catalog import index_repair
from cpq.services.documents import worker_pool
from tests.support.approvals import priced_quote, revoke_all
from tests.support.engine import Tools, open_app, row_counts

NEW = {"account_id": "acct_acme_001", "line_items": [{"product_id": "prod_pro_v2", "quantity": 1}]}


def forbid_writes(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA query_only=ON")


def make_read_only(app: App, *, is_so: bool) -> None:
    """As when the file or the server refuses to be written for a while: whoever connects meanwhile cannot write."""
    engine = app.database._writer
    if app.database.is_sqlite:
        change = sa.event.listen if is_so else sa.event.remove
        change(engine, "connect", forbid_writes)
        if is_so:
            app.database._connection = None
    else:
        with engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql("SET default_transaction_read_only=off")
            name = connection.exec_driver_sql("SELECT current_database()").scalar()
            connection.exec_driver_sql(
                f"ALTER DATABASE {name} SET default_transaction_read_only={'on' if is_so else 'off'}"
            )
            connection.detach()
    if is_so:
        engine.dispose()


def test_a_read_only_database_is_unavailable_and_works_again_at_once(app: App):
    tools = Tools(app)
    make_read_only(app, is_so=True)
    error = tools.error("quote_create", **NEW)
    assert error["code"] == "UNAVAILABLE"
    assert error["message"] == "The database can be read, but not written. Nothing was changed."
    assert "The operator makes the database writable" in error["details"]["hint"]
    assert error["details"]["retry_after_seconds"] == 30
    assert not app.database.is_suspect, "no page is damaged, so none has to be looked at"
    make_read_only(app, is_so=False)
    assert tools("quote_create", **NEW)["quote_id"]
    assert readiness(app)["database"] == "ok"


def test_a_nearly_full_disk_refuses_what_stores_and_reads_go_on(app: App):
    tools = Tools(app)
    quote_id = tools("quote_create", **NEW)["quote_id"]
    before = row_counts(app)
    app.disk = DiskSpace(app.settings.home, 200, app.effects, look=lambda _folder: 150_000_000)
    for name, arguments in (
        ("quote_create", NEW),
        ("quote_price", {"quote_id": quote_id}),
        ("quote_pdf", {"quote_id": quote_id}),
    ):
        error = tools.error(name, **arguments)
        assert error["code"] == "UNAVAILABLE"
        assert "150 MB of the disk are free, fewer than 200 MB" in error["message"]
        assert "The operator makes room on the disk of CPQ_HOME" in error["details"]["hint"]
        assert error["details"]["retry_after_seconds"] == 60
    assert tools("quote_get", quote_id=quote_id)["quote"]["status"] == "draft"
    assert row_counts(app) == before
    revoke_all(app, "nobody")  # An administrator can still act.
    app.disk = DiskSpace(app.settings.home, 200, app.effects, look=lambda _folder: 250_000_000)
    assert tools("quote_create", **NEW)["quote_id"]


def test_a_connection_from_the_time_of_a_read_only_database_costs_no_call(app: App):
    make_read_only(app, is_so=True)
    with app.database._writer.connect():
        pass  # It is kept for the next write.
    make_read_only(app, is_so=False)
    assert Tools(app)("quote_create", **NEW)["quote_id"]


def test_a_server_whose_database_cannot_be_written_is_not_ready(sqlite_app: App):
    make_read_only(sqlite_app, is_so=True)
    assert readiness(sqlite_app)["database"] == "The database can be read, but not written."
    make_read_only(sqlite_app, is_so=False)
    assert readiness(sqlite_app)["database"] == "ok"


def damage(settings: Settings, table: str) -> None:
    """Overwrite the first page of a table, as a failing disk does."""
    app = open_app(settings)
    with app.database.reading() as connection:
        page = connection.scalar(sa.text("SELECT rootpage FROM sqlite_master WHERE name = :name"), {"name": table})
        size = connection.exec_driver_sql("PRAGMA page_size").scalar() or 0
    app.close()
    with settings.sqlite_path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def test_a_damaged_page_is_named_to_the_caller_and_by_readyz(sqlite_app: App):
    settings = sqlite_app.settings
    sqlite_app.close()
    damage(settings, "product")
    app = open_app(settings)
    assert readiness(app)["pages"] == "ok"  # Nobody has looked.
    error = Tools(app).error("catalog_get", product_id="prod_pro_v2")
    assert error["code"] == "UNAVAILABLE"
    assert "`cpq doctor`" in error["details"]["hint"]
    assert app.database.is_suspect
    page_loop(app)._work()
    assert readiness(app)["pages"] == "damaged: the operator runs `cpq doctor`"
    app.close()


def test_an_emptied_word_index_is_told_and_mended(app: App):
    tools = Tools(app)
    before = tools("catalog_search", query="suite")
    assert before["items"]
    assert index_repair.is_whole(app)
    with app.database.writing(app.effects.monotonic() + 5) as connection:
        connection.exec_driver_sql("DELETE FROM catalog_index")
    error = tools.error("catalog_search", query="suite")
    assert error["code"] == "UNAVAILABLE"
    assert "`cpq repair`" in error["details"]["hint"]
    assert not index_repair.is_whole(app)
    assert index_repair.state(app) == "lost products or cannot be read: it is written again within a minute"
    index_repair.loop(app)._work()
    assert tools("catalog_search", query="suite") == before
    assert index_repair.is_whole(app)
    assert index_repair.state(app) == "ok"


def test_an_emptied_dictionary_is_told_and_mended(app: App):
    tools = Tools(app)
    before = tools("catalog_search", query="comprssor")
    assert before["matched"] == "all_words"
    with app.database.writing(app.effects.monotonic() + 5) as connection:
        connection.exec_driver_sql("DELETE FROM catalog_word")
    assert tools("catalog_search", query="comprssor") != before
    assert index_repair.state(app) == "lost products or cannot be read: it is written again within a minute"
    index_repair.loop(app)._work()
    assert tools("catalog_search", query="comprssor") == before
    assert index_repair.state(app) == "ok"


def test_a_damaged_word_index_is_mended(sqlite_app: App):
    before = Tools(sqlite_app)("catalog_search", query="suite")
    with sqlite_app.database.writing(sqlite_app.effects.monotonic() + 5) as connection:
        connection.exec_driver_sql("UPDATE catalog_index_data SET block = x'ffffffffffffffff'")
    settings = sqlite_app.settings
    sqlite_app.close()
    app = open_app(settings)
    assert Tools(app).error("catalog_search", query="suite")["code"] == "UNAVAILABLE"
    assert not index_repair.is_whole(app)
    assert index_repair.state(app) != "ok"
    index_repair.rebuild(app)
    assert index_repair.state(app) == "ok"
    assert Tools(app)("catalog_search", query="suite") == before
    app.close()


@pytest.mark.parametrize("obstacle", ["a file in the way", "a folder in the way of the document", "no room"])
def test_a_document_that_cannot_be_stored_is_unavailable(
    sqlite_tools: Tools, obstacle: str, monkeypatch: pytest.MonkeyPatch
):
    tools = sqlite_tools
    quote_id = priced_quote(tools, 0)
    folder = tools.app.settings.home / "documents"
    if obstacle == "a file in the way":
        folder.write_text("")
    elif obstacle == "no room":

        def refuse(_descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", refuse)
    else:
        path = Path(tools("quote_pdf", quote_id=quote_id)["file_path"])
        path.unlink()
        path.mkdir()
    error = tools.error("quote_pdf", quote_id=quote_id)
    assert error["code"] == "UNAVAILABLE"
    assert error["message"].startswith("The document could not be stored: ")
    assert "The operator makes the folder `documents`" in error["details"]["hint"]
    assert str(folder) not in str(error)


def test_the_death_of_a_worker_costs_a_retry_and_not_the_call(sqlite_tools: Tools, monkeypatch: pytest.MonkeyPatch):
    deaths = dying(monkeypatch, 1)
    assert sqlite_tools("quote_pdf", quote_id=priced_quote(sqlite_tools, 0))["pdf_generated"]
    assert len(deaths) == 1


def test_a_worker_that_dies_every_time_is_unavailable(sqlite_tools: Tools, monkeypatch: pytest.MonkeyPatch):
    deaths = dying(monkeypatch, 5)
    error = sqlite_tools.error("quote_pdf", quote_id=priced_quote(sqlite_tools, 0))
    assert error["code"] == "UNAVAILABLE"
    assert error["details"]["retry_after_seconds"] == 5
    assert len(deaths) == 2


def dying(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """The next workers are killed as soon as they have a job."""
    deaths: list[int] = []
    real = worker_pool._Worker._send

    def send(worker: Any, job: bytes) -> None:
        if len(deaths) < times:
            deaths.append(worker._process.pid)
            worker._process.kill()
        real(worker, job)

    monkeypatch.setattr(worker_pool._Worker, "_send", send)
    return deaths


@pytest.mark.proof
@pytest.mark.anyio
async def test_sigterm_ends_a_server_that_renders_and_leaves_no_worker(store: Settings):
    environment = {**os.environ, "CPQ_HOME": str(store.home), "CPQ_DATABASE_URL": store.database_url or ""}
    command = [sys.executable, "-m", "mcp_facade", "--transport", "streamable-http", "--port", "0"]
    server = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        address = next(line.split()[1] for line in server.stderr if line.startswith("mcp "))
        half_sent = socket.socket()
        while half_sent.connect_ex(("127.0.0.1", urlsplit(address).port)):
            await anyio.sleep(0.05)
        half_sent.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
        async with Client(address) as client, anyio.create_task_group() as tasks:
            lines = [{"product_id": "prod_pro_v2", "quantity": number} for number in range(1, 300)]
            made: Any = await client.call_tool("quote_create", {"account_id": "acct_acme_001", "line_items": lines})
            quote_id = made.structured_content["quote_id"]
            await client.call_tool("quote_price", {"quote_id": quote_id})
            tasks.start_soon(render, client, quote_id)
            while not (workers := children(server.pid)):
                await anyio.sleep(0.05)
            server.terminate()
            await anyio.to_thread.run_sync(server.wait, 25)  # Half-sent requests alone have 30 seconds.
            tasks.cancel_scope.cancel()
        half_sent.close()
    finally:
        server.kill()
        server.communicate()  # Waits, and closes the pipe.
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        await anyio.sleep(0.05)


async def render(client: Client, quote_id: str) -> None:
    with suppress(MCPError):  # The server ends before it answers.
        await client.call_tool("quote_pdf", {"quote_id": quote_id})


def children(pid: int) -> list[str]:
    return [pid for task in Path(f"/proc/{pid}/task").iterdir() for pid in (task / "children").read_text().split()]
