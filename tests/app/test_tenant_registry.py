"""Tenants are registered; a suspended or unknown one gets no answer at any door, and loses nothing."""

import threading
from typing import Any

import httpx2
import pytest
import sqlalchemy as sa

from cpq.app import App, Command, sessions, tenant_registry, tokens
from cpq.app.access import LOCAL_AGENT, OPERATOR, Permission
from cpq.app.tenant_registry import TenantState
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.base.settings import Settings, read_settings
from cpq.storage.schema import tables
from tests.support.console import form_token, serving
from tests.support.engine import Tools, add_tenant, open_app, row_counts
from tests.support.quotes import ACME, SEATS, counted_statements
from tests.support.tenants import add_tenant_with_sample, of, set_state, write_in

SHAPES = ["", "-x", "a" * 41, "x" * 100_000, "Acme", "ACME", "a b", "a_b", "a.b", "a\n"]
PATHS = ["a/b", "../main", "..", ".", "a\\b", "a\0b"]
LIKENESSES = ["acme\u0301", "\u0430cme", "a\u200bb", "\ufb01rm", "\u0130", "\uff41cme"]


@pytest.mark.parametrize("tenant_id", [*SHAPES, *PATHS, *LIKENESSES])
def test_an_id_that_is_no_plain_word_is_refused(sqlite_app: App, tenant_id: str):
    with pytest.raises(CpqError) as refused:
        add_tenant(sqlite_app, tenant_id)
    assert refused.value.details["field"] == "/id"
    if tenant_id:
        with pytest.raises(CpqError) as refused:
            read_settings({"CPQ_TENANT": tenant_id})
        assert refused.value.details["field"] == "CPQ_TENANT"


def test_an_id_is_given_once_and_main_is_taken(sqlite_app: App):
    add_tenant(sqlite_app, "acme")
    for taken in ("acme", "main"):
        with pytest.raises(CpqError) as refused:
            add_tenant(sqlite_app, taken)
        assert refused.value.code == "CONFLICT"
    with sqlite_app.database.reading() as connection:
        assert [one.id for one in tenant_registry.listed(connection)] == ["main", "acme"]


def test_a_tenant_that_nobody_created_gets_no_answer_and_stores_nothing(app: App):
    stranger, before = Tools(app, principal=of("nobody")), row_counts(app, but=())
    assert stranger.error("catalog_search", query="tank")["code"] == "NOT_FOUND"
    assert stranger.error("quote_create", account_id=ACME, line_items=[SEATS])["code"] == "NOT_FOUND"
    app.flush_audit()
    assert row_counts(app, but=()) == before


def test_the_calls_of_a_suspended_tenant_are_refused_and_its_data_stays(app: App):
    acme = add_tenant_with_sample(app, "acme")
    quote_id = acme("quote_create", account_id=ACME, line_items=[SEATS])["quote_id"]
    seen = acme("quote_get", quote_id=quote_id)
    set_state(app, "acme", TenantState.SUSPENDED)
    calls: dict[str, dict[str, Any]] = {
        "quote_get": {"quote_id": quote_id},
        "quote_list": {},
        "catalog_search": {"query": "tank"},
        "quote_create": {"account_id": ACME, "line_items": [SEATS]},
        "quote_pdf": {"quote_id": quote_id},
    }
    for name, arguments in calls.items():
        refused = acme.error(name, **arguments)
        said = "The tenant 'acme' is suspended. Nothing was changed, and its data is kept."
        assert (refused["code"], refused["message"]) == ("FORBIDDEN", said), name
        assert "cpq tenant resume acme" in refused["details"]["hint"]
    assert Tools(app)("quote_list")["items"] == []
    set_state(app, "acme", TenantState.ACTIVE)
    assert acme("quote_get", quote_id=quote_id) == seen


def test_nothing_is_stored_for_a_tenant_that_is_removed_while_it_writes(app: App):
    """A write holds the row of its tenant until its end; what comes after the removal is refused."""
    add_tenant(app, "acme")
    inside, go_on, order = threading.Event(), threading.Event(), []

    def slow(_tx: Tx) -> dict[str, Any]:
        inside.set()
        go_on.wait(60)
        order.append("written")
        return {}

    def remove(tx: Tx) -> None:
        tx.connection.execute(sa.delete(tables.tenant).where(tables.tenant.c.tenant_id == "acme"))
        order.append("removed")

    call, command = app.new_call(of("acme")), Command("slow", Permission.QUOTE)
    threads = [threading.Thread(target=lambda: app.write(call, command, slow))]
    threads[0].start()
    assert inside.wait(60)
    threads.append(threading.Thread(target=lambda: write_in(app, "main", remove)))
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(120)
    assert order == ["written", "removed"]
    assert Tools(app, principal=of("acme")).error("quote_list")["code"] == "NOT_FOUND"


