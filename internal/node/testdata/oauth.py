"""The Python SDK logs a person in by itself, as /mcp tells it, and lists and calls a tool.

python oauth.py MCP-URL TOOL
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2 as httpx
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

url, tool = sys.argv[1], sys.argv[2]
redirect = "http://127.0.0.1:1/callback"


class Kept(TokenStorage):
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


back = {}


async def browse(at: str) -> None:
    """Follows the redirects of the login as a browser does, until it comes back to the client."""
    async with httpx.AsyncClient() as browser:
        for _ in range(12):
            answer = await browser.get(at)
            at = str(httpx.URL(at).join(answer.headers["location"]))
            if at.startswith(redirect):
                back.update({k: v[0] for k, v in parse_qs(urlsplit(at).query).items()})
                return
    raise RuntimeError("the login does not end")


async def came() -> AuthorizationCodeResult:
    return AuthorizationCodeResult(code=back["code"], state=back.get("state"), iss=back.get("iss"))


async def main() -> dict:
    kept = Kept()
    about = OAuthClientMetadata(client_name="test", redirect_uris=[redirect], grant_types=["authorization_code", "refresh_token"], response_types=["code"], token_endpoint_auth_method="none", scope="openid")
    auth = OAuthClientProvider(url, about, kept, redirect_handler=browse, callback_handler=came)
    async with httpx.AsyncClient(auth=auth, timeout=60) as web, Client(streamable_http_client(url, http_client=web)) as client:
        tools = [t.name for t in (await client.list_tools()).tools]
        called = await client.call_tool(tool, {})
        return {"tools": tools, "text": called.content[0].text, "asked": bool(back)}


print(json.dumps(asyncio.run(main())))
