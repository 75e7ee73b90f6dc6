"""Documents as they are issued: real files, the same bytes for ever, stamped while they may not go out."""

import hashlib
import shutil
import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, Call
from cpq.app.access import LOCAL_AGENT
from cpq.base.settings import read_settings, shipped
from cpq.services.documents import worker_pool
from cpq.services.documents.design import EVERY_TEMPLATE
from cpq.storage.schema.tables import account
from tests.support import engine, papers
from tests.support.approvals import ask, decide, person, priced_quote
from tests.support.engine import Tools, open_app
from tests.support.papers import Paper
from tests.support.quotes import new_quote, put_into, sent_quote


def files(app: App) -> list[Path]:
    return [path for path in (app.settings.home / "documents").rglob("*") if path.is_file()]


def test_q35_the_file_is_a_real_pdf_of_that_size_and_checksum(tools: Tools):
    """Q-35 on both databases; and a second call answers the same document from the store."""
    quote_id = priced_quote(tools, 0)
    answer = tools("quote_pdf", quote_id=quote_id)
    content = Path(answer["file_path"]).read_bytes()
    assert content.startswith(b"%PDF-1.7")
    assert answer["pdf_generated"] is True
    assert answer["file_size_bytes"] == len(content)
    assert answer["checksum"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert answer["template_used"] == "standard"
    assert answer["locale"] == "en_US"
    assert answer["stamp"] is None
    assert answer["file_name"] == f"{quote_id}-v1-standard-en_US.pdf"
    again = tools("quote_pdf", quote_id=quote_id)
    assert again == {**answer, "outcome": "no_change", "message": again["message"]}
    assert len(files(tools.app)) == 1
    assert Path(answer["file_path"]) in files(tools.app)


def test_q35_other_templates_and_locales_are_named(sqlite_tools: Tools):
    """Q-35 an unknown template, locale or quote is refused, says what there is, and keeps nothing."""
    quote_id = priced_quote(sqlite_tools, 0)
    before = engine.row_counts(sqlite_tools.app)
    error = sqlite_tools.error("quote_pdf", quote_id=quote_id, template="standart")
    assert error["code"] == "VALIDATION_ERROR"
    assert error["details"]["allowed"] == list(EVERY_TEMPLATE)
    assert error["details"]["nearest"] == ["standard"]
    error = sqlite_tools.error("quote_pdf", quote_id=quote_id, locale="tlh")
    assert error["details"] | {"hint": ""} == {
        "field": "/locale",
        "allowed": ["ar", "de", "en", "es", "fr", "ja"],
        "hint": "",
    }
    assert sqlite_tools.error("quote_pdf", quote_id="Q-none")["code"] == "NOT_FOUND"
    assert sqlite_tools.error("quote_pdf", quote_id=quote_id, version=7)["code"] == "NOT_FOUND"
    assert engine.row_counts(sqlite_tools.app) == before
    assert files(sqlite_tools.app) == []


def test_q35_a_lost_file_is_made_again_to_the_byte_in_a_new_process(
    sqlite_tools: Tools, monkeypatch: pytest.MonkeyPatch
):
    """Q-35 the same bytes from another process with another home, time zone and language."""
    quote_id = priced_quote(sqlite_tools, 0, *papers.MACHINES)
    put_into(sqlite_tools.app, quote_id, "sent")
    answers = [sqlite_tools("quote_pdf", quote_id=quote_id, template=name) for name in ("standard", "detailed")]
    shutil.rmtree(sqlite_tools.app.settings.home / "documents")
    worker_pool.close_all()
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    for before in answers:
        again = sqlite_tools("quote_pdf", quote_id=quote_id, template=before["template_used"])
        assert again["checksum"] == before["checksum"]
        assert again["document_id"] == before["document_id"]
        assert Path(again["file_path"]).is_file()


def test_q35_what_was_issued_stays_whatever_happens_to_the_catalogue(sqlite_tools: Tools):
    """Q-35 a damaged file is made again from what was kept, not from what products are called now."""
    quote_id = sent_quote(sqlite_tools, {"product_id": "prod_tk240v", "quantity": 1})
    before = sqlite_tools("quote_pdf", quote_id=quote_id)
    product = {"id": "prod_tk240v", "sku": "NEW-SKU", "name": "Other name", "category": "tanks"}
    engine.import_dicts(sqlite_tools.app, "products", product)
    Path(before["file_path"]).write_bytes(b"%PDF-1.7 damaged")
    after = sqlite_tools("quote_pdf", quote_id=quote_id)
    assert after["checksum"] == before["checksum"]
    assert Paper.of(after).pdf[:20] == b"%PDF-1.7\n" + Paper.of(after).pdf[9:20]
    assert "NEW-SKU" not in Paper.of(after).text
    assert "NEW-SKU" in Paper.of(sqlite_tools("quote_pdf", quote_id=quote_id, template="compact")).text


def test_q36_a_quote_is_stamped_until_it_may_go_out(tools: Tools):
    """Q-36 draft that needs an approval, pending, rejected: on every page; approved: on none."""
    manager = person(tools.app, "dana", "sales_manager")
    quote_id = priced_quote(tools, 10, *papers.MACHINES, {"product_id": "prod_fp150", "quantity": 1})
    draft = tools("quote_pdf", quote_id=quote_id)
    answer = ask(tools, quote_id)
    pending = tools("quote_pdf", quote_id=quote_id)
    for stamped in (draft, pending):
        assert stamped["stamp"] == "not_approved"
        assert "stamped" in stamped["warnings"][0]
        pages = Paper.of(stamped).pages
        assert len(pages) > 1
        assert all("DRAFT · NOT APPROVED" in page for page in pages)
    decide(manager, answer)
    approved = tools("quote_pdf", quote_id=quote_id)
    assert approved["stamp"] is None
    assert "NOT APPROVED" not in Paper.of(approved).text
    assert tools("quote_pdf", quote_id=quote_id, locale="de")["locale"] == "de"


def test_q36_what_is_rejected_cancelled_unpriced_or_expired_is_stamped(sqlite_app: App, clock: engine.StillEffects):
    """Q-36 and what went out before it expired is not."""
    app = open_app(sqlite_app.settings, clock)
    tools = Tools(app)
    manager = person(app, "dana", "sales_manager")
    unpriced = new_quote(tools)
    assert tools("quote_pdf", quote_id=unpriced)["stamp"] == "not_approved"
    rejected = priced_quote(tools, 10)
    decide(manager, ask(tools, rejected), word="reject")
    assert tools("quote_pdf", quote_id=rejected)["stamp"] == "not_approved"
    cancelled = priced_quote(tools, 0)
    tools("quote_cancel", quote_id=cancelled, expected_version=1)
    made = tools("quote_pdf", quote_id=cancelled, locale="es")
    assert made["stamp"] == "cancelled"
    assert "CANCELADA" in Paper.of(made).text
    approved = priced_quote(tools, 10)
    decide(manager, ask(tools, approved))
    sent = sent_quote(tools)
    before = tools("quote_pdf", quote_id=sent)
    clock.advance(days=60)
    assert tools("quote_pdf", quote_id=approved)["stamp"] == "expired"
    assert tools("quote_pdf", quote_id=sent)["checksum"] == before["checksum"]
    app.close()


def test_q36_the_stamp_follows_whatever_it_depends_on(sqlite_app: App, clock: engine.StillEffects, tmp_path: Path):
    """Q-36 although it is remembered: the price, the catalogue, the account, the policies, the clock."""
    policies = Path(shutil.copytree(shipped("policies"), tmp_path / "policies"))
    for tested in policies.glob("*_test.yaml"):
        tested.unlink()
    app = open_app(sqlite_app.settings.model_copy(update={"policies_dir": policies}), clock)
    tools = Tools(app)
    quote_id = priced_quote(tools, 0, {"product_id": "prod_tk240v", "quantity": 1})

    def stamp() -> str | None:
        twice = [tools("quote_pdf", quote_id=quote_id)["stamp"] for _ in range(2)]
        assert twice[0] == twice[1]
        return twice[0]

    assert stamp() is None
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    assert stamp() == "not_approved"
    tools("quote_price", quote_id=quote_id, requested_discount_pct=0)
    assert stamp() is None
    tank = {"id": "prod_tk240v", "sku": "TK-240V", "name": "Tank", "category": "tanks"}
    engine.import_dicts(app, "products", {**tank, "active": False})
    assert stamp() == "not_approved"
    engine.import_dicts(app, "products", {**tank, "active": True})
    assert stamp() is None
    rules = (policies / "discounts.yaml").read_text(encoding="utf-8")
    block = "\nrules:\n  - {id: small, when: net_value < 5000, then: {severity: block, message: Too small.}}\n"
    (policies / "discounts.yaml").write_text(rules + block, encoding="utf-8")
    clock.advance(seconds=5)
    assert stamp() == "not_approved"
    (policies / "discounts.yaml").write_text(rules, encoding="utf-8")
    clock.advance(seconds=5)
    assert stamp() is None
    clock.advance(days=60)
    assert stamp() == "not_approved"
    app.close()


def test_a_changed_draft_gets_another_document_and_an_old_version_keeps_its_own(sqlite_tools: Tools):
    quote_id = priced_quote(sqlite_tools, 0)
    first = sqlite_tools("quote_pdf", quote_id=quote_id)
    sqlite_tools("quote_update", quote_id=quote_id, expected_version=1, notes="Changed.")
    sqlite_tools("quote_price", quote_id=quote_id)
    second = sqlite_tools("quote_pdf", quote_id=quote_id)
    assert first["checksum"] != second["checksum"]
    assert "Changed." in Paper.of(second).text
    sqlite_tools("quote_send", quote_id=quote_id, expected_version=1)
    sent = sqlite_tools("quote_pdf", quote_id=quote_id)
    assert sent["checksum"] == second["checksum"]  # The same words, so the same bytes.
    sqlite_tools("quote_revise", quote_id=quote_id, expected_version=1)
    assert sqlite_tools("quote_pdf", quote_id=quote_id)["version"] == 2
    assert sqlite_tools("quote_pdf", quote_id=quote_id, version=1)["checksum"] == sent["checksum"]


def test_sending_does_not_change_the_document_when_the_account_has_changed(sqlite_tools: Tools):
    quote_id = priced_quote(sqlite_tools, 0)
    draft = sqlite_tools("quote_pdf", quote_id=quote_id)
    with sqlite_tools.app.database.writing(sqlite_tools.app.effects.monotonic() + 30) as connection:
        mine = account.c.id == "acct_acme_001"
        connection.execute(sa.update(account).where(mine).values(contact="Somebody else"))
    sqlite_tools("quote_send", quote_id=quote_id, expected_version=1)
    sent = sqlite_tools("quote_pdf", quote_id=quote_id)
    assert sent["checksum"] == draft["checksum"]
    other = sqlite_tools("quote_pdf", quote_id=quote_id, template="compact")
    assert "Somebody else" in Paper.of(other).text


def test_q11_the_same_key_gets_the_same_answer_and_another_request_is_refused(tools: Tools):
    """Q-11 for a job: the stored answer again, its file too, whatever happened to the quote since."""
    quote_id = priced_quote(tools, 0)
    first = tools("quote_pdf", quote_id=quote_id, idempotency_key="k")
    sqlite_file = Path(first["file_path"])
    sqlite_file.unlink()
    tools("quote_update", quote_id=quote_id, expected_version=1, notes="Changed.")
    again = tools("quote_pdf", quote_id=quote_id, idempotency_key="k")
    assert again == {**first, "replayed": True, "outcome": "replayed"}
    assert sqlite_file.is_file()
    assert tools.error("quote_pdf", quote_id=quote_id, template="compact", idempotency_key="k")["code"] == "CONFLICT"


def test_who_may_only_read_may_have_the_document(sqlite_tools: Tools):
    quote_id = priced_quote(sqlite_tools, 0)
    lawyer = person(sqlite_tools.app, "lee", "legal")
    assert lawyer("quote_pdf", quote_id=quote_id)["pdf_generated"]


@pytest.fixture
def large(desk: Tools) -> str:
    return papers.quoted(desk, *papers.many_lines(desk, 300))


def test_progress_is_told_and_only_goes_forward(desk: Tools, large: str):
    told: list[tuple[int, int, str]] = []
    call = Call(LOCAL_AGENT, "tr-progress", lambda *step, is_phase=False: told.append(step))
    reply = desk.registry.call(call, "quote_pdf", {"quote_id": large})
    assert not reply.is_error, reply.body
    done = [step[0] for step in told]
    assert done == sorted(done)
    assert told[-1][0] == told[-1][1]
    assert {"composing", "writing", "done"} <= {step[2].split(",")[0] for step in told}
    assert any(step[2].startswith("laying out, page") for step in told)


def test_a_call_that_is_given_up_stops_the_work_and_leaves_nothing(desk: Tools, large: str):
    before = files(desk.app), engine.row_counts(desk.app)
    threads = threading.active_count()

    def give_up(_done: int, _total: int, what: str, **_: bool) -> None:
        if "page" in what:
            call.cancel()

    call = Call(LOCAL_AGENT, "tr-cancel", give_up)
    reply = desk.registry.call(call, "quote_pdf", {"quote_id": large, "template": "detailed"})
    assert reply.code == "TIMEOUT"
    assert (files(desk.app), engine.row_counts(desk.app)) == before
    assert threading.active_count() <= threads
    assert desk("quote_pdf", quote_id=large, template="executive_summary")["pages"] >= 1


def limited(desk: Tools, **limits: Any) -> Iterator[Tools]:
    app = open_app(desk.app.settings.model_copy(update=limits))
    yield Tools(app)
    app.close()


@pytest.mark.parametrize(
    ("limits", "code", "said"),
    [
        ({"pdf_timeout_seconds": 0.05}, "TIMEOUT", "took too long"),
        ({"pdf_lines_max": 299}, "VALIDATION_ERROR", "300 lines"),
    ],
)
def test_a_document_over_a_limit_is_refused_and_leaves_nothing(
    desk: Tools, large: str, limits: dict[str, Any], code: str, said: str
):
    before = files(desk.app), engine.row_counts(desk.app)
    for tools in limited(desk, **limits):
        error = tools.error("quote_pdf", quote_id=large, template="detailed")
        assert error["code"] == code
        assert said in error["message"]
        assert "executive_summary" in error["details"]["hint"]
    assert (files(desk.app), engine.row_counts(desk.app)) == before


def test_a_worker_that_dies_costs_one_call_only(desk: Tools, samples: dict[str, str]):
    desk("quote_pdf", quote_id=samples["one"])
    desk("quote_pdf", quote_id=samples["one"], template="compact", locale="fr")
    pool = worker_pool.workers_for(papers.TEMPLATES_FOLDER.absolute())
    for worker in list(pool._idle):
        worker._process.kill()
        worker._process.wait()
    assert desk("quote_pdf", quote_id=samples["one"], template="detailed", locale="fr")["pdf_generated"]


def test_a_worker_that_hangs_is_ended_when_the_time_is_over(desk: Tools, large: str):
    """However long the job is: this one is longer than what a pipe holds."""
    desk("quote_pdf", quote_id=large, template="executive_summary")
    for worker in worker_pool.workers_for(papers.TEMPLATES_FOLDER.absolute())._idle:
        worker._process.send_signal(signal.SIGSTOP)
    for tools in limited(desk, pdf_timeout_seconds=0.5):
        assert tools.error("quote_pdf", quote_id=large, template="compact")["code"] == "TIMEOUT"
    worker_pool.close_all()
    assert desk("quote_pdf", quote_id=large, template="compact")["pdf_generated"]


def test_a_replay_does_not_name_a_file_that_is_not_there(sqlite_app: App, tmp_path: Path):
    folder = tmp_path / "templates"
    shutil.copytree(papers.TEMPLATES_FOLDER, folder)
    app = open_app(read_settings({}, home=sqlite_app.settings.home, templates_dir=folder))
    tools = Tools(app)
    asked = {"quote_id": priced_quote(tools, 0), "idempotency_key": "k"}
    Path(tools("quote_pdf", **asked)["file_path"]).unlink()
    labels = folder / "labels" / "en.yaml"
    labels.write_text(labels.read_text().replace("title: Quotation", "title: Proposal"))
    worker_pool.close_all()
    error = tools.error("quote_pdf", **asked)
    assert error["code"] == "UNAVAILABLE"
    assert "the current design does not give the same bytes" in error["message"]
    del asked["idempotency_key"]
    assert Path(tools("quote_pdf", **asked)["file_path"]).is_file()
    app.close()


def test_a_character_no_font_has_is_told(sqlite_tools: Tools):
    quote_id = new_quote(sqlite_tools, notes="Tibetan: ཀ")
    warnings = sqlite_tools("quote_pdf", quote_id=quote_id)["warnings"]
    assert warnings[-1].endswith("show as boxes: ཀ")


def test_twins_make_one_document(tools: Tools):
    quote_id = priced_quote(tools, 0)
    answers: list[dict[str, Any]] = []
    twins = [threading.Thread(target=lambda: answers.append(tools("quote_pdf", quote_id=quote_id))) for _ in range(4)]
    for twin in twins:
        twin.start()
    for twin in twins:
        twin.join()
    assert len({answer["document_id"] for answer in answers}) == 1
    assert len(answers) == 4
    assert len(files(tools.app)) == 1


def test_a_document_of_before_says_that_a_changed_brand_does_not_show(
    sqlite_app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Q-35 the same bytes; a draft follows the brand, and says nothing of that."""
    monkeypatch.setattr("cpq.services.documents.design.LOOK_SECONDS", -1.0)
    folder = tmp_path / "templates"
    shutil.copytree(papers.TEMPLATES_FOLDER, folder)
    app = open_app(read_settings({}, home=sqlite_app.settings.home, templates_dir=folder))
    tools = Tools(app)
    draft, sent = priced_quote(tools, 0), priced_quote(tools, 0)
    put_into(app, sent, "sent")
    before = {quote_id: tools("quote_pdf", quote_id=quote_id) for quote_id in (draft, sent)}
    assert "design" not in tools("quote_pdf", quote_id=draft)["message"]
    brand = folder / "branding.yaml"
    brand.write_text(brand.read_text().replace("name: Meridian Air Systems", "name: Meridian Vacuum"))
    worker_pool.close_all()
    again = tools("quote_pdf", quote_id=sent)
    assert again["checksum"] == before[sent]["checksum"]
    assert "in the design of its time" in again["message"]
    anew = tools("quote_pdf", quote_id=draft)
    assert (anew["outcome"], anew["checksum"] != before[draft]["checksum"]) == ("created", True)
    app.close()


def test_a_template_with_a_mistake_is_named(sqlite_app: App, tmp_path: Path):
    folder = tmp_path / "templates"
    shutil.copytree(papers.TEMPLATES_FOLDER, folder)
    app = open_app(read_settings({}, home=sqlite_app.settings.home, templates_dir=folder))
    tools = Tools(app)
    quote_id = priced_quote(tools, 0)
    (folder / "standard.html").write_text(
        "{% extends 'parts/skeleton.html' %}{% block body %}{{ doc.nothing }}{% endblock %}"
    )
    error = tools.error("quote_pdf", quote_id=quote_id)
    assert error["code"] == "UNAVAILABLE"
    assert "standard" in error["message"]
    assert "nothing" in error["message"]
    (folder / "branding.yaml").write_text("company: {}")
    error = tools.error("quote_pdf", quote_id=quote_id, template="compact")
    assert "branding.yaml: company.name" in error["message"]
    app.close()


def test_the_document_is_dated_by_the_version_not_by_the_clock(sqlite_app: App):
    clock = engine.StillEffects(datetime(2027, 1, 1, 3, 0, tzinfo=UTC), step=timedelta(0))
    app = open_app(sqlite_app.settings, clock)
    tools = Tools(app)
    quote_id = priced_quote(tools, 0)
    clock.advance(days=9)
    paper = Paper.of(tools("quote_pdf", quote_id=quote_id))
    assert "Dec 31, 2026" in paper.text  # In New York it was still the old year.
    with paper.opened() as pdf:
        assert str(pdf.docinfo["/CreationDate"]) == "D:20270101030000Z"
    app.close()