def test_main_asks_for_no_registry(sqlite_app: App):
    tools = Tools(sqlite_app)
    with counted_statements() as seen:
        quote_id = tools("quote_create", account_id=ACME, line_items=[SEATS])["quote_id"]
        tools("quote_get", quote_id=quote_id)
    assert not [statement for statement in seen if "FROM tenant" in statement]


def test_a_token_names_its_tenant_and_opens_no_other(app: App):
    add_tenant(app, "acme")
    secrets = {
        tenant_id: write_in(app, tenant_id, lambda tx: tokens.create_token(tx, name="bot", role="agent")[1])
        for tenant_id in ("main", "acme")
    }
    assert [secret.partition("tok-")[0] for secret in secrets.values()] == ["qw_", "qw_acme."]
    for tenant_id, secret in secrets.items():
        found = app.identify(secret)
        assert found is not None
        assert found.tenant_id == tenant_id
    forged = [secrets["acme"].replace("qw_acme.", moved) for moved in ("qw_", "qw_main.", "qw_../acme.", "qw_ACME.")]
    for presented in (*forged, secrets["main"].replace("qw_", "qw_acme.")):
        assert app.identify(presented) is None
    set_state(app, "acme", TenantState.SUSPENDED)
    with pytest.raises(CpqError) as refused:
        app.identify(secrets["acme"])
    assert refused.value.code == "FORBIDDEN"
    assert app.identify(secrets["main"]) is not None


def test_callers_of_one_name_in_two_tenants_do_not_share_a_rate(store: Settings):
    app = open_app(store.model_copy(update={"rate_limit_per_minute": 2}))
    add_tenant(app, "acme")
    tools = Tools(app)
    for principal in (LOCAL_AGENT, of("acme")):
        tools.principal = principal
        assert [tools.reply("quote_list", {}).code for _ in range(3)] == ["OK", "OK", "RATE_LIMITED"]
    app.close()


def test_every_door_of_a_suspended_tenant_says_so(store: Settings):
    with serving(store) as console:
        add_tenant(console.app, "acme")
        write_in(console.app, "acme", lambda tx: tokens.grant(tx, name="dana", role="sales_manager"))
        code = write_in(console.app, "acme", lambda tx: sessions.new_link(tx, "dana"))
        secret = write_in(console.app, "acme", lambda tx: tokens.create_token(tx, name="bot", role="agent")[1])
        visitor, way_in = console.visitor(), f"{console.url}/console/enter/{code}"
        entered = visitor.post(way_in, data={"form_token": form_token(visitor.get(way_in).text)})
        assert (entered.status_code, visitor.get("/console/quotes").status_code) == (303, 200)
        set_state(console.app, "acme", TenantState.SUSPENDED)
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        refused = httpx2.post(f"{console.url}/mcp", headers={"Authorization": f"Bearer {secret}"}, json=call)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "FORBIDDEN")
        assert "is suspended" in refused.json()["error"]["message"]
        said = {
            "/console/quotes": (403, "is suspended"),
            f"/accept/acme.{'x' * 40}": (403, "We cannot answer now"),
            f"/verify?quote=Q-1&version=1&code=acme.{'0' * 32}": (403, "We cannot say now"),
            f"/accept/nobody.{'x' * 40}": (404, "This link is not valid"),
            f"/verify?quote=Q-1&version=1&code=nobody.{'0' * 32}": (200, "Not issued by us"),
        }
        for address, (status, text) in said.items():
            page = visitor.get(address)
            assert (page.status_code, text in page.text) == (status, True), address


def test_only_the_operator_looks_after_a_suspended_tenant(sqlite_app: App):
    add_tenant(sqlite_app, "acme")
    set_state(sqlite_app, "acme", TenantState.SUSPENDED)
    call = sqlite_app.new_call(of("acme", OPERATOR))
    assert sqlite_app.read_unaudited(call, lambda tx: tx.tenant_id) == "acme"
