"""`cpq token` and `cpq audit`: secrets that are kept nowhere, and a record that cannot be changed unnoticed."""

from __future__ import annotations

import base64
import json
import sqlite3
from pathlib import Path

import pytest

from cpq.app.access import PERMISSIONS, Permission, Role
from tests.cli.conftest import Run, query


def test_a_token_lives_from_its_creation_to_its_end(home: Path, run: Run):
    made = run("token", "create", "--name", "dana", "--role", "sales_manager", "--days", "3")
    secret = made.out.strip()
    token_id = secret.split("_")[1]
    assert made.code == 0
    assert secret.startswith("qw_tok-")
    assert "not stored" in made.err
    listed = json.loads(run("token", "list", "--json").out)["items"]
    assert [(item["id"], item["caller"], item["roles"], item["state"]) for item in listed] == [
        (token_id, "human:dana", ["sales_manager"], "valid")
    ]
    assert run("token", "revoke", token_id).code == 0
    assert run("token", "revoke", token_id).code == 0
    assert json.loads(run("token", "list", "--json").out)["items"][0]["state"] == "revoked"


def test_the_secret_is_in_no_file_and_no_log(home: Path, run: Run):
    made = run("--debug", "token", "create", "--name", "bot", "--role", "agent")
    secret = made.out.strip().split("_", 2)[2]
    files = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert len(secret) == 43
    assert secret not in made.err
    assert files
    assert not any(secret.encode() in content for content in files)


def test_the_secret_comes_with_json_too(home: Path, run: Run):
    made = json.loads(run("token", "create", "--name", "bot", "--role", "agent", "--json").out)
    assert made["secret"].startswith(f"qw_{made['id']}_")


def test_an_unknown_role_is_refused_with_the_nearest_one(home: Path, run: Run):
    ran = run("token", "create", "--name", "dana", "--role", "sales_manger")
    assert ran.code == 1
    assert "Did you mean sales_manager" in ran.err
    assert query(home, "SELECT count(*) FROM token") == [(0,)]
    assert query(home, "SELECT count(*) FROM principal") == [(0,)]


def test_revoking_an_unknown_token_fails(home: Path, run: Run):
    ran = run("token", "revoke", "tok-none")
    assert ran.code == 1
    assert "There is no token 'tok-none'." in ran.err


def test_the_table_of_roles_shows_every_right(run: Run):
    lines = [line.split() for line in run("token", "roles").out.splitlines()]
    shown = {line[0]: dict(zip(Permission, line[1:], strict=True)) for line in lines if line and line[0] in set(Role)}
    assert shown == {
        role.value: {right: "yes" if right in allowed else "-" for right in Permission}
        for role, allowed in PERMISSIONS.items()
    }


@pytest.mark.parametrize("name", ["Dana", "DANA", "d\u0430na", "\uff44ana", "dana!", "-dana", "da na"])
def test_nobody_passes_for_somebody_else_by_how_their_name_is_written(home: Path, run: Run, name: str):
    run("token", "create", "--name", "dana", "--role", "sales_manager")
    ran = run("token", "create", "--name", name, "--role", "sales_manager")
    assert ran.code == 1
    assert "name has small letters a to z, digits and . _ - @ only" in ran.err
    tokens = json.loads(run("token", "list", "--json").out)["items"]
    assert len(tokens) == 1


def test_a_name_from_before_keeps_its_own_and_nobody_takes_one_like_it(home: Path, run: Run):
    run("token", "create", "--name", "dana", "--role", "sales_manager")
    with sqlite3.connect(home / "quotewright.db") as database:
        database.execute("PRAGMA foreign_keys = off")
        database.execute("UPDATE principal SET name = 'Dana'")
        database.execute("UPDATE token SET principal_name = 'Dana'")
    assert run("token", "create", "--name", "Dana", "--role", "legal").code == 0
    refused = run("token", "create", "--name", "dana", "--role", "legal")
    assert "'Dana' is known already and differs only by case" in refused.err


