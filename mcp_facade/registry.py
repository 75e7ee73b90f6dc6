"""Turns functions into tools: `@tool` reads the signature, `Registry.call` validates, runs, and wraps the answer."""

from __future__ import annotations

import inspect
import logging
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from cpq.app import Answer, App, Call, Command, Outcome, Record
from cpq.app.access import Permission, Principal
from cpq.app.shared_pace import SharedPace
from cpq.base import traces
from cpq.base.errors import Code, CpqError, nearest
from cpq.base.metrics import REPLAYS, TOOL_CALLS, TOOL_SECONDS
from cpq.base.rate_limit import RateLimiter
from cpq.base.settings import TOOLSETS
from cpq.base.text import to_wire
from cpq.domain.quotes.quote_number import is_number
from cpq.services import quotes
from mcp_facade.arguments import Key, require_shallow
from mcp_facade.choices import add_look, add_next_calls, add_repair
from mcp_facade.envelope import (
    Reply,
    failure,
    internal_failure,
    invalid_arguments,
    success,
    with_error_arm,
    with_shown_sentences,
)

log = logging.getLogger("cpq.tools")

KEY = "idempotency_key"
QUOTE = "quote_id"
LISTS_PER_MINUTE = 60
"""Lists of tools for one caller. They are large, and a client needs one when it starts."""


@dataclass(frozen=True)
class Tool:
    """One tool; name, description and schemas come from its function."""

    name: str
    title: str
    description: str
    toolset: str
    needs: Permission
    writes: bool
    is_destructive: bool
    subject: str | None
    is_job: bool
    is_open_world: bool
    makes_new: bool
    takes_key: bool
    run: Callable[..., Any]
    arguments: type[BaseModel]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    as_text: Callable[[Reply], str] | None
    late_hint: str | None


@dataclass(frozen=True)
class Job:
    """The context of a long tool: it opens its own transactions, reports progress, and checks for cancellation."""

    app: App
    call: Call
    record: Record
    writes: list[Outcome] = field(default_factory=list)

    def note(self, outcome: Outcome) -> Answer:
        """Use the outcome of a write as the answer of this call."""
        self.writes.append(outcome)
        return outcome.answer

    def progress(self, done: int, total: int, message: str, *, is_phase: bool = False) -> None:
        """Report progress to the client, and stop if the client has left. A new phase is always reported."""
        self.call.check()
        self.call.progress(done, total, message, is_phase=is_phase)


