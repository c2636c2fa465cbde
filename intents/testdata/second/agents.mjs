// Agents: what registry.push puts in force, and what the agent of a plan may do, as
// docs/spec/state.md says it.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { gunzipSync } from "node:zlib";
import { digest, jcs, must } from "./bundle.mjs";

const BUILTIN = JSON.parse(readFileSync(new URL("agents.json", import.meta.url))).agents;

// limitsOf a built-in agent.
export const limitsOf = (name) => BUILTIN.find((a) => a.name === name).limits;

// GENERAL is the built-in agent that a tenant may replace.
const GENERAL = "general";
export const replaces = (agents) => agents.some((a) => a.name === GENERAL);

const INNER = ["planner", "executor", "composer", "classifier", "producer"];

// content checks that a bundle is the revision of a digest, and gives the digests of its files.
function content(bundle, name) {
  const files = JSON.parse(gunzipSync(Buffer.from(bundle, "base64")));
  const digests = Object.fromEntries(Object.entries(files).map(([path, text]) => [path, digest(text)]));
  must(digest(jcs(digests)) === name, "the content has another digest");
  return Object.values(digests);
}

// LOCAL are the intents that the tools of this system are made of.
const LOCAL = {
  search: ["kb.search", "memory.query", "read_memory"], action: ["action"], remind_me: ["schedule.delete", "schedule.list", "schedule.put"], ask_agent: ["agent.ask"], ask_people: ["approval.ask"],
  find_relevant_skills: ["skill.find"], load_skill: ["skill.load"], read_lines: ["read_lines"], exec_python: ["exec_python"], write_memory: ["write_memory"],
};

// meets says whether the arguments of a call meet the schema of an approval. What only a
// reference names may meet it.
function meets(o, when) {
  if (when === undefined || (o.type === "skill.call" && o.args.from !== undefined)) return true;
  const { default: Ajv } = createRequire(`${process.env.WRIT_NODE_MODULES}/`)("ajv/dist/2020.js");
  return new Ajv({ strict: false }).compile(when)(o.type === "skill.call" ? o.args.input ?? {} : o.args);
}

// approvals are the rules by which the file of an agent holds an intent.
export function approvals(agent, holds, o) {
  const covers = ({ tool }) => (o.type === "skill.call" ? [o.args.skill, `${o.args.skill.split(".")[0]}.*`, "*.*"].includes(tool) : LOCAL[tool]?.includes(o.type));
  const reason = (tool) => `the agent ${agent} calls ${tool} when people have approved it`;
  return holds.filter((h) => covers(h) && meets(o, h.when)).map((h) => ({ id: `agent.${agent}.approval`, reason: reason(h.tool), roles: h.roles }));
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
      next.workflows = o.facts.scopes.workflows ?? [];
      must([...next.agents, ...next.workflows].every((a) => files.includes(a.digest)), "scopes of another content");
    } else if (was?.before?.digest === args.digest) {
      next.agents = was.before.agents;
      next.workflows = was.before.workflows;
    } else {
      const kept = this.state.blobs.get(args.digest);
      must(kept, "neither the revision before nor content that is kept");
      next.agents = o.facts.scopes.agents;
      next.workflows = o.facts.scopes.workflows ?? [];
      const files = Object.entries(JSON.parse(kept));
      must(files.every(([, f]) => this.state.blobs.has(f)), "content that is not whole");
      const written = files.filter(([path]) => /^(agents\/)?[^/]+\.ya?ml$/.test(path)).map(([, f]) => f);
      must(jcs(next.agents.map((a) => a.digest).sort()) === jcs(written.sort()), "scopes of another content");
    }
    must(next.agents.every((a) => a.name !== "client"), "the name of clients");
    must(tenant !== "system" || !replaces(next.agents), "replaces a built-in agent of all tenants");
    this.state.approvals.agents(next.agents, tenant);
    if (was) delete was.before;
    const concerned = tenant === "system" ? ["system", ...this.inForce.keys()] : [tenant];
    for (const t of concerned) this.effective(t, { tenant, next });
    next.before = was;
    this.inForce.set(tenant, next);
  }

  // effective are the agents that a tenant has, by name: the built-in ones, over them
  // those of system, over them its own.
  effective(tenant, pushed, layers = this.inForce) {
    const set = new Map(BUILTIN.map((a) => [a.name, a]));
    let nearest;
    for (const t of new Set(["system", tenant])) {
      const layer = pushed?.tenant === t ? pushed.next : layers.get(t);
      const here = new Set();
      let standard;
      for (const a of layer?.agents ?? []) {
        must((a.name === GENERAL || !BUILTIN.some((b) => b.name === a.name)) && !here.has(a.name), "a name that is taken");
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
    return Object.assign(set, { nearest });
  }

  runnable(a) {
    return a && !INNER.includes(a.name);
  }

  // now are the revisions in force of system and of a tenant.
  now(tenant) {
    return ["system", tenant].map((t) => this.inForce.get(t)?.revision);
  }

  // then are the registries of these revisions, each in force or the one before.
  then(tenant, revisions) {
    const layers = new Map();
    for (const [i, t] of ["system", tenant].entries()) {
      if (revisions[i] === undefined) continue;
      const r = [this.inForce.get(t), this.inForce.get(t).before].find((x) => x?.revision === revisions[i]);
      must(r, "the agents of the opening have been replaced twice");
      layers.set(t, r);
    }
    return layers;
  }

  // runs is what a plan of an agent may do, as of now or of the registries of then, and the
  // agents that it may ask.
  runs(tenant, name, layers) {
    const set = this.effective(tenant, undefined, layers);
    const a = name === `writ/${GENERAL}` ? BUILTIN.find((b) => b.name === GENERAL) : set.get(name);
    must(this.runnable(a), "no agent that can be run");
    const asked = [...set.values()].filter((b) => b.name !== name && this.runnable(b) && ((a.ask_any && !b.remote) || a.sub_agents?.includes(b.name)));
    const { ask_time_limit_sec: askFor, max_fan_out: fanOut, request_limit: requests } = a.limits;
    return { ...this.scoped(tenant, a), asks: new Map(asked.map((b) => [b.name, this.scoped(tenant, b)])), askFor, fanOut, requests };
  }

  scoped(tenant, a) {
    // A remote agent says who it is, makes its one call and uses no model of ours.
    if (a.remote) return { remote: true, types: [...a.types, "agent.get"], skills: a.skills, seconds: a.limits.time_limit_sec, holds: [], limits: { ...a.limits, total_tokens_limit: 0 } };
    const servers = a.servers ?? [];
    const ofServer = (skill) => servers.includes("*") || servers.includes(skill.split(".")[0]);
    const pins = [...(this.state.directories.at(-1).tenants.get(tenant)?.pins ?? [])];
    const skills = [...new Set([...(a.skills ?? []), ...pins.filter(ofServer)])].sort();
    const types = a.types.includes("skill.call") ? [...a.types, "skill.find"] : a.types;
    return { types, skills, seconds: a.limits.time_limit_sec, holds: a.holds ?? [], limits: a.limits };
  }
}
