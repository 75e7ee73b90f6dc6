"""What a receiver gets and when: bodies, signatures, pauses, and the settings behind them."""

import json
import threading
import time
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.app import App
from cpq.app.health import readiness
from cpq.base.background import Loop, stop
from cpq.base.errors import CpqError
from cpq.base.settings import read_settings
from cpq.base.text import read_json
from cpq.base.webhooks import Webhook, read_secrets, read_webhooks
from cpq.services.events import http_post, signing
from tests.support.webhook_receiver import KEY, SECRET

NOON = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.decimals(allow_nan=False, allow_infinity=False)
)


def test_the_signature_is_that_of_the_published_example():
    """From the documents of the Standard Webhooks scheme."""
    key = read_secrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")[0]
    made = signing.signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_headers_name_the_event_the_second_and_a_signature_for_each_key():
    made = signing.headers([KEY, b"old" * 10], "ev-1", NOON, b"{}")
    new, old = (signing.signature(key, "ev-1", "1794830400", b"{}") for key in (KEY, b"old" * 10))
    assert made == {
        "content-type": "application/json",
        "webhook-id": "ev-1",
        "webhook-timestamp": "1794830400",
        "webhook-signature": f"{new} {old}",
    }


@given(
    st.tuples(st.binary(min_size=24, max_size=64), st.text(), st.integers(0), st.binary()),
    st.tuples(st.binary(min_size=24, max_size=64), st.integers(0), st.binary()),
)
def test_whoever_changes_key_time_or_body_changes_the_signature(message, other):
    key, id_, at, body = message
    id_ = "ev-" + id_.encode(errors="replace").hex()
    signed = signing.signature(key, id_, str(at), body)
    for changed in ((other[0], at, body), (key, other[1], body), (key, at, other[2])):
        is_same = changed == (key, at, body)
        assert (signing.signature(changed[0], id_, str(changed[1]), changed[2]) == signed) is is_same


@given(st.dictionaries(st.text(), VALUES), st.integers(1, 10**9))
def test_a_message_reads_back_exactly_and_is_the_same_bytes_each_time(body, number):
    body = {
        name.replace("\0", ""): value.replace("\0", "") if isinstance(value, str) else value
        for name, value in body.items()
    }
    made = signing.message("quote.sent", "Q-1", number, NOON, body)
    assert made == signing.message("quote.sent", "Q-1", number, NOON, dict(reversed(body.items())))
    assert made.isascii()
    expected = {
        "type": "quote.sent",
        "timestamp": "2026-11-16T12:00:00Z",
        "subject": "Q-1",
        "number": number,
        "data": body,
    }
    assert read_json(made.decode()) == expected


def test_money_in_a_message_is_exact():
    made = signing.message("quote.sent", "Q-1", 1, NOON, {"total": Decimal("9007199254740993.01")})
    assert b'"total":9007199254740993.01' in made
    assert json.loads(made)["type"] == "quote.sent"


def test_pauses_triple_up_to_six_hours_and_end_within_a_day():
    pauses = [signing.pause_seconds(attempt) for attempt in range(1, signing.ATTEMPTS_MAX)]
    assert pauses == [5, 15, 45, 135, 405, 1215, 3645, 10935, 21600, 21600, 21600]
    assert sum(pauses) * 3 / 2 < 36 * 3600


@given(st.integers(1, 10**9))
def test_a_pause_never_shrinks_and_has_a_bound(attempt):
    assert 5 <= signing.pause_seconds(attempt) <= signing.pause_seconds(attempt + 1) <= 6 * 3600


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" , ", []),
        ("https://a.example/in", [("a.example", "https://a.example/in")]),
        ("http://a.example:8080", [("a.example:8080", "http://a.example:8080")]),
        ("crm=https://a.example/in?x=1", [("crm", "https://a.example/in?x=1")]),
        ("https://a.example/?x=1", [("a.example", "https://a.example/?x=1")]),
        (
            "a=https://a.example/1, b=https://a.example/2",
            [("a", "https://a.example/1"), ("b", "https://a.example/2")],
        ),
        ("http://[::1]:80/in", [("::1:80", "http://[::1]:80/in")]),
    ],
)
def test_webhooks_are_read_with_or_without_a_name(text, expected):
    assert read_webhooks(text) == tuple(Webhook(*one) for one in expected)


