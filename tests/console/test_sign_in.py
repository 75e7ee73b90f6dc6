"""Who gets in, for how long, and who never does."""

import re
from contextlib import closing

import httpx2
import pytest
import sqlalchemy as sa

from cpq.app import sessions, tokens
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.base.settings import Settings
from cpq.console.cookies import Cookies
from cpq.console.security_headers import HEADERS
from cpq.console.sign_in import TRIES_PER_MINUTE, own_path
from cpq.storage.schema import metadata
from cpq.storage.schema.tables import audit_entry, console_session, sign_in_link
from tests.support import engine
from tests.support.approvals import ask, priced_quote, revoke_all
from tests.support.console import Console, form_token, serving
from tests.support.engine import open_app

PAGES = ("queue", "quotes", "accounts", "policies", "figures", "health", "guide", "products/prod_qvs60/configure")


def is_in(visitor: httpx2.Client) -> bool:
    return visitor.get("/console/queue").status_code == 200


def stored(console: Console) -> dict[str, list]:
    """Every row there is but for the record of calls and of who was seen when."""
    apart = (audit_entry.name, "audit_head", "retrieval_query", console_session.name)
    with console.app.database.reading() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(sa.select(table))))
            for table in metadata.sorted_tables
            if table.name not in apart
        }


def test_a_link_signs_a_person_in_once(console: Console):
    console.grant("dana", "sales_manager")
    address = console.link("dana")
    first, second = console.visitor(), console.visitor()
    page = first.get(address)
    assert first.get(address).status_code == 200, "looking at it does not use it up"
    assert "Sign in as <bdi>dana</bdi>" in page.text
    form = {"form_token": form_token(page.text)}
    assert first.post(address, data=form).headers["location"] == "/console/queue"
    assert is_in(first)
    assert second.post(address, data=form).status_code == 403
    assert second.get(address).status_code == 403
    assert not is_in(second)


def test_a_link_is_good_for_a_quarter_of_an_hour(console: Console, clock: engine.StillEffects):
    console.grant("dana", "sales_manager")
    address = console.link("dana")
    clock.advance(minutes=14)
    assert console.visitor().get(address).status_code == 200
    clock.advance(minutes=1)
    answer = console.visitor().get(address)
    assert answer.status_code == 403
    assert "cpq console link" in answer.text


def test_neither_links_nor_sessions_are_stored_in_clear(console: Console):
    visitor = console.signed_in("dana", "sales_manager")
    secret = visitor.cookies["cpq_session"]
    code = console.link("dana").rpartition("/")[2]
    with console.app.database.reading() as connection:
        rows = [repr(row) for table in metadata.sorted_tables for row in connection.execute(sa.select(table))]
    assert rows
    assert not [row for row in rows if secret.split(".")[1] in row or code.split(".")[1] in row]


def test_a_cookie_from_before_is_not_taken_over(console: Console):
    """Session fixation: whoever plants a cookie in a browser does not come in with its owner."""
    console.grant("dana", "sales_manager")
    planted = "main.planted-by-somebody-else"
    victim = console.visitor()
    victim.cookies.set("cpq_session", planted, domain="127.0.0.1", path="/console")
    address = console.link("dana")
    victim.post(address, data={"form_token": form_token(victim.get(address).text)})
    thief = console.visitor()
    thief.cookies.set("cpq_session", planted)
    assert not is_in(thief)


def test_signing_in_again_ends_the_session_that_the_browser_had(console: Console):
    visitor = console.signed_in("dana", "sales_manager")
    old = visitor.cookies["cpq_session"]
    address = console.link("dana")
    visitor.post(address, data={"form_token": form_token(visitor.get(address).text)})
    assert visitor.cookies["cpq_session"] != old
    copy = console.visitor()
    copy.cookies.set("cpq_session", old)
    assert not is_in(copy)
    assert is_in(visitor)


def test_signing_out_ends_the_session_on_the_server(console: Console):
    visitor = console.signed_in("dana", "sales_manager")
    kept = visitor.cookies["cpq_session"]
    token = form_token(visitor.get("/console/queue").text)
    assert visitor.post("/console/sign-out", data={"form_token": token}).headers["location"] == "/console/sign-in"
    copy = console.visitor()
    copy.cookies.set("cpq_session", kept)
    assert not is_in(copy)


