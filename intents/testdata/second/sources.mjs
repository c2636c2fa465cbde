// Sources: whose content a plan has read, as docs/spec/state.md says it.

import { jcs, must } from "./bundle.mjs";

const KEPT = 47 * 3600000;
const MOST = 16;
const MANY = [{ kind: "many", name: "many" }];
const FROM = ["write_memory", "write_temp", "artifact.put", "skill.call", "kb.index", "exec_python"];

const known = (s) => ["server", "agent", "document"].includes(s.kind) && s.name && Buffer.byteLength(s.name) <= 128 && [undefined, "yes", "no"].includes(s.open_world);

// join of sets: each source once; too many, or one that is not known, are MANY.
function join(...sets) {
  const all = new Map(sets.flatMap((set) => set ?? []).map((s) => [jcs(s), s]));
  const some = [...all.keys()].sort().map((k) => all.get(k));
  return some.length > MOST || !some.every(known) ? MANY : some;
}

const covers = (set, other) => jcs(join(set, other)) === jcs(join(set));

export class Sources {
  constructor(state) {
    Object.assign(this, { state, sessions: new Map(), artifacts: new Map(), lost: false });
  }

  // fresh are the sources of a session or an artifact that was written lately.
  fresh(labels, name, at) {
    const found = labels.get(name);
    return found && at < found.at + KEPT ? found.sources : undefined;
  }

  write(labels, name, sources, at) {
    labels.set(name, { sources: join(this.fresh(labels, name, at), sources), at });
  }

  add(p, sources, at) {
    p.sources = join(p.sources, sources);
    if (p.session && p.sources.length > 0) this.write(this.sessions, `${p.tenant}/${p.user}/${p.session}`, p.sources, at);
  }

  // inherit gives a new plan those of its session and of others.
  inherit(p, ...others) {
    const { at } = this.state;
    this.add(p, join(...others, this.fresh(this.sessions, `${p.tenant}/${p.user}/${p.session}`, at)), at);
  }

  // of an intent: those of its plan and of what it names.
  of(o, refs) {
    const named = refs.filter((ref) => ref === undefined || ref.startsWith("cas://")).map((ref) => {
      if (ref === undefined) return MANY;
      return this.fresh(this.artifacts, `${o.tenant}/${ref}`, o.now) ?? [{ kind: "document", name: ref.slice("cas://".length) }];
    });
    return join(this.state.plans.of(o)?.sources, ...named);
  }

  // decided: an intent of a task is decided with what its plan has read, and what it names.
  decided(o) {
    const was = o.facts.task?.sources ?? [];
    const refs = [];
    if (FROM.includes(o.type) && !o.erased) {
      const exists = (pointer) => (o.facts.inputs ?? []).some((x) => x.pointer === pointer && x.sha256);
      const at = { "skill.call": "/input", exec_python: "/input" }[o.type] ?? "/data";
      if (o.args.from) refs.push(exists(at) ? o.args.from : undefined);
      if (o.type === "exec_python") for (const [name, ref] of Object.entries(o.args.inputs ?? {})) refs.push(exists(`/inputs/${name}`) ? ref : undefined);
    }
    const unknown = o.erased || (this.lost && refs.some((ref) => ref?.startsWith("cas://")));
    const is = this.of(o, unknown ? [] : refs);
    must(jcs(was) === jcs(is) || jcs(join(was)) === jcs(is) || (unknown && covers(was, is)), "decided with other sources than its plan has read");
  }

  // ended: the outcome of what was carried out adds what was read.
  ended(o, out, result, withheld) {
    if (o.type === "artifact.put" && withheld) this.lost = true;
    const p = this.state.plans.of(o);
    if (!p) return;
    this.add(p, out.sources, this.state.at);
    if (o.type === "artifact.put" && out.status === "done" && result?.artifact) this.write(this.artifacts, `${o.tenant}/${result.artifact}`, p.sources, this.state.at);
    if (o.key?.role !== "task" || o.d.executor === "router" || (o.d.verdict === "hold" && !o.released)) return;
    const read = [];
    const { skill } = o.facts;
    if (["skill.call", "resource.read"].includes(o.type) && skill) {
      const name = skill.name.split(".")[0];
      const { trusted, open_world } = skill;
      read.push(skill.kind === "agent" ? { kind: "agent", name } : { kind: "server", name, ...(trusted && { trusted }), ...(open_world && { open_world }) });
    }
    must(covers(p.sources, join(o.facts.task?.sources, read)), "the outcome leaves out whose content the plan has read");
  }
}
