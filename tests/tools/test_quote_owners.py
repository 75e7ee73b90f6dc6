"""The owner of a quote: the seller behind it, also when an agent made it."""

import pytest

from cpq.app import App, tokens
from cpq.app.access import Principal, Role
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from tests.support.engine import Tools, write
from tests.support.quotes import new_quote

DANA = Principal("dana", "human", frozenset({Role.SALES_MANAGER}))
DANAS_BOT = Principal("bot", "agent", frozenset({Role.AGENT}), acts_for="dana")


def owner_of(tools: Tools, quote_id: str) -> str | None:
    return tools("quote_get", quote_id=quote_id)["quote"]["owner"]


@pytest.mark.parametrize(
    ("principal", "owner"),
    [(DANA, "dana"), (DANAS_BOT, "dana"), (Principal("lone", "agent", frozenset({Role.AGENT})), None)],
)
def test_a_quote_belongs_to_the_seller_behind_its_maker(app: App, principal: Principal, owner: str | None):
    tools = Tools(app, principal=principal)
    quote_id = new_quote(tools)
    assert owner_of(tools, quote_id) == owner
    assert tools("quote_list")["items"][0]["owner"] == owner


def test_the_list_of_quotes_can_be_that_of_one_owner(app: App):
    tools, bots = Tools(app), Tools(app, principal=DANAS_BOT)
    new_quote(tools)
    quote_id = new_quote(bots)
    page = tools("quote_list", owner="dana")
    assert ([item["id"] for item in page["items"]], page["pagination"]["total"]) == ([quote_id], 1)


def test_a_token_names_the_person_behind_a_program(app: App):
    found: list[Principal | None] = []

    def work(tx: Tx) -> dict[str, object]:
        tokens.grant(tx, name="dana", role="sales_rep")
        _, secret = tokens.create_token(tx, name="crm-bot", role="agent", owner="dana")
        found.append(tokens.verify_token(tx, secret))
        found.append(tokens.find_principal(tx, "crm-bot"))
        return {}

    write(app, work)
    assert [principal and principal.owner for principal in found] == ["dana", "dana"]
    assert owner_of(Tools(app), new_quote(Tools(app, principal=found[0] or DANA))) == "dana"


@pytest.mark.parametrize(("kind", "owner"), [("agent", "dnaa"), ("human", "dana"), ("agent", "crm-bot")])
def test_only_a_program_has_an_owner_and_only_a_person_owns(app: App, kind: str, owner: str):
    def work(tx: Tx) -> dict[str, object]:
        tokens.grant(tx, name="dana", role="sales_rep")
        tokens.create_token(tx, name="crm-bot", role="agent")
        tokens.create_token(tx, name="other", role="agent" if kind == "agent" else "sales_rep", owner=owner)
        return {}

    with pytest.raises(CpqError) as refused:
        write(app, work)
    assert refused.value.details["field"] == "/owner"


@pytest.mark.parametrize("step", ["makes", "changes", "submits"])
def test_nobody_approves_what_their_own_agent_made_changed_or_submitted(app: App, step: str):
    def work(tx: Tx) -> dict[str, object]:
        tokens.grant(tx, name="dana", role="sales_manager")
        return {}

    write(app, work)
    tools, bots, dana = Tools(app), Tools(app, principal=DANAS_BOT), Tools(app, principal=DANA)
    quote_id = new_quote(bots if step == "makes" else tools)
    if step == "changes":
        bots("quote_update", quote_id=quote_id, expected_version=1, notes="More.")
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    asking = bots if step == "submits" else tools
    asked = asking("approval_request", quote_id=quote_id, justification="They grow.")
    error = dana.error(
        "approval_decide", approval_id=asked["approval_id"], decision="approve", fingerprint=asked["fingerprint"]
    )
    assert error["code"] == "FORBIDDEN"
    assert tools("approval_status", quote_id=quote_id)["current_status"] == "pending_approval"
