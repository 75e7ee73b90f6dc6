"""Every tool, one file per toolset, in the order of use. Only the toolsets that are switched on are imported."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING

from cpq.base.settings import TOOLSETS
from mcp_facade.registry import Tool

if TYPE_CHECKING:
    ALL_TOOLS: tuple[Tool, ...]


def tools_of(toolsets: Collection[str]) -> list[Tool]:
    """The tools of the toolsets that are switched on."""
    files = (import_module(f"mcp_facade.tools.{name}") for name in TOOLSETS if name in toolsets)
    return [tool for file in files for tool in file.TOOLS]


def __getattr__(name: str) -> tuple[Tool, ...]:
    if name != "ALL_TOOLS":
        raise AttributeError(name)
    return tuple(tools_of(TOOLSETS))
