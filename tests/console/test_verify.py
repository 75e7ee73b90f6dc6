"""The public page `/verify`: what a stranger who scans a document learns, and what nobody learns."""

import re
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.settings import Settings, shipped
from cpq.console.verify import LOOKS_PER_MINUTE
from cpq.services.documents import repository
from cpq.services.documents.repository import DocumentKey
from cpq.services.documents.scan_code import code_text
from cpq.storage.schema import tables
from tests.support.console import Console, serving
from tests.support.engine import StillEffects, Tools
from tests.support.papers import Paper
from tests.support.quotes import new_quote, put_into, record_again

CURRENT, NOT_CURRENT, UNKNOWN = "Issued by us, and current", "Issued by us, not current", "Not issued by us"
ADDRESS = "https://quotes.example/verify"


@pytest.fixture(scope="session")
def with_verify_url(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped templates with an address to verify at."""
    folder = tmp_path_factory.mktemp("brand") / "templates"
    shutil.copytree(shipped("pdf_templates"), folder)
    path = folder / "branding.yaml"
    text, count = re.subn(r'(?m)^verify_url: ""', f"verify_url: {ADDRESS}", path.read_text(encoding="utf-8"))
    assert count == 1
    path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def counter(store: Settings, with_verify_url: Path, clock: StillEffects) -> Iterator[Console]:
    """The server on each database, with documents that have a code to scan."""
    with serving(store.model_copy(update={"templates_dir": with_verify_url}), clock) as running:
        yield running


def issued(tools: Tools, discount: int = 0) -> tuple[str, str]:
    """A priced quote, and the path of the link in the code of its document."""
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=discount)
    return quote_id, scanned(tools, quote_id)


def scanned(tools: Tools, quote_id: str) -> str:
    document = Paper.of(tools("quote_pdf", quote_id=quote_id))
    assert "Scan to verify" in document.text
    return urlsplit(code_text(ADDRESS, document.content["quote"]))._replace(scheme="", netloc="").geturl()


def look(console: Console, path: str) -> Any:
    answer = console.visitor().get(path)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert "console" not in answer.text.lower()
    return answer


def title(console: Console, path: str) -> str:
    found = re.search(r"<h1[^>]*>(.*)</h1>", look(console, path).text)
    assert found
    return found[1]


def test_whoever_scans_a_document_learns_only_whether_it_is_ours_and_current(counter: Console):
    tools = Tools(counter.app)
    quote_id, link = issued(tools)
    assert title(counter, link) == CURRENT
    quote = tools("quote_get", quote_id=quote_id)
    forms = set()
    for path in (link, link[:-1] + ("1" if link[-1] != "1" else "2"), "/verify"):
        page = look(counter, path).text
        said = [quote_id, quote["quote"]["number"], "Acme", "acct_", "1,500", "1500", "USD", "Pro Plan", "draft"]
        assert not [secret for secret in said if secret in page]
        forms.add(re.sub(r">[^<{]+<", "><", re.sub(r'<h1 class="\w+">', "<h1>", page)))
    assert len(forms) == 1, "every answer has the same form"
    put_into(counter.app, quote_id, "sent")
    assert title(counter, scanned(tools, quote_id)) == CURRENT


def test_superseded_cancelled_expired_and_stamped_documents_are_ours_but_not_current(
    counter: Console, clock: StillEffects
):
    tools = Tools(counter.app)
    _, stamped = issued(tools, discount=10)
    assert title(counter, stamped) == NOT_CURRENT
    superseded, old = issued(tools)
    tools("quote_send", quote_id=superseded, expected_version=1)
    tools("quote_revise", quote_id=superseded, expected_version=1)
    assert title(counter, old) == CURRENT, "the customer has it while the next version is made"
    tools("quote_price", quote_id=superseded)
    tools("quote_send", quote_id=superseded, expected_version=2)
    assert title(counter, old) == NOT_CURRENT
    cancelled, its_link = issued(tools)
    tools("quote_cancel", quote_id=cancelled, expected_version=1, reason="No budget.")
    assert title(counter, its_link) == NOT_CURRENT
    reworded, before = issued(tools)
    tools("quote_update", quote_id=reworded, expected_version=1, notes="See the enclosed drawing.")
    tools("quote_price", quote_id=reworded)
    assert (title(counter, before), title(counter, scanned(tools, reworded))) == (NOT_CURRENT, CURRENT)
    newest = scanned(tools, superseded)
    assert title(counter, newest) == CURRENT
    clock.advance(days=31)
    assert title(counter, newest) == NOT_CURRENT


def test_a_code_that_is_not_ours_is_told_so(counter: Console):
    quote_id, link = issued(Tools(counter.app))
    _, other = issued(Tools(counter.app))
    code, others = link.partition("code=")[2], other.partition("code=")[2]
    foreign = (
        "",
        "?quote=&version=&code=",
        f"?quote={quote_id}&version=1",
        f"?quote={quote_id}&version=2&code={code}",
        f"?quote={quote_id}&version=1&code={others}",
        f"?quote={quote_id}&version=1&code={code.replace('main', 'other')}",
        f"?quote={quote_id}&version=1&fingerprint={'0' * 64}",
        f"?quote={quote_id}%00&version=1&code={code}",
        f"?quote={quote_id}&version=99999999999999999999&code={code}",
        f"?quote={'x' * 5000}&version=1&code={code}",
        "?quote=%F0%28%8C%28&version=1&code=main.%FF",
        f"?quote=' OR 1=1 --&version=1&code={code}",
    )
    for query in foreign:
        assert title(counter, f"/verify{query}") == UNKNOWN, query


def test_the_code_of_older_documents_is_still_known(counter: Console):
    """Documents that were issued before there were codes print the fingerprint of the price."""
    tools = Tools(counter.app)
    quote_id, _ = issued(tools)
    fingerprint = tools("quote_pdf", quote_id=quote_id)["fingerprint"]
    older = {"id": quote_id, "version": 1, "fingerprint": fingerprint}
    assert code_text(f"{ADDRESS}?", older) == f"{ADDRESS}?quote={quote_id}&version=1&fingerprint={fingerprint}"
    assert title(counter, f"/verify?{urlsplit(code_text(ADDRESS, older)).query}") == CURRENT


def test_a_code_is_found_however_many_documents_a_version_has(counter: Console):
    tools = Tools(counter.app)
    quote_id, link = issued(tools)
    row = tables.document
    with counter.app.database.writing(counter.app.effects.monotonic() + 10) as connection:
        first = dict(connection.execute(sa.select(row).where(row.c.quote_id == quote_id)).one()._mapping)
        later = first["created_at"] + timedelta(hours=1)
        others = [
            {
                **first,
                "id": f"DOC-{number}",
                "checksum": f"{number:064}",
                "created_at": later,
                "code": f"main.{number:032}",
            }
            for number in range(repository.LOOKED_AT_MAX + 1)
        ]
        connection.execute(sa.insert(row), others)
    assert title(counter, link) == CURRENT


def test_a_document_from_before_codes_were_stored_is_still_known(counter: Console):
    tools = Tools(counter.app)
    quote_id, link = issued(tools)
    row = tables.document
    with counter.app.database.writing(counter.app.effects.monotonic() + 10) as connection:
        connection.execute(sa.update(row).where(row.c.quote_id == quote_id).values(code=None))
    record_again(counter.app, quote_id)
    assert title(counter, link) == CURRENT


def test_a_new_document_with_older_content_has_a_code(counter: Console, monkeypatch: pytest.MonkeyPatch):
    tools = Tools(counter.app)
    quote_id, _ = issued(tools)
    find = repository.find_draft_content

    def without_code(tx: Tx, key: DocumentKey) -> dict[str, Any] | None:
        content = find(tx, key)
        assert content
        del content["quote"]["code"]
        return content

    monkeypatch.setattr(repository, "find_draft_content", without_code)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    path = scanned(tools, quote_id)
    assert "code=main." in path
    assert title(counter, path) == CURRENT


@pytest.mark.parametrize(
    ("address", "start"),
    [
        ("https://x/verify", "https://x/verify?quote=Q-1&"),
        ("https://x/verify?", "https://x/verify?quote=Q-1&"),
        ("https://x/verify?lang=de", "https://x/verify?lang=de&quote=Q-1&"),
        ("https://x/verify?lang=de&", "https://x/verify?lang=de&quote=Q-1&"),
        ("https://x/verify#", "https://x/verify#quote=Q-1&"),
    ],
)
def test_the_code_keeps_what_the_address_has(address: str, start: str):
    assert code_text(address, {"id": "Q-1", "version": 1, "code": "main.0"}).startswith(start)


def test_scanning_without_end_is_limited_and_never_says_that_a_document_is_not_ours(
    sqlite_console: Console, clock: StillEffects
):
    stranger = sqlite_console.visitor()
    answers = [stranger.get("/verify") for _ in range(LOOKS_PER_MINUTE + 1)]
    assert [answer.status_code for answer in answers] == [200] * LOOKS_PER_MINUTE + [429]
    assert "We cannot say now" in answers[-1].text
    assert UNKNOWN not in answers[-1].text
    assert int(answers[-1].headers["retry-after"]) >= 1
    clock.advance(seconds=60)
    assert stranger.get("/verify").status_code == 200
