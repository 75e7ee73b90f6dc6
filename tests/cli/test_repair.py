"""`cpq doctor` finds damaged storage, and `cpq repair` restores what can be made."""

import json
from pathlib import Path

from cpq.base.settings import read_settings
from tests.cli.conftest import Run, query
from tests.support.approvals import priced_quote
from tests.support.engine import Tools, open_app


def test_doctor_and_repair_find_and_mend_an_emptied_word_index(home: Path, run: Run):
    assert {"pages", "word index"} <= {one["subject"] for one in json.loads(run("doctor", "--json").out)["findings"]}
    query(home, "DELETE FROM search_key")
    ran = run("doctor")
    assert ran.code == 1
    assert "run `cpq repair`" in ran.out
    ran = run("repair")
    assert ran.code == 0
    assert "written again for" in ran.out
    assert run("doctor").code == 0
    assert "is whole" in run("repair").out


def test_doctor_fails_on_a_damaged_page(home: Path, run: Run):
    (page,) = query(home, "SELECT rootpage FROM sqlite_master WHERE name = 'quote_line'")[0]
    ((size,),) = query(home, "PRAGMA page_size")
    with (home / "quotewright.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    ran = run("doctor")
    assert ran.code == 1
    assert "restore a backup" in " ".join(ran.out.split())


def test_repair_renders_a_lost_document_again(home: Path, run: Run):
    app = open_app(read_settings({}, home=home))
    tools = Tools(app)
    paths = [Path(tools("quote_pdf", quote_id=priced_quote(tools, 0))["file_path"]) for _ in range(2)]
    app.close()
    before = [path.read_bytes() for path in paths]
    paths[0].unlink()
    paths[1].write_bytes(b"changed")
    ran = run("repair", "--json")
    assert json.loads(ran.out) == {"products_indexed": 0, "documents_restored": 2, "documents_lost": 0}
    assert [path.read_bytes() for path in paths] == before