@pytest.mark.parametrize(
    "text",
    [
        "ftp://a.example/in",
        "file:///etc/passwd",
        "a.example/in",
        "crm=",
        "https:///in",
        "https://user:hunter2@a.example/in",
        "https://a.example/in#part",
        "https://a.example/a b",
        "https://a.example/ä",
        "https://a.example:99999/",
        "https://[::1/",
        "https://erp..example.com/in",
        "https://.example.com/in",
        f"https://{'a' * 70}.example/in",
        "https://a.example/1,https://a.example/2",
        "crm=https://a.example/,crm=https://b.example/",
        ",".join(f"w{number}=https://a.example/" for number in range(21)),
    ],
)
def test_what_is_no_web_address_is_refused_without_repeating_it(text):
    with pytest.raises(CpqError) as refused:
        read_settings({}, webhooks=text, webhook_secret=SECRET)
    assert refused.value.details["field"] == "CPQ_WEBHOOKS"
    assert "hunter2" not in refused.value.message


@pytest.mark.parametrize(
    "text",
    [
        "hunter2",
        "whsec_",
        "whsec_hunter2",
        f"whsec_{'A' * 30}!!hunter2",
        SECRET.removeprefix("whsec_"),
        f"{SECRET},hunter2",
    ],
)
def test_a_secret_that_is_weak_or_malformed_is_refused_without_repeating_it(text):
    with pytest.raises(CpqError) as refused:
        read_settings({}, webhooks="https://a.example", webhook_secret=text)
    assert refused.value.details["field"] == "CPQ_WEBHOOK_SECRET"
    assert "hunter2" not in refused.value.message
    assert SECRET[6:] not in refused.value.message


def test_webhooks_without_a_secret_are_refused_with_a_way_to_make_one():
    with pytest.raises(CpqError) as refused:
        read_settings({"CPQ_WEBHOOKS": "https://a.example"})
    assert "openssl rand" in str(refused.value.details["hint"])


def test_two_secrets_are_two_keys_while_one_replaces_the_other():
    assert read_settings({}, webhook_secret=f"{SECRET}, {SECRET}").webhook_keys == (KEY, KEY)


def test_a_host_that_cannot_be_looked_up_is_an_answer_like_any_other():
    answer = http_post.post("http://erp..example.com/in", {}, b"{}")
    assert (answer.status, answer.text.partition(":")[0]) == (None, "UnicodeError")


def test_background_work_goes_on_whatever_happens(caplog: pytest.LogCaptureFixture):
    """A thread that ends is started by nobody."""
    calls: list[int] = []

    def work() -> float:
        calls.append(1)
        if len(calls) < 3:
            raise UnicodeError("no such host")
        return 0.0

    loop = Loop("events-erp", work)
    loop._stopping.wait = lambda timeout=None: len(calls) > 3  # type: ignore[method-assign] # No pauses.
    loop._run()
    assert (len(calls), loop.problem) == (4, None)
    assert [record.levelname for record in caplog.records if record.name == "cpq.background"] == ["WARNING"] * 2


def test_what_fails_or_has_stopped_is_told_to_whoever_asks(sqlite_app: App):
    failing = threading.Event()

    def work() -> float:
        failing.set()
        raise UnicodeError("a secret address")

    loop = Loop("events-erp", work)
    loop.start()
    assert failing.wait(60)
    while loop.problem is None:
        time.sleep(0.01)
    assert readiness(sqlite_app, [loop])["background"] == "events-erp fails: UnicodeError"
    stop([loop])
    assert loop.problem == "fails: UnicodeError"
    dead = Loop("sweep", lambda: 60.0)
    dead._thread = threading.Thread(target=int)  # Its thread has ended, which no work can bring about.
    dead.start()
    dead.join()
    assert readiness(sqlite_app, [loop, dead])["background"].endswith("; sweep has stopped")
