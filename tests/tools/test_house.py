"""The house template and the draft conventions, as an MCP client reads them."""

from pathlib import Path

import pytest
from mcp import Client, MCPError

from cpq.app import App
from cpq.base.settings import read_settings
from mcp_facade import house_template
from mcp_facade.server import Facade
from mcp_facade.toolsets import ALL_TOOLS, tools_of
from tests.support.engine import open_app

pytestmark = pytest.mark.anyio

COMPRESSOR_FIELDS = (
    *("Manufacturer", "Series / Model", "Cooling", "Pressure", "Capacity CFM", "Electric Motor", "Voltage"),
    *("Drive System", "Dimensions", "Weight", "WARRANTY", "as described above    Net $[PRICE] Each", "Delivery"),
)
SKELETON = (
    *("[Date]", "Proposal No.", "Attention", "Dear", "pleased to have the opportunity", "[LINE ITEMS]", "INSTALLATION"),
    *("EXCLUSIONS", "TOTALS", "Net 30", "30 days", "FOB factory", "Sincerely", "[Office 5]"),
)


@pytest.fixture
def facade(sqlite_app: App) -> Facade:
    return Facade(sqlite_app, list(ALL_TOOLS))


async def read(client: Client, uri: str) -> str:
    return (await client.read_resource(uri)).contents[0].text  # type: ignore[union-attr] # A text it is.


async def test_c2_15_the_skeleton_has_every_part_in_order(facade: Facade):
    async with Client(facade) as client:
        text = await read(client, "template://house/quote")
    places = [text.index(part) for part in SKELETON]
    assert places == sorted(places)


async def test_c2_14_a_category_has_its_own_block(facade: Facade):
    async with Client(facade) as client:
        text = await read(client, "template://house/characteristics/compressors")
        for part in COMPRESSOR_FIELDS:
            assert part in text
        assert "Dew Point" in await read(client, "template://house/characteristics/dryers")
        with pytest.raises(MCPError, match="compressors, dryers"):
            await read(client, "template://house/characteristics/sofas")


async def test_c2_16_the_conventions_are_a_prompt_and_a_resource(facade: Facade):
    async with Client(facade) as client:
        conventions = await read(client, "template://house/conventions")
        assert house_template.PROMPT_NAME in [prompt.name for prompt in (await client.list_prompts()).prompts]
        message = (await client.get_prompt(house_template.PROMPT_NAME, {"wish": "100 HP for honey"})).messages[0]
    said = message.content.text  # type: ignore[union-attr] # A text it is.
    for part in ("SALESPERSON REVIEW", "score", "Verbatim", "Retrieval summary", "quote_price alone"):
        assert part in conventions
    assert conventions in said
    assert said.startswith("The customer's wish: 100 HP for honey")


async def test_your_own_templates_come_first(sqlite_app: App, tmp_path: Path):
    folder = tmp_path / "templates" / "house" / "characteristics"
    folder.mkdir(parents=True)
    (folder / "sofas.md").write_text("SOFA\nSeats: [value]\n")
    (folder.parent / "quote.md").write_text("Our own skeleton\n")
    app = open_app(read_settings({}, home=sqlite_app.settings.home, templates_dir=tmp_path / "templates"))
    async with Client(Facade(app, list(ALL_TOOLS))) as client:
        assert await read(client, "template://house/quote") == "Our own skeleton\n"
        assert "SOFA" in await read(client, "template://house/characteristics/sofas")
        assert "Capacity CFM" in await read(client, "template://house/characteristics/compressors")
    app.close()


async def test_c2_01_the_toolsets_are_read_only_and_stand_alone(sqlite_app: App):
    for toolset in ("equipment", "past_quotes"):
        tools = tools_of((toolset,))
        assert len(tools) == 3
        assert not any(tool.writes for tool in tools)
        async with Client(Facade(sqlite_app, tools)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool(names[0], {"query": "oilless compressor"})
        assert names == [tool.name for tool in tools]
        assert not found.is_error