def test_the_newest_calls_are_shown_first(home: Path, run: Run):
    run("token", "create", "--name", "bot", "--role", "agent")
    run("token", "list")
    ran = run("audit", "show", "--limit", "2", "--json")
    assert ran.code == 0, ran.err
    items = json.loads(ran.out)["items"]
    assert [item["operation"] for item in items] == ["token_list", "token_create"]
    assert {item["caller"] for item in items} == {"human:operator"}
    assert "token_create" in run("audit", "show").out


def test_the_record_is_in_order_and_says_what_was_decided_by_whom(home: Path, run: Run):
    for name, role in (("rita", "sales_rep"), ("dana", "sales_manager")):
        run("token", "grant", "--name", name, "--role", role)
    quotes = {}
    for decision in ("approve", "reject"):
        made = run(
            "quote", "create", "--account", "acct_acme_001", "--line", "prod_pro_v2:150", "--as", "rita", "--json"
        )
        quote_id = quotes[decision] = json.loads(made.out)["quote_id"]
        run("quote", "price", quote_id, "--discount", 10, "--as", "rita")
        asked = json.loads(run("quote", "request", quote_id, "--why", "Please.", "--as", "rita", "--json").out)
        arguments = [asked["approval_id"], "--as", "dana", "--comment", "Well.", "--fingerprint", asked["fingerprint"]]
        assert run("approvals", decision, *arguments).code == 0
    items = json.loads(run("audit", "show", "--limit", "50", "--json").out)["items"]
    assert [item["seq"] for item in items] == sorted((item["seq"] for item in items), reverse=True)
    assert [item["at"] for item in items] == sorted((item["at"] for item in items), reverse=True)
    decided = {item["subject"]: item["decided"] for item in items if item["operation"] == "approval_decide"}
    assert decided == {
        quotes["approve"]: "approved as sales_manager",
        quotes["reject"]: "rejected as sales_manager",
    }
    [line] = [line for line in run("audit", "show", "--limit", "50").out.splitlines() if "rejected" in line]
    assert line.split()[3:-3] == ["human:dana", "approval_decide:", "rejected", "as", "sales_manager"]
    [number] = {item["quote_number"] for item in items if item["subject"] == quotes["reject"]}
    assert line.split()[-3:] == [number, quotes["reject"], "OK"]


def _head(run: Run) -> tuple[int, str]:
    seq, _, digest = json.loads(run("audit", "verify", "--json").out)["head"].partition(":")
    return int(seq), digest


def test_a_whole_chain_is_verified_and_its_head_printed(home: Path, run: Run):
    seq, digest = _head(run)
    ran = run("audit", "verify", "--expect", f"{seq}:{digest}")
    assert ran.code == 0
    assert "0 not yet" in ran.out
    assert query(home, "SELECT hash FROM audit_entry WHERE seq = ?", seq) == [(digest,)]


def test_entries_that_a_killed_process_left_unsealed_are_sealed_first(home: Path, run: Run):
    query(
        home,
        "INSERT INTO audit_entry (tenant_id, id, at, caller, operation, arguments_hash, outcome, subject, trace_id)"
        " SELECT tenant_id, 'au-left', at, caller, operation, arguments_hash, outcome, subject, trace_id"
        " FROM audit_entry LIMIT 1",
    )
    assert run("audit", "verify").code == 0
    assert query(home, "SELECT count(*) FROM audit_entry WHERE id = 'au-left' AND seq > 0") == [(1,)]


@pytest.mark.parametrize(
    ("tampering", "reason"),
    [
        ("UPDATE audit_entry SET caller = 'human:nobody' WHERE seq = 2", "entry 2: the entry is not as it was sealed"),
        ("DELETE FROM audit_entry WHERE seq = 2", "entry 2: the entry is missing"),
        ("DELETE FROM audit_entry WHERE seq >= 3", "entry 3: the entry is missing"),
    ],
    ids=["changed", "deleted", "cut off"],
)
def test_a_chain_that_was_tampered_with_is_named_as_broken(home: Path, run: Run, tampering: str, reason: str):
    _head(run)
    query(home, tampering)
    ran = run("audit", "verify")
    assert ran.code == 1
    assert f"The chain is broken at {reason}." in ran.err


