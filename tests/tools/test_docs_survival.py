"""What happens to the docs when files are deleted, broken, unreadable or elsewhere: they go on, and say why."""

import os
import random
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cpq.app import App
from cpq.retrieval.docs import page_folder
from cpq.retrieval.docs.pages import Page, page_of
from cpq.retrieval.search import folder_files, markdown
from tests.support.engine import Tools, open_app


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "steady.md").write_text("# Steady\n\nThe quokka stays.\n")
    (root / "page.md").write_text("# Page\n\nThe numbat was here.\n")
    return root


@pytest.fixture
def tools(sqlite_app: App, root: Path) -> Iterator[Tools]:
    app = open_app(sqlite_app.settings.model_copy(update={"docs_dir": root, "rate_limit_per_minute": 0}))
    tools = Tools(app)
    assert listed(tools) == ["page.md", "steady.md"]
    yield tools
    assert "steady.md" in listed(tools) or not root.exists()
    app.close()


def listed(tools: Tools) -> list[str]:
    return [page["file_path"] for page in tools("list_pages")["pages"]]


def problems(tools: Tools) -> dict[str, str]:
    return {each["file_path"]: each["problem"] for each in tools("get_status")["problems"]}


def content(tools: Tools, path: str = "page.md") -> str:
    return "\n".join(chunk["content"] for chunk in tools("get_page", file_path=path)["chunks"])


def test_a_deleted_file_is_gone_from_every_tool(tools: Tools, root: Path):
    (root / "page.md").unlink()
    assert listed(tools) == ["steady.md"]
    assert all(hit["metadata"]["file_path"] != "page.md" for hit in tools("search_docs", query="numbat")["results"])
    assert problems(tools) == {}


def test_a_renamed_file_is_found_under_its_new_name_only(tools: Tools, root: Path):
    (root / "sub").mkdir()
    (root / "page.md").rename(root / "sub" / "moved.md")
    assert listed(tools) == ["steady.md", "sub/moved.md"]
    assert tools("search_docs", query="numbat")["results"][0]["metadata"]["file_path"] == "sub/moved.md"


def test_a_truncated_file_is_an_empty_page(tools: Tools, root: Path):
    (root / "page.md").write_text("")
    page = tools("get_page", file_path="page.md")
    assert (page["title"], page["chunks"], page["total_chars"]) == ("page.md", [], 0)
    assert tools("get_status")["index"]["total_chunks"] == 1
    (root / "page.md").write_text("# Page\n\nback\n")
    assert "back" in content(tools)


def test_r07_an_unreadable_file_keeps_its_last_good_page_and_is_reported(tools: Tools, root: Path, monkeypatch):
    real = os.open

    def refuse(path, *arguments, **options):
        if str(path).endswith("page.md"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **options)

    (root / "page.md").write_text("# Page\n\nunseen\n")
    monkeypatch.setattr(os, "open", refuse)  # The tests may run as somebody who may read everything.
    assert "numbat" in content(tools)
    assert problems(tools) == {"page.md": "cannot be opened: Permission denied; the last good state is used"}
    monkeypatch.undo()
    (root / "page.md").write_text("# Page\n\nseen again\n")
    assert "seen again" in content(tools)
    assert problems(tools) == {}


def test_r07_a_file_that_becomes_binary_keeps_its_last_good_page(tools: Tools, root: Path):
    (root / "page.md").write_bytes(b"\x89PNG\r\n\x00\x00\x01")
    (root / "new.md").write_bytes(bytes(range(256)))
    assert "numbat" in content(tools)
    assert problems(tools) == {"page.md": "is not text; the last good state is used", "new.md": "is not text"}
    assert listed(tools) == ["page.md", "steady.md"]


def test_broken_encodings_are_read_as_well_as_they_can_be(tools: Tools, root: Path):
    (root / "windows.md").write_bytes("# Gr\xf6\xdfe\n\n\x93quoted\x94 \x81\n".encode("latin-1"))
    (root / "sixteen.md").write_bytes("# Größe\n\nsixteen\n".encode("utf-16"))
    (root / "marked.md").write_bytes(b"\xef\xbb\xbf# Marked\n\nwith a BOM\n")
    (root / "cut.md").write_bytes("# Cut\n\nGröß".encode()[:-1])
    titles = {page["file_path"]: page["title"] for page in tools("list_pages")["pages"]}
    assert (titles["windows.md"], titles["sixteen.md"], titles["marked.md"]) == ("Größe", "Größe", "Marked")
    assert "“quoted”" in content(tools, "windows.md")
    assert set(problems(tools)) == {"windows.md", "cut.md"}
    assert problems(tools)["cut.md"] == "is not UTF-8; read as Windows-1252"


