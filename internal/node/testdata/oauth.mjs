// A provider (oidc-provider) and an MCP client (the TypeScript SDK) that logs in by itself: discovery,
// registration, authorization code with PKCE, and a call under the access token.
// node oauth.mjs NODE_MODULES ISSUER MCP-URL SUB TOOL
import http from "node:http";
import { pathToFileURL } from "node:url";

const [modules, issuer, mcp, sub, tool] = process.argv.slice(2);

const { default: Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`).href);
const sdk = `${modules}/@modelcontextprotocol/sdk/dist/esm/client`;
const { Client } = await import(pathToFileURL(`${sdk}/index.js`).href);
const { StreamableHTTPClientTransport } = await import(pathToFileURL(`${sdk}/streamableHttp.js`).href);
const { UnauthorizedError } = await import(pathToFileURL(`${sdk}/auth.js`).href);

const provider = new Provider(issuer, {
  cookies: { keys: ["a key of this test"] },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({ scope: "use", audience: resource, accessTokenFormat: "jwt", accessTokenTTL: 600, jwt: { sign: { alg: "RS256" } } }),
    },
  },
  scopes: ["openid", "use"],
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, i) => `/interaction/${i.uid}` },
});
const answer = provider.callback();
const server = http.createServer(async (req, res) => {
  if (!req.url.startsWith("/interaction/")) return answer(req, res);
  const at = await provider.interactionDetails(req, res); // the person agrees to everything
  if (at.prompt.name === "login") return provider.interactionFinished(req, res, { login: { accountId: sub } });
  const grant = new provider.Grant({ accountId: sub, clientId: at.params.client_id });
  grant.addOIDCScope((at.prompt.details.missingOIDCScope ?? ["openid"]).join(" "));
  for (const [resource, scopes] of Object.entries(at.prompt.details.missingResourceScopes ?? {})) grant.addResourceScope(resource, scopes.join(" "));
  return provider.interactionFinished(req, res, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
});
await new Promise((done) => server.listen(new URL(issuer).port, "127.0.0.1", done));

const redirect = "http://127.0.0.1:1/callback";
const kept = {};
const auth = {
  redirectUrl: redirect,
  clientMetadata: { client_name: "test", redirect_uris: [redirect], grant_types: ["authorization_code"], response_types: ["code"], token_endpoint_auth_method: "none", scope: "openid use" },
  clientInformation: () => kept.client,
  saveClientInformation: (c) => { kept.client = c; },
  tokens: () => kept.tokens,
  saveTokens: (t) => { kept.tokens = t; },
  saveCodeVerifier: (v) => { kept.verifier = v; },
  codeVerifier: () => kept.verifier,
  redirectToAuthorization: (url) => { kept.url = url; },
};

// browse follows the redirects of the login as a browser does, until it comes back to the client.
async function browse(url) {
  const jar = new Map();
  for (let i = 0; i < 12; i++) {
    const r = await fetch(url, { redirect: "manual", headers: { cookie: [...jar].map(([k, v]) => `${k}=${v}`).join("; ") } });
    for (const c of r.headers.getSetCookie()) {
      const [pair] = c.split(";");
      jar.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1));
    }
    if (!r.headers.get("location")) throw new Error(`${url}: ${r.status} ${await r.text()}`);
    url = new URL(r.headers.get("location"), url);
    if (url.href.startsWith(redirect)) return url.searchParams;
  }
  throw new Error("the login does not end");
}

const begin = () => [new Client({ name: "test", version: "1" }), new StreamableHTTPClientTransport(new URL(mcp), { authProvider: auth })];
let [client, transport] = begin();
let asked = false;
try {
  await client.connect(transport);
} catch (e) {
  if (!(e instanceof UnauthorizedError)) throw e;
  asked = true;
}
const back = await browse(kept.url);
await transport.finishAuth(back.get("code"));
[client, transport] = begin();
await client.connect(transport);
const tools = (await client.listTools()).tools.map((t) => t.name);
const called = await client.callTool({ name: tool, arguments: {} });
const header = JSON.parse(Buffer.from(kept.tokens.access_token.split(".")[0], "base64url"));
const withID = await fetch(mcp, { method: "POST", headers: { authorization: `Bearer ${kept.tokens.id_token}`, "content-type": "application/json" }, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' });
console.log(JSON.stringify({ asked, tools, called, typ: header.typ, id_token: withID.status, challenge: withID.headers.get("www-authenticate") }));
process.exit(0);