def test_a_chain_cut_off_together_with_its_head_does_not_match_a_kept_head(home: Path, run: Run):
    seq, digest = _head(run)
    run("token", "list")
    query(home, "DELETE FROM audit_entry WHERE seq >= 3")
    query(home, "UPDATE audit_head SET seq = 2, hash = (SELECT hash FROM audit_entry WHERE seq = 2)")
    assert run("audit", "verify").code == 0
    ran = run("audit", "verify", "--expect", f"{seq}:{digest}")
    assert ran.code == 1
    assert f"broken at entry {seq}" in ran.err


def test_a_token_of_a_program_names_its_owner(home: Path, run: Run):
    run("token", "grant", "--name", "dana", "--role", "sales_rep")
    assert run("token", "create", "--name", "bot", "--role", "agent", "--owner", "dana").code == 0
    listed = json.loads(run("token", "list", "--json").out)["items"]
    assert [(item["caller"], item["owner"]) for item in listed] == [("human:dana", "dana"), ("agent:bot", "dana")]
    wrong = run("token", "create", "--name", "bot", "--role", "agent", "--owner", "dena")
    assert (wrong.code, "There is no person 'dena'." in wrong.err, "dana" in wrong.err) == (1, True, True)


def test_rows_are_compared_with_the_record_and_each_that_differs_is_named(home: Path, run: Run):
    run("token", "create", "--name", "bot", "--role", "agent")
    run("audit", "baseline")
    whole = run("audit", "verify", "--state")
    assert whole.code == 0
    assert "tokens" in whole.out
    assert "The digests are plain" in whole.out
    assert json.loads(run("audit", "verify", "--state", "--json").out)["state"]["findings"] == []
    [(token_id,)] = query(home, "SELECT id FROM token")
    query(home, "UPDATE token SET role = 'admin'")
    query(home, "UPDATE price SET unit_price = 1 WHERE id = (SELECT min(id) FROM price)")
    changed = run("audit", "verify", "--state")
    assert changed.code == 1
    assert f"rights: token {token_id} was changed" in changed.err
    assert "price" in changed.err


def test_what_has_no_state_on_record_is_counted_and_recorded_once(home: Path, run: Run):
    query(home, "UPDATE audit_entry SET state = NULL, answer = NULL, seq = NULL, hash = NULL")
    query(home, "DELETE FROM audit_head")
    before = run("audit", "verify", "--state")
    assert before.code == 0
    assert "Not checked, because they are from before states were recorded" in before.out
    assert run("audit", "baseline").code == 0
    [left] = [line for line in run("audit", "verify", "--state").out.splitlines() if "Not checked" in line]
    assert left.endswith(" stored answers."), "they end by themselves"
    assert run("audit", "baseline").out == "Recorded: 0 quotes.\n"


def test_the_sql_for_a_role_is_printed_and_a_strange_name_refused(home: Path, run: Run):
    assert 'GRANT SELECT, INSERT, UPDATE (seq, hash) ON audit_entry TO "cpq_server";' in (
        run("audit", "grants", "--role", "cpq_server").out
    )
    refused = run("audit", "grants", "--role", 'x"; DROP TABLE quote')
    assert (refused.code, "small letters" in refused.err, refused.out) == (2, True, "")