def test_broken_front_matter_costs_nothing_but_itself(tools: Tools, root: Path):
    (root / "page.md").write_text("---\ntags: [a, b\n---\n# Page\n\nThe body.\n")
    assert "The body." in content(tools)
    assert "tags: [a, b" in content(tools)
    assert problems(tools) == {"page.md": "the front matter is not YAML in line 3"}


def test_r07_front_matter_that_does_not_fit_its_tag_takes_nobody_else_down(tools: Tools, root: Path):
    """R-07: all tools go on, the page keeps its body, and what is repaired is seen."""
    (root / "new.md").write_text("# New\n\nThe bilby came.\n")
    (root / "page.md").write_text("---\ndraft: !!bool maybe\n---\n# Page\n\nThe body.\n")
    assert listed(tools) == ["new.md", "page.md", "steady.md"]
    assert "The body." in content(tools)
    assert problems(tools) == {"page.md": "the front matter is not YAML"}
    (root / "page.md").write_text("---\ndraft: true\n---\n# Page\n\nRepaired.\n")
    assert "Repaired." in content(tools)
    assert problems(tools) == {}


def test_r07_pages_that_were_read_in_vain_are_read_again(tools: Tools, root: Path, monkeypatch: pytest.MonkeyPatch):
    """R-07: a look that breaks off has taken over nothing, so the next one begins anew."""
    (root / "new.md").write_text("# New\n\nThe bilby came.\n")
    (root / "newer.md").write_text("# Newer\n\nThe potoroo came.\n")
    monkeypatch.setattr(page_folder, "SETTLED_SECONDS", -1)
    read: list[str] = []

    def broken(path: str, *arguments: Any) -> Page:
        read.append(path)
        if len(read) == 2:
            raise MemoryError
        return page_of(path, *arguments)

    monkeypatch.setattr(page_folder, "page_of", broken)
    assert tools.error("list_pages")["code"] == "INTERNAL_ERROR"
    assert listed(tools) == ["new.md", "newer.md", "page.md", "steady.md"]


@pytest.mark.parametrize("seconds", [10**12, -(10**12)])
def test_a_file_may_be_of_any_time(tools: Tools, root: Path, monkeypatch: pytest.MonkeyPatch, seconds: int):
    """Not every file system takes such times, so the look is told them."""
    real = folder_files.scan

    def strange(*arguments: Any, **options: Any) -> folder_files.Listing:
        found = real(*arguments, **options)
        found.files["page.md"] = found.files["page.md"]._replace(modified_ns=seconds * 10**9)
        return found

    monkeypatch.setattr(folder_files, "scan", strange)
    dates = {page["file_path"]: page["last_modified"] for page in tools("list_pages")["pages"]}
    assert dates["page.md"][:4] == ("9999" if seconds > 0 else "0001")


def test_half_characters_do_not_reach_a_client(tools: Tools, root: Path):
    (root / "page.md").write_bytes(b"\xff\xfe" + "# Page\n\nhalf ".encode("utf-16-le") + b"\x00\xd8" + b"x\x00")
    (root / "escaped.md").write_text('---\nowner: "\\ud800"\n---\n# Escaped\n')
    for path in ("page.md", "escaped.md"):
        tools("get_page", file_path=path)
        tools.reply("search_docs", {"query": "half"}).text.encode()


def test_r08_links_do_not_lead_out_of_the_folder(tools: Tools, root: Path, tmp_path: Path):
    (tmp_path / "secret.md").write_text("# Secret\n\nbilby\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("# Secret\n\nbilby\n")
    (root / "out.md").symlink_to(tmp_path / "secret.md")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "alias.md").symlink_to(root / "page.md")
    (root / "gone.md").symlink_to(root / "nothing.md")
    (root / "loop.md").symlink_to(root / "loop.md")
    (root / "again").symlink_to(root)
    assert listed(tools) == ["alias.md", "page.md", "steady.md"]
    assert "bilby" not in str(tools("search_docs", query="bilby", top_k=20))
    assert problems(tools)["out.md"] == "leads out of the folder"
    assert {"gone.md", "loop.md"} <= set(problems(tools))
    assert problems(tools)["folder"] == problems(tools)["again"] == "is a link to a folder, which is not followed"
    for path in ("out.md", "folder/secret.md", "../secret.md", "again/page.md"):
        assert tools.error("get_page", file_path=path)["code"] == "NOT_FOUND"


