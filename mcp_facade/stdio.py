"""The stdio transport: JSON lines on asyncio pipes, and the answer to an invalid line."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from cpq.base.errors import Code, CpqError
from mcp_facade.envelope import failure
from mcp_facade.json_repair import HEAL_BYTES_MAX, MESSAGE_BYTES_MAX, heal

ENDING_SECONDS_MAX = 30.0
"""How long a server finishes open calls after its client has disconnected."""

CANCELLED = "notifications/cancelled"


async def serve(server: Any) -> None:
    """Serve JSON lines on asyncio pipes, with half the work per call of the SDK's transport, which uses threads.

    Files and terminals cannot be read that way, so they use the SDK's transport.
    """
    if not all(_is_pipe(descriptor) for descriptor in (0, 1)):
        async with stdio_server() as (from_client, to_client):
            await server.run(from_client, to_client, server.create_initialization_options())
        return
    async with _pipes() as (reader, writer):
        to_server, server_in = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        server_out, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        unanswered: set[Any] = set()

        async def read() -> None:
            async with to_server:
                while line := await _next_line(reader):
                    try:
                        message = await _parse(line)
                    except ValidationError:
                        writer.write(_unreadable(line))
                        continue
                    if isinstance(message, types.JSONRPCRequest):
                        unanswered.add(message.id)
                    elif isinstance(message, types.JSONRPCNotification) and message.method == CANCELLED:
                        unanswered.discard((message.params or {}).get("requestId"))  # It gets no answer.
                    await to_server.send(SessionMessage(message))
                with anyio.move_on_after(ENDING_SECONDS_MAX):
                    while unanswered:  # The client sends no more, but still gets its answers.
                        await anyio.sleep(0.01)

        async def write() -> None:
            async with from_server:
                async for item in from_server:
                    writer.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                    await writer.drain()
                    unanswered.discard(getattr(item.message, "id", None))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(write)
            tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
            await server.run(server_in, server_out, server.create_initialization_options())
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _pipes() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """While serving, fd 0 is /dev/null and fd 1 is stderr, so that a stray print cannot corrupt the wire."""
    loop = asyncio.get_running_loop()
    in_fd, out_fd = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    reader = asyncio.StreamReader(limit=MESSAGE_BYTES_MAX)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(in_fd, "rb", buffering=0))
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(out_fd, "wb", buffering=0)
    )
    transport.set_write_buffer_limits(0)  # `drain` then waits until the client has taken the whole answer.
    yield reader, asyncio.StreamWriter(transport, protocol, None, loop)
    transport.close()


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _next_line(reader: asyncio.StreamReader) -> bytes:
    """The next line, or nothing at the end of input. A line that is too long is not parsed."""
    is_too_long = False
    while True:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as end:
            line = end.partial
        except asyncio.LimitOverrunError as over:
            await reader.readexactly(over.consumed)
            is_too_long = True
            continue
        if is_too_long:
            return b"too long\n"
        if not line.isspace():
            return line


async def _parse(line: bytes) -> Any:
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        if len(line) > HEAL_BYTES_MAX:
            raise
        healed = await anyio.to_thread.run_sync(heal, line)
        return jsonrpc_message_adapter.validate_json(healed, by_name=False)


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()


_ID = re.compile(rb'"id"\s*:\s*("[^"\\]{0,200}"|-?[0-9]{1,18})')


def _unreadable(line: bytes) -> bytes:
    """The answer to an invalid line, with its id if there is one, so that the client does not wait."""
    found = _ID.search(line[:10_000])
    error = {
        "code": types.PARSE_ERROR,
        "message": "Parse error",
        "data": failure(CpqError(Code.VALIDATION_ERROR, "The line is not a JSON-RPC message.")).body,
    }
    answer = {"jsonrpc": "2.0", "id": json.loads(found[1]) if found else None, "error": error}
    return json.dumps(answer).encode() + b"\n"
