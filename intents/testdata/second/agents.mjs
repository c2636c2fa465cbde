// Agents: what registry.push puts in force, and what the agent of a plan may do, as
// docs/spec/state.md says it.

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { digest, jcs, must } from "./bundle.mjs";

const BUILTIN = JSON.parse(readFileSync(new URL("agents.json", import.meta.url))).agents;

// limitsOf a built-in agent.
export const limitsOf = (name) => BUILTIN.find((a) => a.name === name).limits;

const INNER = ["planner", "executor", "composer", "classifier", "producer"];

// content checks that a bundle is the revision of a digest, and gives the digests of its files.
function content(bundle, name) {
  const files = JSON.parse(gunzipSync(Buffer.from(bundle, "base64")));
  const digests = Object.fromEntries(Object.entries(files).map(([path, text]) => [path, digest(text)]));
  must(digest(jcs(digests)) === name, "the content has another digest");
  return Object.values(digests);
}

export class Agents {
  constructor(state) {
    Object.assign(this, { state, inForce: new Map() });
  }

  push(o, tenant) {
    const { args } = o;
    const was = this.inForce.get(tenant);
    must(this.state.directories.at(-1).tenants.has(tenant), "no such tenant");
    must(!was || args.revision > was.revision, "not a higher revision than the one in force");
    const next = { revision: args.revision, digest: args.digest, before: was };
    if (args.bundle !== undefined) {
      const files = content(args.bundle, args.digest);
      next.agents = o.facts.scopes.agents;
      must(next.agents.every((a) => files.includes(a.digest)), "scopes of another content");
    } else {
      must(was?.before?.digest === args.digest, "not the revision before");
      next.agents = was.before.agents;
    }
    if (was) delete was.before;
    const concerned = tenant === "system" ? ["system", ...this.inForce.keys()] : [tenant];
    for (const t of concerned) this.effective(t, { tenant, next });
    next.before = was;
    this.inForce.set(tenant, next);
  }

  // effective are the agents that a tenant has, by name: the built-in ones, over them
  // those of system, over them its own.
  effective(tenant, pushed) {
    const set = new Map(BUILTIN.map((a) => [a.name, a]));
    let nearest;
    for (const t of new Set(["system", tenant])) {
      const layer = pushed?.tenant === t ? pushed.next : this.inForce.get(t);
      const here = new Set();
      let standard;
      for (const a of layer?.agents ?? []) {
        must(!BUILTIN.some((b) => b.name === a.name) && !here.has(a.name), "a name that is taken");
        here.add(a.name);
        set.set(a.name, a);
        if (!a.routing?.is_default) continue;
        must(standard === undefined && a.routing.confidence_threshold === 0, "a second default, or one with a threshold");
        standard = a.name;
      }
      if (standard !== undefined) nearest = standard;
      else if (here.has(nearest)) nearest = undefined;
    }
    for (const a of set.values()) {
      must((a.sub_agents ?? []).every((name) => set.has(name)), "a sub-agent that is not there");
      must(!(a.ask_any && a.sub_agents?.length > 0), "sub-agents beside all agents");
      must(!a.routing || nearest !== undefined, "routing without a default");
    }
    return set;
  }

  // runs is what a plan of an agent may do, as of now, and the agents that it may ask.
  runs(tenant, name) {
    const set = this.effective(tenant);
    const runnable = (a) => a && !INNER.includes(a.name) && !a.remote;
    const a = set.get(name);
    must(runnable(a), "no agent that can be run");
    const asked = [...set.values()].filter((b) => this.state.rules > 4 && b.name !== name && runnable(b) && (a.ask_any || a.sub_agents?.includes(b.name)));
    const { ask_time_limit_sec: askFor, max_fan_out: fanOut, request_limit: requests } = a.limits;
    return { ...this.scoped(tenant, a), asks: new Map(asked.map((b) => [b.name, this.scoped(tenant, b)])), askFor, fanOut, requests };
  }

  scoped(tenant, a) {
    const servers = a.servers ?? [];
    const ofServer = (skill) => servers.includes("*") || servers.includes(skill.split(".")[0]);
    const pins = [...(this.state.directories.at(-1).tenants.get(tenant)?.pins ?? [])];
    const skills = [...new Set([...(a.skills ?? []), ...pins.filter(ofServer)])].sort();
    const types = this.state.rules > 4 && a.types.includes("skill.call") ? [...a.types, "skill.find"] : a.types;
    return { types, skills, seconds: a.limits.time_limit_sec, limits: a.limits };
  }
}
