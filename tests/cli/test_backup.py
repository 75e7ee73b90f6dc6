"""`cpq backup`, `cpq restore` and `cpq copy`, as an operator types them."""

import json
from pathlib import Path

from tests.cli.conftest import Run, query


def test_an_operator_backs_up_restores_elsewhere_and_sees_the_proof(home: Path, run: Run, tmp_path: Path):
    made = run("backup", tmp_path / "one.zip")
    assert made.code == 0, made.err
    assert "signed             no: there is no audit key" in made.out
    checksum = made.out.partition("checksum")[2].split()[0]
    restored = run("--home", tmp_path / "new", "restore", tmp_path / "one.zip", "--verify")
    assert restored.code == 0, restored.err
    assert f"checksum {checksum}" in restored.out
    assert [line.split("   ")[0] for line in restored.out.splitlines()[2:-2]] == [
        "parts",
        "tables",
        "documents",
        "manifest",
        "audit chain",
        "prices",
        "rows",
        "agreements",
    ]
    assert all(line.endswith("right") for line in restored.out.splitlines()[2:-2])
    assert "set CPQ_POLICIES_DIR" in restored.out
    again = run("restore", tmp_path / "one.zip")
    assert again.code == 1
    assert "is not empty" in again.err
    assert "give another --home or --database-url" in again.err
    query(tmp_path / "new", "UPDATE product SET name = 'Other' WHERE id = 'prod_pro_v2'")
    assert run("--home", tmp_path / "new", "audit", "verify", "--state").code == 1
    assert home.exists()


def test_an_operator_copies_to_another_database_and_is_told_what_comes_next(home: Path, run: Run, tmp_path: Path):
    there = tmp_path / "there.db"
    copied = run("copy", "--to", f"sqlite:///{there}", "--json")
    assert copied.code == 0, copied.err
    answer = json.loads(copied.out)
    assert answer["rows"]["product"] == query(home, "SELECT count(*) FROM product")[0][0] > 100
    assert oct(there.stat().st_mode & 0o777) == "0o600"
    again = run("copy", "--to", f"sqlite:///{there}")
    assert again.code == 1
    assert "to start over, drop the database" in again.err
    for address in ("mysql://x/y", "postgresql://x/y", "", "sqlite://"):
        assert "postgresql+psycopg://USER@HOST/DATABASE" in run("copy", "--to", address).err


def test_a_file_that_is_no_backup_is_refused(empty_home: Path, run: Run, tmp_path: Path):
    (tmp_path / "text").write_text("hello")
    assert "it does not begin like a backup" in run("restore", tmp_path / "text").err
    assert "There is no file" in run("restore", tmp_path / "absent").err
    assert not empty_home.exists()
