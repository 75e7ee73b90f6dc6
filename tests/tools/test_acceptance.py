"""No program closes a deal alone: a person records that the customer accepted, or the policies let an agent do it."""

import shutil
from contextlib import closing
from pathlib import Path

from cpq.app import App
from cpq.base.settings import Settings, shipped
from tests.support.approvals import follow, person, refused
from tests.support.engine import Tools, open_app
from tests.support.quotes import sent_quote, status_of


def test_an_agent_alone_does_not_take_a_quote_from_draft_to_accepted(app: App, tools: Tools):
    quote_id = sent_quote(tools)
    owned = person(app, "bot", "agent")
    for agent in (tools, owned, person(app, "deputy", "sales_rep", kind="agent")):
        error = refused(agent, "quote_accept", quote_id=quote_id, expected_version=1)
        assert (error["code"], error["details"]["field"]) == ("FORBIDDEN", "/quote_id")
        assert f"cpq quote accept {quote_id} --as NAME" in error["details"]["hint"]
        assert follow(agent, error)["quote"]["status"] == "sent"
    seller = person(app, "rita", "sales_rep")
    assert seller("quote_accept", quote_id=quote_id, expected_version=1)["status"] == "accepted"
    assert status_of(tools, quote_id) == "accepted"


def test_the_policies_can_let_an_agent_record_what_the_customer_accepted(store: Settings, tmp_path: Path):
    folder = tmp_path / "policies"
    shutil.copytree(shipped("policies"), folder)
    terms = (folder / "terms.yaml").read_text(encoding="utf-8")
    (folder / "terms.yaml").write_text(
        terms.replace("agents_may_accept: false", "agents_may_accept: true"), encoding="utf-8"
    )
    with closing(open_app(store.model_copy(update={"policies_dir": folder}))) as app:
        tools = Tools(app)
        quote_id = sent_quote(tools)
        assert tools("quote_accept", quote_id=quote_id, expected_version=1)["status"] == "accepted"