@pytest.fixture
def keyed(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The key file of a home."""
    key = tmp_path / "audit.key"
    key.write_text(base64.b64encode(b"k" * 32).decode(), encoding="utf-8")
    key.chmod(0o600)
    monkeypatch.setenv("CPQ_AUDIT_KEY_FILE", str(key))
    return key


def record_in_doctor(run: Run) -> tuple[str, str]:
    """What `cpq doctor` says of the audit record."""
    findings = json.loads(run("doctor", "--json").out)["findings"]
    [found] = [one for one in findings if one["subject"] == "audit record"]
    return found["state"], found["found"]


def test_a_key_is_introduced_by_a_baseline_and_a_bad_one_refused(
    keyed: Path, run: Run, monkeypatch: pytest.MonkeyPatch
):
    assert record_in_doctor(run) == ("warning", "1 state has no signature")
    assert "are plain, from before the key" in run("audit", "verify", "--state").out
    assert run("audit", "baseline").code == 0
    assert run("token", "create", "--name", "bot", "--role", "agent").code == 0
    assert "States signed by the key: 2." in run("audit", "verify", "--state").out
    assert record_in_doctor(run) == ("ok", "every state has a signature")
    monkeypatch.delenv("CPQ_AUDIT_KEY_FILE")
    assert record_in_doctor(run)[0] == "ok"
    assert "CPQ_AUDIT_KEY_FILE" in run("token", "create", "--name", "pip", "--role", "agent").err
    assert "were not verified" in run("audit", "verify", "--state").out
    keyed.write_text("short", encoding="utf-8")
    monkeypatch.setenv("CPQ_AUDIT_KEY_FILE", str(keyed))
    assert "gives no key" in run("audit", "verify").err


CUT = "DELETE FROM audit_entry WHERE seq >= 3"
HEAD_OF_CUT = "UPDATE audit_head SET seq = 2, hash = (SELECT hash FROM audit_entry WHERE seq = 2)"
FORGED = "UPDATE audit_entry SET caller = 'human:nobody' WHERE seq = 2"
RESEALED = "UPDATE audit_entry SET seq = NULL, hash = NULL"


@pytest.mark.parametrize(
    "attack", [(CUT, HEAD_OF_CUT), (FORGED, RESEALED, "DELETE FROM audit_head")], ids=["cut off", "rewritten"]
)
def test_a_signed_head_notices_a_chain_that_is_whole_and_not_the_same(
    home: Path, keyed: Path, run: Run, tmp_path: Path, attack: tuple[str, ...]
):
    kept = tmp_path / "head.json"
    assert run("audit", "head", "--output", kept).code == 0
    assert run("audit", "verify", "--head", kept).code == 0
    for statement in attack:
        query(home, statement)
    assert run("audit", "verify").code == 0, "the forged chain is whole"
    ran = run("audit", "verify", "--head", kept)
    assert (ran.code, "it is not the one you kept" in ran.err) == (1, True)


def test_a_head_that_somebody_changed_is_not_believed(keyed: Path, run: Run, tmp_path: Path):
    kept = tmp_path / "head.json"
    signed = json.loads(run("audit", "head").out)
    for name, value in (("seq", 1), ("hash", "0" * 64), ("at", "2026-01-01T00:00:00Z"), ("tenant_id", "other")):
        kept.write_text(json.dumps({**signed, name: value}), encoding="utf-8")
        ran = run("audit", "verify", "--head", kept)
        assert (ran.code, "is not by the key" in ran.err) == (1, True), name
    for text in ("", "[]", "{}", json.dumps({**signed, "seq": "1"}), json.dumps({**signed, "more": 1})):
        kept.write_text(text, encoding="utf-8")
        ran = run("audit", "verify", "--head", kept)
        assert (ran.code, "is not a head of the audit chain" in ran.err) == (1, True), text
    kept.write_text(json.dumps(signed), encoding="utf-8")
    keyed.write_text(base64.b64encode(b"n" * 32).decode(), encoding="utf-8")
    assert "is not by the key" in run("audit", "verify", "--head", kept).err
    assert run("audit", "verify", "--head", kept, "--expect", f"1:{'0' * 64}").code == 2


def test_a_head_needs_a_key_and_a_whole_chain(home: Path, run: Run, keyed: Path, monkeypatch: pytest.MonkeyPatch):
    run("token", "list")
    query(home, FORGED)
    broken = run("audit", "head")
    assert (broken.code, broken.out, "broken at entry 2" in broken.err) == (1, "", True)
    monkeypatch.delenv("CPQ_AUDIT_KEY_FILE")
    ran = run("audit", "head")
    assert (ran.code, "there is no key" in ran.err) == (1, True)


def test_a_head_is_published_to_the_webhooks(home: Path, keyed: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    assert "CPQ_WEBHOOKS" in run("audit", "head", "--publish").err
    monkeypatch.setenv("CPQ_WEBHOOKS", "http://127.0.0.1:9/hook")
    monkeypatch.setenv("CPQ_WEBHOOK_SECRET", "whsec_" + base64.b64encode(b"w" * 32).decode())
    signed = json.loads(run("audit", "head", "--publish").out)
    [(name, subject, body)] = query(home, "SELECT name, subject, body FROM event")
    assert (name, subject, json.loads(body)) == ("audit.head", "audit", signed)
