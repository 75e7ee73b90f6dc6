"""The engine as MCP tools: translation only, no rule of its own."""