def test_whoever_does_nothing_for_half_an_hour_is_signed_out(console: Console, clock: engine.StillEffects):
    visitor = console.signed_in("dana", "sales_manager")
    for _ in range(3):
        clock.advance(minutes=29)
        assert is_in(visitor), "being there keeps the session"
    for _ in range(6):
        clock.advance(minutes=5)
        visitor.get("/console/queue?live=0", headers={"HX-Request": "true"})
    assert not is_in(visitor), "what the page asks by itself does not"


def test_a_session_ends_after_a_working_day(console: Console, clock: engine.StillEffects):
    visitor = console.signed_in("dana", "sales_manager")
    for _ in range(24):
        assert is_in(visitor)
        clock.advance(minutes=29, seconds=59)
    clock.advance(minutes=1)
    assert not is_in(visitor)


def test_who_loses_every_role_is_out_at_once(console: Console):
    visitor = console.signed_in("dana", "sales_manager")
    revoke_all(console.app, "dana")
    assert not is_in(visitor)


def test_an_agents_token_opens_no_page(console: Console):
    """T1: neither as a bearer, nor as a cookie, nor through a link; also not one that a person lent to a program."""
    secrets: list[str] = []

    def work(tx: Tx) -> dict:
        secrets.append(tokens.create_token(tx, name="bot", role="agent")[1])
        secrets.append(tokens.create_token(tx, name="robo-manager", role="sales_manager", kind="agent")[1])
        secrets.append(tokens.create_token(tx, name="dana", role="sales_manager")[1])
        return {}

    engine.write(console.app, work)
    quote_id = priced_quote(console.tools)
    answer = ask(console.tools, quote_id)
    paths = [*PAGES, f"quotes/{quote_id}", f"quotes/{quote_id}/audit", "quotes/new", "decisions/HD-1", "queue/next"]
    paths += ["searches", "agreements/A-1", "guide/settings"]
    paths += [f"quotes/{quote_id}/{part}" for part in ("decide", "terms", "lines/new", "steps/send")]
    for secret in secrets:
        visitor = console.visitor()
        visitor.headers["Authorization"] = f"Bearer {secret}"
        visitor.cookies.set("cpq_session", secret)
        assert [visitor.get(f"/console/{path}").status_code for path in paths] == [303] * len(paths)
        form = {"approval_id": answer["approval_id"], "fingerprint": answer["fingerprint"], "decision": "approve"}
        assert visitor.post(f"/console/quotes/{quote_id}/decide", data=form).status_code == 401
    for name in ("bot", "robo-manager", "nobody"):
        with pytest.raises(CpqError):
            console.link(name)
    assert console.tools("approval_status", quote_id=quote_id)["current_status"] == "pending_approval"


def test_trying_links_is_slowed_down(console: Console, clock: engine.StillEffects):
    visitor = console.visitor()
    answers = [visitor.get("/console/enter/main.guess").status_code for _ in range(TRIES_PER_MINUTE + 1)]
    assert answers == [403] * TRIES_PER_MINUTE + [429]
    clock.advance(seconds=3)
    assert visitor.get("/console/enter/main.guess").status_code == 403


@pytest.mark.parametrize(("console_url", "last"), [("", 429), ("https://cpq.example.com", 403)])
def test_who_calls_is_taken_only_from_a_proxy_in_front(
    sqlite_app, clock: engine.StillEffects, console_url: str, last: int
):
    """Without one a caller on this machine could have as many names as it likes."""
    with serving(sqlite_app.settings.model_copy(update={"console_url": console_url}), clock) as console:
        visitor = console.visitor()
        answers = [
            visitor.get("/console/enter/main.guess", headers={"X-Forwarded-For": f"10.0.0.{number}"}).status_code
            for number in range(TRIES_PER_MINUTE + 1)
        ]
        assert answers == [403] * TRIES_PER_MINUTE + [last]


