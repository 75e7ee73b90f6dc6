"""A load balancer for tests: each request goes to the next of several servers, whoever sent it."""

import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.support.console import WAIT_SECONDS, running

OF_A_CONNECTION = {"connection", "transfer-encoding", "content-length"}


@contextmanager
def round_robin(port: int, servers: Sequence[str]) -> Iterator[list[str]]:
    """Passes requests on; yields the server of each. The servers must know the name of this address."""
    passed_on: list[str] = []
    turns = itertools.cycle(servers)

    @asynccontextmanager
    async def client(_: Starlette) -> AsyncIterator[dict[str, httpx2.AsyncClient]]:
        async with httpx2.AsyncClient(timeout=WAIT_SECONDS) as made:
            yield {"client": made}

    async def forward(request: Request) -> Response:
        server = next(turns)
        passed_on.append(server)
        headers = [(name, value) for name, value in request.headers.items() if name not in OF_A_CONNECTION]
        outward = request.state.client.build_request(
            request.method, f"{server}{request.url.path}", headers=headers, content=await request.body()
        )
        answer = await request.state.client.send(outward, stream=True)
        kept = {name: value for name, value in answer.headers.items() if name not in OF_A_CONNECTION}
        return StreamingResponse(answer.aiter_raw(), answer.status_code, kept)

    methods = ["GET", "POST", "DELETE"]
    application = Starlette(routes=[Route("/{path:path}", forward, methods=methods)], lifespan=client)
    with running(uvicorn.Config(application, port=port, log_config=None)):
        yield passed_on
