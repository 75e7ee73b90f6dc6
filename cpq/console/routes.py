"""The console as one application: every page, its address, and what it is made with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from cpq.app import App
from cpq.base.background import Loop
from cpq.base.errors import Code, CpqError
from cpq.console import browsing, queue, quote
from cpq.console.oidc import ProviderEntrance
from cpq.console.quote import DocumentBytes
from cpq.console.sign_in import Entrance, sign_out
from cpq.console.template_files import Showing
from cpq.console.visit import Door, open_to_all, protected, visited


def build(app: App, document: DocumentBytes | None = None, loops: Sequence[Loop] = ()) -> ASGIApp:
    """The pages under `/console`. `document` gives the customer's PDF of a version; `loops` run beside the server."""
    door = Door(app, Showing())
    entrance = Entrance(door)

    async def home(_: Request) -> Response:
        return protected(RedirectResponse("/console/queue", 303))

    async def refuse(_: Request, error: HTTPException) -> Response:
        return protected(PlainTextResponse(error.detail, error.status_code, error.headers))

    def static(request: Request, _form: object) -> Response:
        return door.showing.file(request)

    def missing(request: Request, _form: object) -> Response:
        return door.refusal(request, CpqError(Code.NOT_FOUND, "There is no such page."), door.session_of(request))

    routes = [
        Route("/", home),
        Route("/static/{name}", open_to_all(door, static)),
        Route("/sign-in", open_to_all(door, entrance.sign_in)),
        Route("/enter/{code}", open_to_all(door, entrance.look_at_link)),
        Route("/enter/{code}", open_to_all(door, entrance.use_link), methods=["POST"]),
        Route("/sign-out", visited(door, sign_out), methods=["POST"]),
        Route("/queue", visited(door, queue.show)),
        Route("/queue/take-back", visited(door, queue.take_back), methods=["POST"]),
        Route("/quotes", visited(door, browsing.list_quotes)),
        Route("/quotes/{quote_id}/audit", visited(door, browsing.show_audit)),
        Route("/quotes/{quote_id}/audit", visited(door, browsing.verify_audit), methods=["POST"]),
        Route("/quotes/{quote_id}/decide", visited(door, quote.decide), methods=["POST"]),
        Route("/quotes/{quote_id}/delegate", visited(door, quote.delegate), methods=["POST"]),
        *_document(door, document),
        Route("/quotes/{quote_id}", visited(door, quote.show)),
        Route("/accounts", visited(door, browsing.list_accounts)),
        Route("/accounts/{account_id}", visited(door, browsing.show_account)),
        Route("/policies", visited(door, browsing.show_policies)),
        Route("/figures", visited(door, browsing.show_figures)),
        Route("/health", visited(door, browsing.show_health)),
        *_provider(door, entrance),
        Route("/{rest:path}", open_to_all(door, missing), methods=["GET", "POST"]),
    ]
    application = Starlette(routes=routes, exception_handlers={HTTPException: refuse})  # type: ignore[dict-item] # It gets no other.
    application.state.document = document
    application.state.loops = loops
    return application


def _document(door: Door, find: DocumentBytes | None) -> list[Route]:
    """The page of the customer's document, where there can be one."""
    if find is None:
        return []
    return [Route("/quotes/{quote_id}/document", visited(door, partial(quote.document, find=find)))]


def _provider(door: Door, entrance: Entrance) -> list[Route]:
    """The way over the company's provider, where one is named."""
    if not door.app.settings.oidc_issuer:
        return []
    provider = ProviderEntrance(door, entrance)
    return [
        Route("/oidc/start", open_to_all(door, provider.start, asks=True)),
        Route("/oidc/back", open_to_all(door, provider.back, asks=True)),
    ]
