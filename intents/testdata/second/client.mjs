// Plans of MCP clients: what opens one, whose grants its task takes, and the numbers of its
// calls.

import { must } from "./bundle.mjs";

const MOST = 200;
const TYPES = ["read_lines", "resource.read", "skill.call", "skill.find", "skill.load", "step.finish"];

// through: a grant was issued for a request of the client of an API key.
function through(claims, key) {
  must(!claims.for && claims.act.client === (key.startsWith("oidc:") ? key : `apikey:${key}`), "a grant that is not of the client's API key, or a standing one");
}

export class Clients {
  constructor(state) {
    this.state = state;
  }

  // opens: an API key stands with the agent client, and with no other.
  opens(o) {
    const { agent, api_key, schedule } = o.args;
    must((agent === "client") === (api_key !== undefined), "an API key without the agent client, or that without one");
    if (api_key === undefined) return;
    must(!schedule, "a client for a schedule");
    if (!o.erased) through(o.claims, api_key);
  }

  // runs is what a client may do that comes with an API key: call what is approved and given.
  runs(o) {
    const t = this.state.directories.at(-1).tenants.get(o.tenant);
    const key = o.args.api_key.startsWith("oidc:") ? {} : t.keys.get(o.args.api_key); // a token has no row
    must(key, "no such API key");
    const like = (tool) => new RegExp(`^${tool.split("*").map((s) => s.replace(/[^A-Za-z0-9_]/g, "\\$&")).join(".*")}$`);
    const gives = (id) => !key.tools || key.tools.some((tool) => like(tool).test(id));
    return { apiKey: o.args.api_key, types: TYPES, skills: [...t.pins].filter(gives).sort(), seconds: 3600, holds: [], asks: new Map() };
  }

  scope(o, t) {
    if (t.apiKey !== undefined && !o.erased) through(o.claims, t.apiKey);
  }

  // numbered says whether the plan is a client's, whose calls have numbers, each its own.
  numbered(o, p) {
    if (p?.runs?.apiKey === undefined || o.type !== "skill.call") return false;
    const n = o.context.occurrence ?? 0;
    must(n >= 1 && n <= MOST, "a call of a client without a number");
    must(!p.numbers?.has(n), "another call of the client has the number");
    return true;
  }

  take(o, p) {
    if (p.runs?.apiKey !== undefined && o.type === "skill.call") (p.numbers ??= new Set()).add(o.context.occurrence);
  }

  // free gives the number of a call back that had no effect.
  free(o, p, out) {
    if (out.status === "failed" && (out.code === "DISPATCH_UNAVAILABLE" || out.retryable)) p.numbers?.delete(o.context.occurrence);
  }
}
