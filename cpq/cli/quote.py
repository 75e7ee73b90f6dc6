"""`cpq quote`: the group of the commands about quotes; each is in a file of its own beside this one."""

from __future__ import annotations

import click

from cpq.cli.lazy_group import LazyGroup

QUOTE_COMMANDS = {
    "create": ("cpq.cli.quote_create:create", "Create a draft from lines or a file."),
    "clone": ("cpq.cli.quote_clone:clone", "Create a draft with the lines of another quote."),
    "edit": ("cpq.cli.quote_edit:edit", "Change lines, terms or notes of a draft."),
    "price": ("cpq.cli.quote_price:price", "Price a quote exactly and check it against the policies."),
    "request": ("cpq.cli.quote_request:request", "Ask for the approvals that a quote needs."),
    "withdraw": ("cpq.cli.quote_withdraw:withdraw", "Withdraw the pending requests of a quote."),
    "review": ("cpq.cli.quote_review:review", "Close the marks for review of a quote."),
    "send": ("cpq.cli.quote_send:send", "Record that a quote was sent to the customer."),
    "link": ("cpq.cli.quote_link:link", "Make a link by which the customer accepts."),
    "unlink": ("cpq.cli.quote_unlink:unlink", "Revoke links by which the customer accepts."),
    "accept": ("cpq.cli.quote_accept:accept", "Record that the customer accepted."),
    "decline": ("cpq.cli.quote_decline:decline", "Record that the customer declined."),
    "cancel": ("cpq.cli.quote_cancel:cancel", "Cancel a quote, or its open revision."),
    "revise": ("cpq.cli.quote_revise:revise", "Open the next version of a quote as a draft."),
    "list": ("cpq.cli.quote_list:list_", "List quotes, newest first."),
    "show": ("cpq.cli.quote_show:show", "Show a quote: terms, dates, lines, totals and hashes."),
    "explain": ("cpq.cli.quote_explain:explain", "Explain a price, from list price to total."),
    "diff": ("cpq.cli.quote_explain:diff", "Compare two versions of a quote."),
    "replay": ("cpq.cli.quote_replay:replay", "Prove stored prices by pricing them again."),
    "verify": ("cpq.cli.quote_verify:verify", "Check whether a PDF was issued here, and is current."),
}


@click.group(cls=LazyGroup, lazy=QUOTE_COMMANDS)
def quote() -> None:
    """Do a deal from draft to acceptance; show, explain and prove prices, and verify PDFs.

    \b
    Example:
      cpq quote create --account acct_acme_001 --line prod_pro_v2:150 --term-months 12 --as rita
      cpq quote list --status draft
    """
