"""What openai-agents sees at /mcp, as docs/mcp.md uses it."""

import asyncio
import json
import sys

from agents.mcp import MCPServerStreamableHttp

url, key = sys.argv[1], sys.argv[2]
headers = {"X-Api-Key": key}


async def openai() -> dict:
    async with MCPServerStreamableHttp(params={"url": url, "headers": headers}) as server:
        tools = sorted(t.name for t in await server.list_tools())
        echo = await server.call_tool("echo", {"message": "hello"})
        broken = await server.call_tool("get-sum", {"a": "x", "b": 1})
        held = await server.call_tool("toggle-subscriber-updates", {})
        again = await server.call_tool("get_result", {"intent_id": held.structured_content["intent_id"]})
        meta = held.meta or {}
        return {
            "tools": tools, "echo": [c.text for c in echo.content], "error": [broken.is_error, broken.structured_content["code"]],
            "held": [held.is_error, held.structured_content["status"], meta.get("aob.dev/intent_id") == held.structured_content["intent_id"]],
            "result": again.structured_content["status"],
        }


print(json.dumps(asyncio.run(openai())))
