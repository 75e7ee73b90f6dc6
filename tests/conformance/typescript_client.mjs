// Calls every tool with a wrong argument through the TypeScript SDK 1.x, which checks even error results against the
// tool's output schema and throws when they do not fit: then a model would never see our error envelope.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const DENIED = ["approval_decide", "approval_delegate"];
const PROSE = ["answer", "search", "status", "ingest"];
const client = new Client({ name: "conformance", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));

const { tools } = await client.listTools(); // From here on the client knows the output schemas.
assert.ok(tools.length > 0, "no tools");
for (const { name, outputSchema } of tools) {
  assert.ok(outputSchema, `${name} has no output schema`);
  const result = await client.callTool({ name, arguments: { no_such_argument: 1 } });
  assert.equal(result.isError, true, name);
  // Who may not call a tool is told that before anything about its arguments.
  const expected = DENIED.includes(name) ? "FORBIDDEN" : "VALIDATION_ERROR";
  assert.equal(result.structuredContent.error.code, expected, name);
  const text = result.content[0].text;
  // The web tools answer with a brief, and their failures read [ERROR] there (F3.24).
  if (PROSE.includes(name)) assert.ok(text.startsWith("[ERROR]"), name);
  else assert.deepEqual(JSON.parse(text), result.structuredContent, name);
}

const found = await client.callTool({ name: "catalog_search", arguments: { query: "pro plan" } });
assert.ok(!found.isError && found.structuredContent.items.length > 0, "the search found nothing");
await client.close();
