"""Fixtures that ask the client back: live requests in the handshake era, `InputRequiredResult` in the modern one."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from mcp.server.mcpserver import Context

AnyContext = Context[Any, Any]
Rounds = str | types.InputRequiredResult


async def test_sampling(prompt: str, context: AnyContext) -> str:
    """Asks the client's model while the call runs."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    answer = await context.session.create_message([message], max_tokens=100, related_request_id=context.request_id)
    assert isinstance(answer.content, types.TextContent)
    return f"LLM response: {answer.content.text}"


async def test_elicitation(message: str, context: AnyContext) -> str:
    """Asks the person while the call runs."""
    return f"User response: {await _ask_live(context, message, _form(username='string', email='string'))}"


async def test_elicitation_sep1034_defaults(context: AnyContext) -> str:
    """Asks with a default for every kind of field."""
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    answer = await _ask_live(context, "Please check these.", {"type": "object", "properties": fields})
    return f"Elicitation completed: {answer}"


async def test_elicitation_sep1330_enums(context: AnyContext) -> str:
    """Asks with every kind of choice."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
    names = ["Option One", "Option Two", "Option Three"]
    fields = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    answer = await _ask_live(context, "Please choose.", {"type": "object", "properties": fields})
    return f"Elicitation completed: {answer}"


async def test_input_required_result_elicitation(context: AnyContext) -> Rounds:
    """Asks for a name, then greets."""
    name = _accepted(context, "user_name", "name")
    return f"Hello, {name}!" if name else _required(user_name=_elicit("What is your name?", name="string"))


async def test_streaming_elicitation(context: AnyContext) -> Rounds:
    """Asks for a name; the stream of the answer must hold nothing but the answer."""
    return await test_input_required_result_elicitation(context)


async def test_input_required_result_sampling(context: AnyContext) -> Rounds:
    """Asks the client's model, then repeats its answer."""
    answer = (context.input_responses or {}).get("capital_question")
    if isinstance(answer, types.CreateMessageResult) and isinstance(answer.content, types.TextContent):
        return answer.content.text
    return _required(capital_question=_sample("What is the capital of France?"))


async def test_input_required_result_list_roots(context: AnyContext) -> Rounds:
    """Asks for the client's roots, then names them."""
    answer = (context.input_responses or {}).get("client_roots")
    if isinstance(answer, types.ListRootsResult):
        return ", ".join(str(root.uri) for root in answer.roots)
    return _required(client_roots=types.ListRootsRequest())


async def test_input_required_result_request_state(context: AnyContext) -> Rounds:
    """Asks once, and wants its state back unchanged."""
    if _accepted(context, "confirm", "ok") and context.request_state == "asked":
        return "state-ok"
    return _required("asked", confirm=_elicit("Please confirm", ok="boolean"))


async def test_input_required_result_tampered_state(context: AnyContext) -> Rounds:
    """Asks once; a state that somebody changed never arrives here."""
    return await test_input_required_result_request_state(context)


async def test_input_required_result_multiple_inputs(context: AnyContext) -> Rounds:
    """Asks three things at once."""
    questions: types.InputRequests = {
        "user_name": _elicit("What is your name?", name="string"),
        "greeting": _sample("Generate a greeting"),
        "client_roots": types.ListRootsRequest(),
    }
    if set(questions) <= set(context.input_responses or {}):
        return "All three were answered."
    return _required("asked", **questions)


async def test_input_required_result_multi_round(context: AnyContext) -> Rounds:
    """Asks two things, one after the other, and keeps the first answer in its state."""
    if name := _accepted(context, "step1", "name"):
        return _required(str(name), step2=_elicit("Step 2: What is your favorite color?", color="string"))
    if color := _accepted(context, "step2", "color"):
        return f"{context.request_state} likes {color}."
    return _required("", step1=_elicit("Step 1: What is your name?", name="string"))


async def test_input_required_result_capabilities(context: AnyContext) -> Rounds:
    """Asks only in the ways that the client has declared."""
    declared = context.client_capabilities or types.ClientCapabilities()
    questions: types.InputRequests = {}
    if declared.sampling is not None:
        questions["greeting"] = _sample("Generate a greeting")
    if declared.elicitation is not None:
        questions["user_name"] = _elicit("What is your name?", name="string")
    answered = set(questions) <= set(context.input_responses or {})
    return "Nothing left to ask." if answered else _required(None, **questions)


async def test_input_required_result_prompt(context: AnyContext) -> Rounds:
    """A prompt that asks for its context first."""
    about = _accepted(context, "user_context", "context")
    if about:
        return f"Use this context: {about}"
    return _required(user_context=_elicit("What context should the prompt use?", context="string"))


TOOLS = (
    test_sampling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_streaming_elicitation,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
)

PROMPTS = (test_input_required_result_prompt,)


async def _ask_live(context: AnyContext, message: str, schema: dict[str, Any]) -> str:
    answer = await context.session.elicit_form(message, schema, related_request_id=context.request_id)
    return f"action={answer.action}, content={json.dumps(answer.content or {})}"


def _accepted(context: AnyContext, key: str, field: str) -> object:
    """What the person entered, or None when there is no such answer yet."""
    answer = (context.input_responses or {}).get(key)
    if isinstance(answer, types.ElicitResult) and answer.action == "accept":
        return (answer.content or {}).get(field)
    return None


def _required(state: str | None = None, /, **questions: types.InputRequest) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=questions, request_state=state)


def _elicit(message: str, **fields: str) -> types.ElicitRequest:
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=_form(**fields)))


def _form(**fields: str) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in fields.items()}
    return {"type": "object", "properties": properties, "required": list(fields)}


def _sample(question: str) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=question))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=100))
