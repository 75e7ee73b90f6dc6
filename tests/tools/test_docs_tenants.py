"""Each tenant has a folder of pages of its own, and no tool shows it a page of another tenant."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.app.access import LOCAL_AGENT
from cpq.base.errors import CpqError
from cpq.base.settings import Settings, read_settings
from cpq.retrieval import docs
from cpq.storage.schema.tables import search_vector
from tests.support.engine import Tools, add_tenant, open_app

SECRETS = {"main": "Ostrich discounts end in May.", "acme": "Walrus discounts end in June."}


@pytest.fixture
def app(store: Settings, tmp_path: Path) -> Iterator[App]:
    for tenant, text in SECRETS.items():
        (tmp_path / tenant).mkdir()
        (tmp_path / tenant / "terms.md").write_text(f"# Terms\n\n{text}\n")
        (tmp_path / tenant / f"only-{tenant}.md").write_text(f"# Only {tenant}\n\n{text}\n")
    folders = {"docs_dir": tmp_path / "main", "docs_dirs": f"acme={tmp_path / 'acme'}"}
    opened = open_app(store.model_copy(update=folders))
    for tenant in ("acme", "beta"):
        add_tenant(opened, tenant)
    yield opened
    opened.close()


def tools_of(app: App, tenant_id: str) -> Tools:
    return Tools(app, principal=replace(LOCAL_AGENT, tenant_id=tenant_id))


@pytest.mark.parametrize(("mine", "other"), [("main", "acme"), ("acme", "main")])
def test_a_tenant_reads_its_own_pages_and_never_those_of_another(app: App, tmp_path: Path, mine: str, other: str):
    tools_of(app, other)("search_docs", query="discounts end")
    tools = tools_of(app, mine)
    found = tools("search_docs", query=f"discounts end {SECRETS[other]}", top_k=20)
    assert {hit["metadata"]["file_path"] for hit in found["results"]} == {"terms.md", f"only-{mine}.md"}
    pages = tools("list_pages")["pages"]
    answers = [found, pages, tools("get_page", file_path="terms.md"), tools("get_status")]
    answers.append(tools("get_section", file_path="terms.md", heading_path="Terms"))
    assert all(SECRETS[mine].split()[0] in str(answer) for answer in (answers[0], answers[2], answers[4]))
    assert not [answer for answer in answers if SECRETS[other].split()[0] in str(answer)]
    assert not [answer for answer in answers if str(tmp_path / other) in str(answer)]
    theirs = tmp_path / other / "terms.md"
    for path in (f"only-{other}.md", str(theirs), f"../{other}/terms.md", f"./../{other}/only-{other}.md"):
        refused = tools.error("get_page", file_path=path)
        assert refused["code"] == "NOT_FOUND", path
        assert SECRETS[other].split()[0] not in str(refused)


def test_a_link_into_the_folder_of_another_tenant_is_not_followed(app: App, tmp_path: Path):
    (tmp_path / "acme" / "linked.md").symlink_to(tmp_path / "main" / "only-main.md")
    (tmp_path / "acme" / "folder").symlink_to(tmp_path / "main", target_is_directory=True)
    tools = tools_of(app, "acme")
    assert {page["file_path"] for page in tools("list_pages")["pages"]} == {"terms.md", "only-acme.md"}
    assert "Ostrich" not in str(tools("search_docs", query="Ostrich", top_k=20)["results"])


def test_a_tenant_without_a_folder_has_no_pages(app: App):
    tools = tools_of(app, "beta")
    calls = {"search_docs": {"query": "discounts"}, "list_pages": {}, "get_page": {"file_path": "terms.md"}}
    for name, arguments in {**calls, "get_status": {}}.items():
        refused = tools.error(name, **arguments)
        assert refused["code"] == "UNAVAILABLE", name
        assert refused["message"] == "The tenant beta has no folder of pages."


def test_the_server_keeps_up_with_each_folder_and_stores_vectors_for_its_tenant(app: App):
    loops = docs.loops(app)
    assert [loop.name for loop in loops] == ["docs", "docs of acme"]
    for loop in loops:
        loop._work()
    counted = sa.select(search_vector.c.tenant_id, sa.func.count()).group_by(search_vector.c.tenant_id)
    with app.database.reading() as connection:
        stored = {row[0]: row[1] for row in connection.execute(counted)}
    assert stored == {"main": 2, "acme": 2}
    assert tools_of(app, "acme")("search_docs", query="walrus")["mode"] == "hybrid"


def test_a_folder_within_that_of_another_tenant_is_refused(tmp_path: Path):
    (tmp_path / "all" / "acme").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(tmp_path / "all" / "acme", target_is_directory=True)
    for folder in ("all/acme", "alias", "all"):
        settings = Settings(docs_dir=tmp_path / "all", docs_dirs=f"acme={tmp_path / folder}")
        with pytest.raises(CpqError) as refused:
            docs.require(settings)
        assert "who would read it" in refused.value.message
    with pytest.raises(CpqError) as refused:
        docs.require(Settings(docs_dir=tmp_path / "all", docs_dirs=f"acme={tmp_path / 'nowhere'}"))
    assert refused.value.details["field"] == "CPQ_DOCS_DIRS"


@pytest.mark.parametrize("text", ["/srv/docs", "acme=", "=x", "a b=/x", "main=/x", "acme=/x,acme=/y"])
def test_folders_of_tenants_that_cannot_be_parsed_are_refused(text: str):
    with pytest.raises(CpqError) as refused:
        read_settings({"CPQ_DOCS_DIRS": text})
    assert refused.value.details["field"] == "CPQ_DOCS_DIRS"


def test_the_toolset_is_on_when_only_another_tenant_has_a_folder(tmp_path: Path):
    assert "docs" in Settings(toolsets="all", docs_dirs=f"acme={tmp_path}").enabled_toolsets
    assert "docs" not in Settings(toolsets="all").enabled_toolsets