@pytest.mark.parametrize(("method", "path"), [("PUT", "queue"), ("DELETE", "none"), ("GET", "")])
def test_what_is_not_a_page_is_protected_like_one(sqlite_console: Console, method: str, path: str):
    answer = sqlite_console.visitor().request(method, f"/console/{path}")
    assert answer.status_code == (303 if method == "GET" else 405)
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


def test_failed_tries_are_on_record(console: Console):
    console.visitor().get("/console/enter/main.guess")
    console.app.flush_audit()
    with console.app.database.reading() as connection:
        query = sa.select(audit_entry.c.caller, audit_entry.c.outcome).where(
            audit_entry.c.operation == "console_sign_in"
        )
        assert connection.execute(query).all() == [("agent:anonymous", "FORBIDDEN")]


@pytest.mark.parametrize("sent", [{"other": "x"}, {"form_token": ""}, {"form_token": "0" * 64}])
def test_a_form_that_is_not_ours_does_nothing(console: Console, sent: dict[str, str]):
    """T21, without JavaScript and without an Origin header."""
    visitor = console.signed_in("dana", "sales_manager")
    quote_id = priced_quote(console.tools)
    answer = ask(console.tools, quote_id)
    before = stored(console)
    visitor.headers.pop("Origin")
    form = {"approval_id": answer["approval_id"], "fingerprint": answer["fingerprint"], "decision": "approve"}
    assert visitor.post(f"/console/quotes/{quote_id}/decide", data={**form, **sent}).status_code == 403
    assert visitor.post(f"/console/quotes/{quote_id}/delegate", data=sent).status_code == 403
    assert visitor.post("/console/sign-out", data=sent).status_code == 403
    assert stored(console) == before
    assert is_in(visitor)


def test_the_form_of_somebody_elses_session_does_nothing(console: Console):
    dana, victor = console.signed_in("dana", "sales_manager"), console.signed_in("victor", "vp_sales")
    token = form_token(victor.get("/console/queue").text)
    assert dana.post("/console/sign-out", data={"form_token": token}).status_code == 403


def test_another_site_can_neither_post_nor_frame(console: Console):
    visitor = console.signed_in("dana", "sales_manager")
    token = form_token(visitor.get("/console/queue").text)
    foreign = {"Origin": "https://evil.example"}
    answer = visitor.post("/console/sign-out", data={"form_token": token}, headers=foreign)
    assert answer.status_code == 403
    assert is_in(visitor)
    page = visitor.get("/console/queue")
    assert page.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


def test_every_answer_carries_what_protects_its_reader(sqlite_console: Console):
    console = sqlite_console
    visitor = console.signed_in("dana", "sales_manager")
    paths = [*PAGES, "sign-in", "nowhere", "enter/main.guess", "static/console.css", "quotes/Q-none"]
    for path in paths:
        answer = visitor.get(f"/console/{path}")
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, path
        if "static" not in path:
            assert answer.headers["cache-control"] == "no-store"
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_pages_need_no_other_address_and_no_inline_script(sqlite_console: Console):
    visitor = sqlite_console.signed_in("dana", "sales_manager")
    for path in (*PAGES, "sign-in"):
        text = visitor.get(f"/console/{path}", follow_redirects=True).text
        assert not re.search(r"(src|href|action)=\"(https?:)?//", text), path
        assert not re.search(r"<script(?![^>]* src=)|\son[a-z]+=|\sstyle=|javascript:", text), path


def test_looking_changes_nothing(console: Console):
    """T21: every page twice, and not a row is different."""
    visitor = console.signed_in("dana", "sales_manager")
    quote_id = priced_quote(console.tools)
    ask(console.tools, quote_id)
    before = stored(console)
    for path in [*PAGES, f"quotes/{quote_id}", f"quotes/{quote_id}/audit", "accounts/acct_acme_001"] * 2:
        assert visitor.get(f"/console/{path}").status_code == 200, path
    assert stored(console) == before


def test_the_cookie_is_kept_from_scripts_and_other_sites(sqlite_console: Console):
    console = sqlite_console
    console.grant("dana", "sales_manager")
    address = console.link("dana")
    visitor = console.visitor()
    answer = visitor.post(address, data={"form_token": form_token(visitor.get(address).text)})
    said = answer.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=lax" in said
    assert "path=/console" in said


