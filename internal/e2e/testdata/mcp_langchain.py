"""What langchain-mcp-adapters sees at /mcp, as docs/mcp.md uses it."""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient

url, key = sys.argv[1], sys.argv[2]


async def main() -> dict:
    client = MultiServerMCPClient({"writ": {"transport": "streamable_http", "url": url, "headers": {"X-Api-Key": key}}})
    tools = {t.name: t for t in await client.get_tools()}
    seen = {}
    for name, args in {"echo": {"message": "hello"}, "get-structured-content": {"location": "Chicago"}, "toggle-subscriber-updates": {}}.items():
        seen[name] = json.dumps(await tools[name].ainvoke(args), default=str)
    return {"tools": sorted(tools), **seen}


print(json.dumps(asyncio.run(main())))