def test_r08_a_link_that_is_put_there_after_the_look_is_not_followed(root: Path, tmp_path: Path):
    (tmp_path / "secret.md").write_text("bilby")
    (root / "page.md").unlink()
    (root / "page.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(folder_files.UnreadableError, match="leads out"):
        folder_files.read_text(root, "page.md")


def test_r08_a_folder_that_becomes_a_link_after_the_look_is_not_followed(root: Path, tmp_path: Path, monkeypatch):
    (root / "sub").mkdir()
    (root / "sub" / "page.md").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "page.md").write_text("bilby")
    real = os.path.realpath

    def swapped(path: object) -> str:
        """The last moment before the file is opened."""
        found = real(path)  # type: ignore[call-overload]
        if found.endswith("page.md"):
            (root / "sub").rename(root / "old")
            (root / "sub").symlink_to(tmp_path / "outside")
        return found

    monkeypatch.setattr(os.path, "realpath", swapped)
    with pytest.raises(folder_files.UnreadableError, match="cannot be opened"):
        folder_files.read_text(root, "sub/page.md")


def test_a_page_of_very_many_headings_is_read_to_a_limit_and_says_so(tools: Tools, root: Path, monkeypatch):
    monkeypatch.setattr(markdown, "HEADINGS_MAX", 10)
    (root / "page.md").write_text("".join(f"# a{n}\n" for n in range(1, 25)))
    page = tools("get_page", file_path="page.md")
    assert [part["heading_path"] for part in page["chunks"]] == [f"a{n}" for n in range(1, 11)]
    assert page["chunks"][-1]["content"].endswith("# a23\n# a24")
    assert problems(tools)["page.md"] == "has more than 10 headings; from line 11 on as one"


def test_what_is_not_a_file_is_passed_over_without_waiting(tools: Tools, root: Path):
    os.mkfifo(root / "pipe.md")
    (root / "folder.md").mkdir()
    (root / "folder.md" / "inside.md").write_text("# Inside\n")
    (root / ".hidden").mkdir()
    (root / ".hidden" / "page.md").write_text("# Hidden\n")
    (root / "notes.txt").write_text("# Text\n")
    assert listed(tools) == ["folder.md/inside.md", "page.md", "steady.md"]
    assert problems(tools) == {"pipe.md": "is not a file"}


def test_a_file_that_is_too_large_is_reported(tools: Tools, root: Path):
    with (root / "page.md").open("wb") as file:
        file.truncate(folder_files.FILE_BYTES_MAX + 1)
    assert "numbat" in content(tools)
    assert problems(tools) == {"page.md": "is larger than 4 MB; the last good state is used"}


@pytest.mark.parametrize(
    "name", ["blank and more.md", "quote'\".md", "new\nline.md", "größe.md", "e\u0301.md", "%s.md"]
)
def test_any_file_name_can_be_asked_for(tools: Tools, root: Path, name: str):
    (root / name).write_text("# Strange\n\nwallaby\n")
    assert name in listed(tools)
    assert tools("get_page", file_path=name)["title"] == "Strange"
    assert tools("search_docs", query="wallaby", file_filter=name)["total_chunks"] == 1


def test_a_name_that_is_no_text_is_reported(tools: Tools, root: Path):
    try:
        with open(os.fsencode(root) + b"/bad\xff.md", "wb") as file:
            file.write(b"# Bad\n")
    except OSError:
        pytest.skip("the file system takes no such names")
    assert listed(tools) == ["page.md", "steady.md"]
    assert list(problems(tools).values()) == ["has a name that is not UTF-8"]


def test_r07_a_folder_that_vanishes_and_returns_loses_nothing_meanwhile(tools: Tools, root: Path, tmp_path: Path):
    root.rename(tmp_path / "away")
    assert listed(tools) == ["page.md", "steady.md"]
    assert "numbat" in content(tools)
    assert list(problems(tools)) == [""]
    assert "the last good state is used" in problems(tools)[""]
    (tmp_path / "away" / "page.md").write_text("# Page\n\nback\n")
    (tmp_path / "away").rename(root)
    assert "back" in content(tools)
    assert problems(tools) == {}


def test_a_folder_that_is_replaced_by_a_file_is_no_catastrophe(tools: Tools, root: Path):
    shutil.rmtree(root)
    root.write_text("not a folder")
    assert listed(tools) == ["page.md", "steady.md"]
    root.unlink()
    root.mkdir()
    (root / "steady.md").write_text("# Steady\n")
    assert listed(tools) == ["steady.md"]