def tool(
    *,
    title: str,
    toolset: str,
    needs: Permission,
    writes: bool = False,
    is_destructive: bool = False,
    is_open_world: bool = False,
    makes_new: bool = False,
    subject: str | None = None,
    as_text: Callable[[Reply], str] | None = None,
    late_hint: str | None = None,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function whose first parameter is a `Tx` (one transaction) or a `Job` (long work).

    `subject` names the argument with the quote or product of the call. A tool that writes takes an `idempotency_key`,
    whether or not its function has that parameter; one that `makes_new` things makes one more at every call without
    it. An open-world tool asks other machines.
    `as_text` is for tools that answer in prose: what a model reads, instead of the JSON of the structured content.
    """
    assert toolset in TOOLSETS, toolset

    def make(function: Callable[..., Any]) -> Tool:
        hints = typing.get_type_hints(function, include_extras=True)
        first, *rest = inspect.signature(function).parameters.values()
        fields: dict[str, Any] = {p.name: (hints[p.name], ... if p.default is p.empty else p.default) for p in rest}
        takes_key = KEY in fields
        if writes:
            fields.setdefault(KEY, (Key, None))
        model = create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)
        output = TypeAdapter(hints["return"]).json_schema(mode="serialization", schema_generator=_WireSchema)
        return Tool(
            name=function.__name__,
            title=title,
            description=inspect.getdoc(function) or "",
            toolset=toolset,
            needs=needs,
            writes=writes,
            is_destructive=is_destructive,
            subject=subject,
            is_job=hints[first.name] is Job,
            is_open_world=is_open_world,
            makes_new=makes_new,
            takes_key=takes_key,
            run=function,
            arguments=model,
            input_schema=_untitled(model.model_json_schema(schema_generator=_WireSchema)),
            output_schema=with_error_arm(_with_replayed(_untitled(output)) if writes else _untitled(output)),
            as_text=as_text,
            late_hint=late_hint,
        )

    return make


class Registry:
    """The tools that are switched on, and the one way to call them."""

    def __init__(self, app: App, tools: Iterable[Tool]) -> None:
        self._app = app
        self.tools = {tool.name: tool for tool in tools}
        self._limiter = RateLimiter(app.settings.rate_limit_per_minute, app.effects)
        lists_max = min(app.settings.rate_limit_per_minute, LISTS_PER_MINUTE)
        self._lists = RateLimiter(lists_max, app.effects)
        self.is_shared = not app.settings.is_sqlite or app.settings.workers > 1
        """Whether other servers may use the database, and the limits hold for all of them together."""
        self._calls_of_all = SharedPace(app, "calls", app.settings.rate_limit_per_minute)
        self._lists_of_all = SharedPace(app, "lists", lists_max)

    def call(self, call: Call, name: str, arguments: Mapping[str, Any]) -> Reply:
        """Never raises: every outcome becomes a result or the envelope, a log line, a metric and an audit entry."""
        started = self._app.effects.monotonic()
        tool = self.tools.get(name)
        label = tool.name if tool else "unknown"
        try:
            reply = self._run(call, tool, name, arguments)
            self._drop_absent_tool(reply.body)
        except CpqError as error:
            add_next_calls(error, label, arguments)
            add_repair(error, label, arguments)
            add_look(error, label, arguments)
            reply = failure(self._without_absent_tools(error))
        except Exception:
            log.exception("tool crashed", extra={"tool": label, "trace_id": call.trace_id})
            reply = internal_failure(call.trace_id)
        seconds = self._app.effects.monotonic() - started
        traces.annotate(code=reply.code, trace_id=call.trace_id)
        TOOL_CALLS.labels(tool=label, code=reply.code).inc()
        TOOL_SECONDS.labels(tool=label).observe(seconds)
        log.info(
            "tool called",
            extra={
                "tool": label,
                "code": reply.code,
                "caller": call.principal.caller,
                "trace_id": call.trace_id,
                "duration_ms": round(seconds * 1000, 1),
            },
        )
        return reply

    def take_turn(self, principal: Principal, method: str = "") -> None:
        """Count a request of the caller, or raise RATE_LIMITED. Where limits are shared, it may ask the database."""
        who = f"{principal.tenant_id}/{principal.caller}"
        if method == "tools/list":
            self._lists.take(who)
            if self.is_shared:
                self._lists_of_all.take(principal)
        self._limiter.take(who)
        if self.is_shared:
            self._calls_of_all.take(principal)

    def texts_of(self, name: str, reply: Reply) -> list[str]:
        """The text of a reply for a model: JSON, or prose if the tool answers in prose; a failure then has both."""
        tool = self.tools.get(name)
        if tool is None or tool.as_text is None:
            return [reply.text]
        return [tool.as_text(reply), *([reply.text] if reply.is_error else [])]

    def refuse(self, call: Call, name: str, error: CpqError) -> Reply:
        """The error envelope for a call that was not begun; it is audited too."""
        known = self.tools.get(name)
        self._app.note(call, Command(known.name if known else "unknown", Permission.READ), error.code.value)
        return failure(error)

    def _run(self, call: Call, tool: Tool | None, name: str, arguments: Mapping[str, Any]) -> Reply:
        """Each call leaves one audit entry, however often it reads, even when it is refused early."""
        label, needs = (tool.name, tool.needs) if tool else ("unknown", Permission.READ)
        with self._app.audited(call, Command(label, needs)) as record:
            tool, given = self._admit(call, record, tool, name, arguments)
            if tool.is_job:
                job = Job(self._app, call, record)
                answer = tool.run(job, **given)
                writes = job.writes
            elif tool.writes:
                writes = [self._app.write_within(call, record, lambda tx: tool.run(tx, **given))]
                answer = writes[-1].answer
            else:
                answer, writes = self._app.read_unaudited(call, lambda tx: tool.run(tx, **given)), []
        return _written(tool, writes, answer) if tool.writes else success(answer)

    def _admit(
        self, call: Call, record: Record, tool: Tool | None, name: str, arguments: Mapping[str, Any]
    ) -> tuple[Tool, dict[str, Any]]:
        """The tool and its validated arguments; refuses everything that can be refused without the database."""
        require_shallow(arguments)
        record.command = replace(record.command, arguments=arguments)
        self.take_turn(call.principal)
        if tool is None:
            raise self._unknown(name)
        self._app.allow(call, record.command)
        valid = self._by_id(call, tool, _validate(tool, arguments))
        record.command = _command(tool, valid)
        given = dict(valid)
        if not tool.takes_key:
            given.pop(KEY, None)
        return tool, given

    def _by_id(self, call: Call, tool: Tool, valid: BaseModel) -> BaseModel:
        """The arguments with the id of the quote instead of its number, for the audit and for repeated requests.

        An imported past quote may have any text as its id, so its tool looks there first.
        """
        given = getattr(valid, QUOTE, None)
        if given is None or tool.toolset == "past_quotes":
            return valid
        return (
            valid.model_copy(update={QUOTE: self._app.read_unaudited(call, lambda tx: quotes.id_of(tx, given))})
            if is_number(given)
            else valid
        )

    def _without_absent_tools(self, error: CpqError) -> CpqError:
        """Remove a `next_call` whose tool is switched off, because a client can send it as it is."""
        for part in (error.details, *error.details.get("problems", ())):  # type: ignore[misc] # A list of objects.
            for place in (part, *part.get("choices", ())):
                self._drop_absent_tool(place)
        return error

    def _drop_absent_tool(self, part: dict[str, Any]) -> None:
        if "next_call" in part and part["next_call"]["tool"] not in self.tools:
            del part["next_call"]

    def _unknown(self, name: str) -> CpqError:
        known = sorted(self.tools)
        return CpqError(
            Code.NOT_FOUND,
            "There is no tool of that name.",
            nearest=nearest(name[:64], known) or None,
            allowed=known,
            hint="Tools of a toolset that is switched off do not exist; `tools/list` shows the others.",
        )


class _WireSchema(GenerateJsonSchema):
    """Decimals are JSON numbers on the wire."""

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        return {"type": "number"}


def _written(tool: Tool, writes: Sequence[Outcome], answer: Answer) -> Reply:
    """The reply of a tool that writes; a job may have had nothing to write."""
    is_replayed = bool(writes) and writes[-1].replayed
    if is_replayed:
        REPLAYS.labels(operation=tool.name).inc()
        answer["outcome"] = "replayed"
    # An answer stored under the key is in wire form already.
    return Reply(with_shown_sentences({**(answer if writes else to_wire(answer)), "replayed": is_replayed}))


def _command(tool: Tool, given: BaseModel) -> Command:
    """The command for the engine, from validated arguments.

    Blanks around an id, or an explicit default, do not make a different request.
    """
    arguments = given.model_dump(exclude_defaults=True)
    key = arguments.pop(KEY, None)
    return Command(tool.name, tool.needs, arguments, key, arguments[tool.subject] if tool.subject else None)


def _validate(tool: Tool, arguments: Mapping[str, Any]) -> BaseModel:
    fields = tool.arguments.model_fields
    # Many clients send null for omitted arguments.
    given = {n: v for n, v in arguments.items() if v is not None or n not in fields or fields[n].is_required()}
    try:
        return tool.arguments.model_validate(given)
    except ValidationError as error:
        raise invalid_arguments(error, tool.input_schema) from None


def _with_replayed(schema: dict[str, Any]) -> dict[str, Any]:
    replayed = {"type": "boolean", "description": "True when the answer is that of an earlier call with the same key."}
    return {**schema, "properties": {**schema.get("properties", {}), "replayed": replayed}}


def _untitled(schema: Any) -> Any:
    """The schema without the titles that pydantic derives from field names: they only cost tokens."""
    if isinstance(schema, list):
        return [_untitled(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _untitled(part) for name, part in value.items()}
        if key in ("properties", "$defs")
        else _untitled(value)
        for key, value in schema.items()
        if key != "title"
    }
