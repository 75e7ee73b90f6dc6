"""The console as one application: every page and its address."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from cpq.app import App
from cpq.base.background import Loop
from cpq.base.errors import Code, CpqError
from cpq.console import (
    account,
    accounts,
    agreement,
    audit,
    customer_link,
    deal_step,
    decision,
    figures,
    health,
    help_page,
    new_quote,
    policies,
    product_options,
    queue,
    quote,
    quote_line,
    quotes,
    searches,
    time_zone,
)
from cpq.console.accept import AcceptPage
from cpq.console.oidc import ProviderEntrance
from cpq.console.quote import DocumentBytes
from cpq.console.security_headers import protected
from cpq.console.sign_in import Entrance, sign_out
from cpq.console.site import Site
from cpq.console.template_files import Templates
from cpq.console.verify import VerifyPage
from cpq.console.visit import Visit, open_to_all, visited


def build(app: App, document: DocumentBytes | None = None, loops: Sequence[Loop] = ()) -> Starlette:
    """The pages under `/console`, and in its state the public pages `/verify` and `/accept`.

    `document` gives the customer's PDF of a version; `loops` run beside the server.
    """
    site = Site(app, Templates())
    entrance = Entrance(site)

    async def home(_: Request) -> Response:
        return protected(RedirectResponse("/console/queue", 303))

    async def refuse(_: Request, error: HTTPException) -> Response:
        return protected(PlainTextResponse(error.detail, error.status_code, error.headers))

    def static(request: Request, _form: object) -> Response:
        return site.templates.file(request)

    def missing(request: Request, _form: object) -> Response:
        return site.refusal(
            request, CpqError(Code.NOT_FOUND, "There is no such page."), site.cookies.session_of(request)
        )

    routes = [
        Route("/", home),
        Route("/static/{name}", open_to_all(site, static)),
        Route("/sign-in", open_to_all(site, entrance.sign_in)),
        Route("/enter/{code}", open_to_all(site, entrance.look_at_link)),
        Route("/enter/{code}", open_to_all(site, entrance.use_link), methods=["POST"]),
        Route("/sign-out", visited(site, sign_out), methods=["POST"]),
        Route("/queue", visited(site, queue.show)),
        Route("/queue/next", visited(site, queue.show_next)),
        Route("/queue/take-back", visited(site, queue.take_back), methods=["POST"]),
        Route("/quotes", visited(site, quotes.show)),
        Route("/quotes/new", visited(site, new_quote.show)),
        Route("/quotes/new", visited(site, new_quote.create), methods=["POST"]),
        Route("/quotes/{quote_id}/lines/new", visited(site, quote_line.new)),
        Route("/quotes/{quote_id}/lines/new", visited(site, quote_line.add), methods=["POST"]),
        Route("/quotes/{quote_id}/lines/{line_id}", visited(site, quote_line.edit)),
        Route("/quotes/{quote_id}/lines/{line_id}", visited(site, quote_line.change), methods=["POST"]),
        Route("/quotes/{quote_id}/terms", visited(site, quote_line.terms)),
        Route("/quotes/{quote_id}/terms", visited(site, quote_line.change_terms), methods=["POST"]),
        Route("/quotes/{quote_id}/steps/{step}", visited(site, deal_step.show)),
        Route("/quotes/{quote_id}/steps/{step}", visited(site, deal_step.take), methods=["POST"]),
        Route("/quotes/{quote_id}/customer-link", visited(site, customer_link.show)),
        Route("/quotes/{quote_id}/customer-link", visited(site, customer_link.make), methods=["POST"]),
        Route("/quotes/{quote_id}/customer-link/revoke", visited(site, customer_link.revoke), methods=["POST"]),
        Route("/quotes/{quote_id}/audit", visited(site, audit.show)),
        Route("/quotes/{quote_id}/audit", visited(site, audit.verify), methods=["POST"]),
        Route("/quotes/{quote_id}/decide", visited(site, decision.decide), methods=["POST"]),
        Route("/quotes/{quote_id}/decide", visited(site, decision.confirm)),
        Route("/quotes/{quote_id}/delegate", visited(site, quote.delegate), methods=["POST"]),
        Route("/quotes/{quote_id}/ask", visited(site, quote.ask_again), methods=["POST"]),
        *_document(site, document),
        Route("/quotes/{quote_id}", visited(site, quote.show)),
        Route("/decisions/{held_id}", visited(site, decision.show)),
        Route("/decisions/{held_id}/undo", visited(site, decision.undo), methods=["POST"]),
        *_masters(site),
        *_agreement(site),
        Route("/time-zone", visited(site, time_zone.show)),
        Route("/time-zone", visited(site, time_zone.choose), methods=["POST"]),
        *_reports(site),
        *_provider(site, entrance),
        Route("/{rest:path}", open_to_all(site, missing), methods=["GET", "POST"]),
    ]
    application = Starlette(routes=routes, exception_handlers={HTTPException: refuse})  # type: ignore[dict-item] # It gets no other.
    application.state.document = document
    application.state.loops = loops
    application.state.public = _public(site, document)
    return application


def _public(site: Site, document: DocumentBytes | None) -> list[Route]:
    """The pages for customers, who have no account."""
    page = AcceptPage(site, document)
    return [
        Route("/verify", open_to_all(site, VerifyPage(site).show)),
        Route("/accept/{code}", open_to_all(site, page.show)),
        Route("/accept/{code}", open_to_all(site, page.take), methods=["POST"]),
        Route("/accept/{code}/document", open_to_all(site, page.document)),
    ]


def _masters(site: Site) -> list[Route]:
    """The pages of accounts and products."""
    return [
        Route("/accounts", visited(site, accounts.show)),
        Route("/accounts/{account_id}", visited(site, account.show)),
        Route("/products/{product_id}/configure", visited(site, product_options.show)),
    ]


def _agreement(site: Site) -> list[Route]:
    """The page of an agreement and its forms."""
    return [
        Route("/agreements/{agreement_id}", visited(site, agreement.show)),
        Route("/agreements/{agreement_id}/amend", visited(site, agreement.amend), methods=["POST"]),
        Route("/agreements/{agreement_id}/renew", visited(site, agreement.renew), methods=["POST"]),
    ]


def _reports(site: Site) -> list[Route]:
    """The pages that only show something."""
    pages = {"policies": policies, "figures": figures, "searches": searches, "health": health}
    guide = [Route(path, visited(site, help_page.show)) for path in ("/guide", "/guide/{name}")]
    return [*guide, *(Route(f"/{name}", visited(site, page.show)) for name, page in pages.items())]


def _document(site: Site, find: DocumentBytes | None) -> list[Route]:
    """The route of the customer's document, if there is a renderer."""
    if find is None:
        return []

    def document(visit: Visit) -> Response:
        return quote.document(visit, find=find)

    return [Route("/quotes/{quote_id}/document", visited(site, document))]


def _provider(site: Site, entrance: Entrance) -> list[Route]:
    """The routes of sign-in through the company's provider, if one is configured."""
    if not site.app.settings.oidc_issuer:
        return []
    provider = ProviderEntrance(site, entrance)
    return [
        Route("/oidc/start", open_to_all(site, provider.start, asks=True)),
        Route("/oidc/back", open_to_all(site, provider.back, asks=True)),
    ]
