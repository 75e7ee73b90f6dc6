"""Every tool, one file per toolset, in the order of use."""

from __future__ import annotations

from mcp_facade.registry import Tool
from mcp_facade.tools import approvals, context, deals, docs, equipment, insight, past_quotes, quotes, web

_TOOLSETS = (quotes, deals, approvals, insight, equipment, past_quotes, docs, context, web)

ALL_TOOLS: tuple[Tool, ...] = tuple(tool for toolset in _TOOLSETS for tool in toolset.TOOLS)


def tools_of(toolsets: tuple[str, ...]) -> list[Tool]:
    """The tools of the toolsets that are switched on."""
    return [tool for tool in ALL_TOOLS if tool.toolset in toolsets]
