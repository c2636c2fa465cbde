// A provider (oidc-provider) at which writ is a client. Whoever comes is SUB and agrees to everything.
// GET /enter?code= is that person entering the code of a device; GET /remove removes them.
// node signin.mjs NODE_MODULES ISSUER REDIRECT SUB
import http from "node:http";
import { pathToFileURL } from "node:url";

const [modules, issuer, redirect, sub] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`).href);
let removed = false;

const provider = new Provider(issuer, {
  cookies: { keys: ["a key of this test"] },
  clients: [{
    client_id: "writ", client_secret: "hush-hush", redirect_uris: [redirect], response_types: ["code"], token_endpoint_auth_method: "client_secret_basic",
    grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
  }, {
    client_id: "writ-cli", redirect_uris: [], response_types: [], token_endpoint_auth_method: "none", grant_types: ["refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
  }],
  features: {
    devInteractions: { enabled: false },
    deviceFlow: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({ scope: "openid offline_access", audience: resource, accessTokenFormat: "jwt", accessTokenTTL: 20, jwt: { sign: { alg: "RS256" } } }),
    },
  },
  issueRefreshToken: () => true,
  findAccount: (_, id) => (removed ? undefined : { accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, i) => `/interaction/${i.uid}` },
});
const answer = provider.callback();

// browse goes where a page or its one form leads, as a browser does.
async function browse(url) {
  const jar = new Map();
  let form;
  for (let i = 0; i < 20; i++) {
    const r = await fetch(url, {
      redirect: "manual", method: form ? "POST" : "GET", body: form,
      headers: { cookie: [...jar].map(([k, v]) => `${k}=${v}`).join("; "), ...(form ? { "content-type": "application/x-www-form-urlencoded" } : {}) },
    });
    for (const c of r.headers.getSetCookie()) {
      const [pair] = c.split(";");
      jar.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1));
    }
    form = undefined;
    if (r.headers.get("location")) { url = new URL(r.headers.get("location"), url); continue; }
    const page = await r.text(), to = page.match(/<form[^>]*action="([^"]+)"/);
    if (!to) return page;
    url = new URL(to[1], url);
    form = new URLSearchParams([...page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]+)"/g)].map(([, k, v]) => [k, v])).toString();
  }
  throw new Error("it does not end");
}

const server = http.createServer(async (req, res) => {
  const at = new URL(req.url, issuer);
  if (at.pathname === "/remove") { removed = true; return res.end(); }
  if (at.pathname === "/enter") return res.end(await browse(new URL(`${issuer}/device?user_code=${at.searchParams.get("code")}`)));
  if (!req.url.startsWith("/interaction/")) return answer(req, res);
  const i = await provider.interactionDetails(req, res);
  if (i.prompt.name === "login") return provider.interactionFinished(req, res, { login: { accountId: sub } });
  const grant = new provider.Grant({ accountId: sub, clientId: i.params.client_id });
  grant.addOIDCScope("openid offline_access");
  for (const [resource, scopes] of Object.entries(i.prompt.details.missingResourceScopes ?? {})) grant.addResourceScope(resource, scopes.join(" "));
  return provider.interactionFinished(req, res, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
});
server.listen(new URL(issuer).port, "127.0.0.1", () => console.log("ready"));
