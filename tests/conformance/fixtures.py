"""The server under test: ours, plus the tools, resources and prompts that the conformance suite calls by name."""

from __future__ import annotations

import base64
import json
import sys
from typing import Annotated, Any

import anyio
import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.shared.exceptions import MCPError
from pydantic import Field

from cpq.app import App, open_app
from cpq.base import logs
from cpq.base.settings import read_settings
from mcp_facade import __main__ as entry
from mcp_facade.server import Facade
from mcp_facade.toolsets import tools_of
from tests.conformance import client

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
WAV = base64.b64encode(
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\0\0\0\0"
).decode()
STEP_SECONDS = 0.05

AnyContext = Context[Any, Any]


def main() -> int:
    """Serve on the port given, exactly as `python -m mcp_facade --transport streamable-http` would."""
    settings = read_settings(transport="streamable-http", port=int(sys.argv[1]))
    logs.configure(settings.log_level, settings.log_format)
    app = open_app(settings)
    try:
        entry.serve_http(app, build(app))
    finally:
        app.close()
    return 0


def build(app: App) -> Facade:
    """Our server with the fixtures added the way the SDK offers; our own tools stay in front of them."""
    facade = Facade(app, tools_of(app.settings.enabled_toolsets))
    for tool in (*TOOLS, *client.TOOLS):
        facade.add_tool(tool, structured_output=False)
    for prompt in (*PROMPTS, *client.PROMPTS):
        facade.prompt()(prompt)
    _publish_schema(facade, json_schema_2020_12_tool.__name__, SCHEMA_2020_12)
    facade.resource("test://static-text", mime_type="text/plain")(static_text)
    facade.resource("test://static-binary", mime_type="image/png")(static_binary)
    facade.resource("test://watched-resource", mime_type="text/plain")(watched_resource)
    facade.resource("test://template/{id}/data", mime_type="application/json")(template_data)
    _add_methods(facade)
    return facade


async def test_simple_text() -> str:
    """Answers with one text."""
    return "This is a simple text response for testing."


async def test_image_content() -> types.ImageContent:
    """Answers with one picture."""
    return types.ImageContent(data=PNG, mime_type="image/png")


async def test_audio_content() -> types.AudioContent:
    """Answers with one sound."""
    return types.AudioContent(data=WAV, mime_type="audio/wav")


async def test_embedded_resource() -> types.EmbeddedResource:
    """Answers with a resource inside the result."""
    return _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")


async def test_multiple_content_types() -> list[types.ContentBlock]:
    """Answers with a text, a picture and a resource."""
    return [
        types.TextContent(text="Multiple content types test:"),
        types.ImageContent(data=PNG, mime_type="image/png"),
        _embedded("test://mixed-content-resource", "application/json", json.dumps({"test": "data", "value": 123})),
    ]


async def test_error_handling() -> str:
    """Always fails."""
    raise ToolError("This tool intentionally returns an error for testing")


async def test_tool_with_logging(context: AnyContext) -> str:
    """Logs three times on the way."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.info(message)
        await anyio.sleep(STEP_SECONDS)
    return "Logged three times."


async def test_logging_tool(context: AnyContext) -> str:
    """Logs once; a modern client that did not ask for logs must not see it."""
    await context.info("Only for those who asked")
    return "Logged once."


async def test_tool_with_progress(context: AnyContext) -> str:
    """Reports progress three times on the way."""
    for done in (0, 50, 100):
        await context.report_progress(done, 100, f"{done} of 100")
        await anyio.sleep(STEP_SECONDS)
    return "Reported three times."


async def test_reconnection(context: AnyContext) -> str:
    """Closes its stream halfway, where the server keeps events to resume from; ours keeps none."""
    await context.close_sse_stream()
    await anyio.sleep(STEP_SECONDS)
    return "Reconnection test completed"


async def test_missing_capability() -> str:
    """Needs a client that can sample, and says so to one that cannot."""
    needed = types.MissingRequiredClientCapabilityErrorData(
        required_capabilities=types.ClientCapabilities(sampling=types.SamplingCapability())
    )
    raise MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        "This tool needs the client capability `sampling`.",
        needed.model_dump(by_alias=True, exclude_none=True),
    )


async def test_trigger_tool_change(context: AnyContext) -> str:
    """Tells listeners that the list of tools has changed."""
    await context.notify_tools_changed()
    return "Told."


async def test_trigger_prompt_change(context: AnyContext) -> str:
    """Tells listeners that the list of prompts has changed."""
    await context.notify_prompts_changed()
    return "Told."


async def test_custom_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Takes an argument that a modern HTTP client repeats in the header `Mcp-Param-Region`."""
    return f"Region {region}"


async def json_schema_2020_12_tool(name: str = "", phone: str = "", email: str = "") -> str:
    """Publishes a schema with keywords of JSON Schema 2020-12, which must survive the listing."""
    return f"{name} {phone} {email}"


async def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


async def static_binary() -> bytes:
    """A picture."""
    return base64.b64decode(PNG)


async def watched_resource() -> str:
    """A text that clients may watch."""
    return "Watched resource content"


async def template_data(id: str) -> str:
    """Data for one id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


async def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt that repeats its arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


async def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - the suite's name
    """A prompt with a resource inside."""
    return [
        UserMessage(_embedded(resourceUri, "text/plain", "Embedded resource content for testing.")),
        UserMessage("Please process the embedded resource above."),
    ]


async def test_prompt_with_image() -> list[UserMessage]:
    """A prompt with a picture."""
    return [
        UserMessage(types.ImageContent(data=PNG, mime_type="image/png")),
        UserMessage("Please analyze the image above."),
    ]


async def complete(_: ServerRequestContext[Any, Any], asked: types.CompleteRequestParams) -> types.CompleteResult:
    values = [word for word in ("paris", "park", "party", "test") if word.startswith(asked.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


TOOLS = (
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_logging,
    test_logging_tool,
    test_tool_with_progress,
    test_reconnection,
    test_missing_capability,
    test_trigger_tool_change,
    test_trigger_prompt_change,
    test_custom_header,
    json_schema_2020_12_tool,
)

PROMPTS = (
    test_simple_prompt,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
)

SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def _embedded(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def _publish_schema(facade: Facade, name: str, schema: dict[str, Any]) -> None:
    tool = facade._tool_manager.get_tool(name)
    assert tool is not None
    tool.parameters = schema


def _add_methods(facade: Facade) -> None:
    """Methods that our product has no use for, but that the suite scores."""

    async def accept(_: ServerRequestContext[Any, Any], __: Any) -> types.EmptyResult:
        return types.EmptyResult()

    server = facade._lowlevel_server
    server.add_request_handler("completion/complete", types.CompleteRequestParams, complete)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, accept)
    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, accept)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, accept)


if __name__ == "__main__":
    sys.exit(main())