def test_r07_pages_of_a_folder_that_cannot_be_opened_stay(tools: Tools, root: Path, monkeypatch):
    (root / "sub").mkdir()
    (root / "sub" / "inner.md").write_text("# Inner\n\nwombat\n")
    assert "sub/inner.md" in listed(tools)
    real = os.scandir

    def refuse(path):
        if str(path).endswith("/sub"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert "sub/inner.md" in listed(tools)
    assert problems(tools) == {"sub": "cannot be opened: Permission denied"}
    monkeypatch.undo()
    shutil.rmtree(root / "sub")
    assert listed(tools) == ["page.md", "steady.md"]


def test_many_changes_at_once_come_out_right(tools: Tools, root: Path):
    for number in range(120):
        (root / f"many-{number}.md").write_text(f"# Many {number}\n\nnumber {number}\n")
    assert len(listed(tools)) == 122
    for number in range(0, 120, 2):
        (root / f"many-{number}.md").unlink()
    (root / "many-1.md").write_text("# Other\n")
    assert len(listed(tools)) == 62
    assert tools("get_page", file_path="many-1.md")["title"] == "Other"
    subprocess.run(["find", str(root), "-name", "many-*", "-delete"], check=True)
    assert listed(tools) == ["page.md", "steady.md"]
    assert tools("get_status")["index"]["total_chunks"] == 2


CONTENTS = (
    *(
        b"# Page\n\nnumbat\n\n## Two\n\nquokka\n",
        b"# Other\n",
        b"",
        b"\x89PNG\0\0",
        b"\xff\xfe\x00\xd8x\x00",
        b"\r# cr\rtext\r",
    ),
    *("# Größe\n\n“x”".encode("cp1252"), "# S\n\nx".encode("utf-16"), b"# " + b"long " * 3000, b"> " * 500 + b"x\n"),
    *(b"---\ntags: [a\n---\n# Y\n", b"---\n? {a: 1}\n: 2\n---\n# X\n", b"---\nx: 1e999\n2024-01-01: 2024-13-45\n---\n"),
    *(b"---\n!!python/object:os.system x\n---\n# X", b"---\n" + b"[" * 5000 + b"\n---\n# X", bytes(range(1, 256))),
)


def harm(root: Path, chance: random.Random) -> None:
    """Do something to a file or a folder that people and programs do."""
    path, other = (root / chance.choice(["a.md", "b.md", "sub/c.md", "sub/deep/d.md"]) for _ in range(2))
    for each in (path, other):
        each.parent.mkdir(parents=True, exist_ok=True)
    what = chance.choice(["write", "write", "write", "delete", "rename", "truncate", "link", "drop", "vanish"])
    if what == "write":
        path.write_bytes(chance.choice(CONTENTS)) if not path.is_symlink() else path.unlink()
    elif what == "delete":
        path.unlink(missing_ok=True)
    elif what == "rename" and path.exists():
        path.rename(other)
    elif what == "truncate" and path.is_file() and not path.is_symlink():
        os.truncate(path, chance.randrange(9))
    elif what == "link":
        path.unlink(missing_ok=True)
        path.symlink_to(chance.choice([root.parent / "secret.md", root / "a.md", root / "nothing.md", path]))
    elif what == "drop":
        shutil.rmtree(root / "sub", ignore_errors=True)
    elif what == "vanish":
        root.rename(root.parent / "away")
        (root.parent / "away").rename(root)


@pytest.mark.parametrize("seed", range(2))
def test_r07_whatever_happens_to_files_calls_go_on_and_the_end_is_what_a_fresh_look_finds(
    tools: Tools, root: Path, seed: int
):
    (root.parent / "secret.md").write_text("# Secret\n\nbilby\n")
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            assert "bilby" not in str(tools("search_docs", query="numbat quokka bilby", top_k=20)["results"])
            tools("list_pages")

    chance = random.Random(seed)
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(ask)
        for _ in range(60):
            harm(root, chance)
            tools("list_pages")
        stop.set()
        asking.result()
    app = open_app(tools.app.settings)
    fresh = {page["file_path"]: page for page in Tools(app)("list_pages")["pages"]}
    app.close()
    now = {page["file_path"]: page for page in tools("list_pages")["pages"]}
    assert {path: page for path, page in now.items() if path in fresh} == fresh
    assert now.keys() - fresh.keys() <= problems(tools).keys()  # The last good state of what cannot be read.
    assert tools("get_status")["index"]["total_chunks"] == sum(page["chunk_count"] for page in now.values())