def test_beyond_this_machine_the_cookie_is_for_https_and_this_host_alone(sqlite_app, clock: engine.StillEffects):
    settings: Settings = sqlite_app.settings.model_copy(update={"console_url": "https://cpq.example.com"})
    with serving(settings, clock) as console:
        console.grant("dana", "sales_manager")
        code = console.link("dana").rpartition("/")[2]
        visitor = console.visitor()
        named = {"Host": "cpq.example.com", "Origin": "https://cpq.example.com"}
        page = visitor.get(f"/console/enter/{code}", headers=named)
        answer = visitor.post(f"/console/enter/{code}", data={"form_token": form_token(page.text)}, headers=named)
        said = answer.headers["set-cookie"]
        assert said.startswith("__Host-cpq_session=main.")
        assert "Secure" in said
        assert "Path=/;" in said


@pytest.mark.parametrize(
    ("changed", "is_secure"),
    [
        ({}, False),
        ({"console_url": "http://localhost:9000"}, False),
        ({"host": "0.0.0.0"}, True),
        ({"allowed_hosts": "cpq.example.com"}, True),
        ({"console_url": "https://cpq.example.com"}, True),
    ],
)
def test_only_what_nobody_else_reaches_may_have_a_cookie_without_https(
    sqlite_app, changed: dict[str, str], is_secure: bool
):
    with closing(open_app(sqlite_app.settings.model_copy(update=changed))) as app:
        assert Cookies(app).is_secure is is_secure


@pytest.mark.parametrize(
    ("wanted", "led_to"),
    [
        ("/console/quotes/Q-1?version=2", "/console/quotes/Q-1?version=2"),
        ("//evil.example/console/", "/console/queue"),
        ("https://evil.example", "/console/queue"),
        ("/console/\\evil.example", "/console/queue"),
        ("/metrics", "/console/queue"),
        ("/console/sign-in", "/console/queue"),
    ],
)
def test_nobody_is_led_elsewhere_after_signing_in(wanted: str, led_to: str):
    assert own_path(wanted) == led_to


def test_a_stranger_is_shown_the_way_and_brought_back(console: Console):
    visitor = console.visitor()
    assert visitor.get("/console", follow_redirects=True).url.path == "/console/sign-in"
    answer = visitor.get("/console/quotes?status=sent")
    assert answer.headers["location"] == "/console/sign-in?next=%2Fconsole%2Fquotes%3Fstatus%3Dsent"
    assert "cpq console link" in visitor.get(answer.headers["location"]).text
    live = visitor.get("/console/queue", headers={"HX-Request": "true"})
    assert (live.status_code, live.headers["hx-redirect"]) == (401, "/console/sign-in")


@pytest.mark.parametrize("body", [b"a=%ff", b"a=%00", b"&".join(b"a=1" for _ in range(250)), b"a=" + b"x" * 70_000])
def test_a_hostile_form_is_refused(sqlite_console: Console, body: bytes):
    visitor = sqlite_console.signed_in("dana", "sales_manager")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert visitor.post("/console/sign-out", content=body, headers=form).status_code == 400
    assert visitor.post("/console/sign-out", json={"form_token": "x"}).status_code == 400
    assert is_in(visitor)


def test_a_session_of_another_tenant_is_not_found(console: Console):
    visitor = console.signed_in("dana", "sales_manager")
    other = console.visitor()
    other.cookies.set("cpq_session", visitor.cookies["cpq_session"].replace("main.", "elsewhere."))
    assert not is_in(other)


def test_links_and_sessions_that_are_over_are_swept_away(console: Console, clock: engine.StillEffects):
    console.signed_in("dana", "sales_manager")
    console.link("dana")
    clock.advance(hours=sessions.SESSION_HOURS)
    console.signed_in("dana")
    with console.app.database.reading() as connection:
        counts = [
            connection.scalar(sa.select(sa.func.count()).select_from(table))
            for table in (console_session, sign_in_link)
        ]
    assert counts == [1, 1]
