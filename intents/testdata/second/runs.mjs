// Runs: plans whose graph the registry gives, as docs/spec/state.md says it. Conditions are
// not evaluated here: what is recorded of them is believed, and the rest follows from it.

import { jcs, must } from "./bundle.mjs";
import { patched } from "./graphs.mjs";

const TYPES = { function: "skill.call", python: "exec_python", approval: "approval.ask" };
const FINAL = ["done", "skipped", "failed"];

export class Runs {
  constructor(state) {
    this.state = state;
  }

  // id of the run that an intent opens.
  id(o) {
    if (o.type === "workflow.start" && o.args.run_id !== undefined) return o.args.run_id;
    return `plan_${o.now.toString(36).padStart(11, "0")}${o.d.intent_id.slice(7, 23)}`;
  }

  graph(tenant, id) {
    for (const t of [tenant, "system"]) {
      const found = this.state.agents.inForce.get(t)?.workflows.find((g) => g.workflow_id === id);
      if (found) return found;
    }
    return undefined;
  }

  start(o) {
    const graph = this.graph(o.tenant, o.args.workflow_id);
    must(graph, "the tenant has no such workflow");
    return this.open(o, graph);
  }

  open(o, graph) {
    const { plans } = this.state.plans;
    const id = this.id(o);
    must((o.context.plan_id ?? id) === id, "context names another plan");
    must(!plans.has(`${o.tenant}/${id}`), "a plan with this id exists");
    const { session_id: session = "", turn_id: turn = "" } = o.context;
    const steps = graph.nodes.map((n, i) => this.step(o, n, i + 1, 1));
    const p = {
      graph, opened: this.state.at, turning: false, id, tenant: o.tenant, user: o.user_id, session, turn, status: "pending", final: false, epoch: 0,
      revision: 1, digest: o.d.intent_id, steps, replans: 0, exhausted: false, effects: [], noted: [], pending: 0,
    };
    plans.set(`${o.tenant}/${id}`, p);
    this.state.sources.inherit(p, plans.get(`${o.tenant}/${o.args.run_id}`)?.sources);
    return p;
  }

  step(o, n, step, revision) {
    const runs = n.type === "agent" ? this.state.agents.runs(o.tenant, n.fn) : undefined;
    if (runs) runs.types = runs.types.filter((t) => t !== "agent.ask");
    const skills = runs?.skills ?? (n.type === "function" ? [n.fn] : []);
    return { id: n.id, node: n, agent: runs && n.fn, runs, step, skills, inputs: [], after: [], status: "pending", revision, results: [], attempts: 0 };
  }

  // skill of a tenant, which a name without a server may name too.
  skill(t, name) {
    const found = t.pins.has(name) ? [name] : [...t.pins].filter((id) => id.slice(id.indexOf(".") + 1) === name && id.includes("."));
    return found.length === 1 ? { skill: found[0], effect: t.effects.get(found[0]) } : undefined;
  }

  // patch is a revision of a run: another graph, and steps more.
  patch(o) {
    const p = this.state.plans.plans.get(`${o.tenant}/${o.args.run_id}`);
    must(p?.graph && !p.final && !p.replays, "no run that is under way");
    must(p.user === o.user_id || o.key.role === "operator", "no such run of this user");
    must(o.context.plan_id === undefined, "a patch that belongs to a plan");
    must(!this.failed(p), "a node has failed for good");
    const values = new Map(p.steps.map((s) => [s.id, { runs: s.status === "running", begun: s.begun || s.status !== "pending", ended: FINAL.includes(s.status) }]));
    const t = this.state.directories.at(-1).tenants.get(o.tenant);
    const { graph, fact } = patched(p.graph, o.args.patch, values, o.released ? o.facts.patch?.current : o.context.node_id, (name) => this.skill(t, name));
    must(jcs(fact) === jcs(o.facts.patch), "facts.patch is not what the patch comes to");
    Object.assign(p, { graph, revision: p.revision + 1, digest: o.d.intent_id });
    for (const [i, n] of graph.nodes.entries()) {
      if (i < p.steps.length) p.steps[i].node = n;
      else p.steps.push(this.step(o, n, i + 1, p.revision));
    }
  }

  // replay repeats a run that has ended, from a node on.
  replay(o) {
    const { run_id, from_node, mode, repeat_effects = false } = o.args;
    const of = this.state.plans.plans.get(`${o.tenant}/${run_id}`);
    must(of?.graph && of.final && !of.replays, "no run that has ended and is no replay");
    must(of.user === o.user_id || this.state.given(o, "runs:replay:any"), "no such run of this user");
    must(!repeat_effects || o.released, "effects are repeated without an approval");
    must(of.steps.some((s) => s.id === from_node), "no such node");
    const p = this.open(o, of.graph);
    Object.assign(p, { replays: of, mode, effects_again: repeat_effects });
    if (!repeat_effects) for (const s of p.steps) Object.assign(s, { agent: undefined, runs: undefined, skills: s.node.type === "agent" ? [] : s.skills }); // agents say what they have said
    const behind = new Set([from_node]);
    for (const id of behind) for (const e of of.graph.edges) if (e.from === id) behind.add(e.to);
    for (const [i, was] of of.steps.entries()) {
      const stays = ["done", "skipped"].includes(was.status) || (was.status === "failed" && this.tolerates(of, was));
      const known = was.status !== "done" || o.replay?.outputs?.[was.id] !== undefined || o.replay === undefined;
      if (was.status === "done" && known) p.steps[i].kept = was.intent?.id ?? was.said;
      if (stays && known && !behind.has(was.id)) p.steps[i].status = was.status;
    }
  }

  // moves: workflow keys move runs, managers other plans.
  moves(o, p) {
    const { role } = o.key;
    must((p.graph !== undefined) === (role === "workflow") || !["manager", "workflow"].includes(role), "another role moves the plan");
  }

  tolerates(p, s) {
    return p.graph.edges.some((e) => e.from === s.id && e.condition);
  }

  failed(p) {
    return p.steps.some((s) => s.status === "failed" && !this.tolerates(p, s));
  }

  over(p) {
    return p.steps.every((s) => FINAL.includes(s.status)) && !this.failed(p);
  }

  // comes: what led to a node lets it begin, or has it skipped.
  comes(o, p, s, begins) {
    must(!this.failed(p), "a node has failed for good");
    const into = p.graph.edges.filter((e) => e.to === s.id);
    const { edges = [] } = o.facts;
    must(edges.length === into.length, "decided by other edges than lead to the node");
    for (const [i, e] of into.entries()) {
      const { status } = p.steps.find((x) => x.id === e.from);
      must(FINAL.includes(status), "a node before it has not ended");
      must(edges[i].from === e.from, "decided by other edges than lead to the node");
      if (status === "skipped" || (status === "failed" && !e.condition)) must(!edges[i].holds, "an edge holds that leaves a node which is not done");
      else must(e.condition || edges[i].holds, "an edge without a condition does not hold");
    }
    const runs = into.length === 0 ? !s.node.cut_off : edges.some((e) => e.holds);
    must(runs === begins, "what led to the node says otherwise");
  }

  begin(o, p, s, deadline) {
    must(s.retryAt === undefined || o.now >= s.retryAt, "a node that is tried again too early");
    must(!s.node.timeout_sec || deadline <= o.now + s.node.timeout_sec * 1000 + 5000, "a deadline beyond the node's");
    this.comes(o, p, s, true);
    s.idle = p.replays && !p.effects_again && s.node.type !== "python" && !(s.node.type === "function" && this.skill(this.state.directories.at(-1).tenants.get(o.tenant), s.node.fn)?.effect === "pure");
  }

  // types of the intents of a node's task.
  types(s) {
    return s.runs?.types ?? [TYPES[s.node.type], "step.finish"];
  }

  skip(o) {
    const p = this.state.plans.driven(o);
    const s = p.steps.find((x) => x.step === o.args.step);
    must(p.status === "executing" && s?.status === "pending", "no pending node");
    this.comes(o, p, s, false);
    s.status = "skipped";
  }

  // node of the run of which a task has signed the intent: one for an executor, or a question to people.
  node(o, p) {
    if (!p?.graph || o.key.role !== "task" || (o.d.executor === "router" && o.type !== "approval.ask")) return undefined;
    const s = p.steps.find((x) => x.step === o.context.step);
    return s?.agent ? undefined : s;
  }

  // signed: an attempt of a node is one intent, and a replay does nothing that acts.
  signed(o, p) {
    if (o.d.executor !== "router" && p?.replays && !p.effects_again) must(o.d.effect === "pure", "a replay that acts");
    const s = this.node(o, p);
    if (!s) return false;
    must((o.context.occurrence ?? 0) === s.attempts, "an intent of another attempt");
    must(!s.intent || s.intent.status === "undelivered", "the attempt has its intent");
    return true;
  }

  note(o, p, status) {
    const s = this.node(o, p);
    if (s) s.intent = { id: o.d.intent_id, once: o.d.effect === "once", status };
  }

  ended(o, p, out) {
    const s = this.node(o, p);
    if (s?.intent?.id !== o.d.intent_id) return;
    const nothing = out.status === "failed" && (out.code === "DISPATCH_UNAVAILABLE" || out.retryable);
    const never = o.d.verdict === "hold" && !o.released;
    s.intent.rejected = out.code === "APPROVAL_REJECTED";
    s.intent.status = nothing || never ? "undelivered" : out.status;
  }

  // resolved: an operator says what became of the intent of a node.
  resolved(o, p, status) {
    const s = this.node(o, p);
    if (s?.intent?.id === o.d.intent_id) s.intent.status = status === "failed" ? "undelivered" : status;
  }

  // finishable: a node ends as its intent has.
  finishable(o, p, s) {
    const { status, intent } = o.args;
    must(status !== "insufficient", "a node is done, failed or held");
    const kept = p.replays && !p.effects_again && !s.intent;
    if (kept && status === "done") return must(intent === s.kept || (s.kept === undefined && p.mode === "shadow"), "done with what is not kept");
    if (status === "done" && s.agent) return must((o.args.reply ?? o.args.reply_bytes) !== undefined, "an agent's node without a reply");
    if (status === "done") must(intent !== undefined && s.intent?.id === intent && s.intent.status === "done", "done without an intent that is");
    if (status === "failed" && !s.agent) {
      must(s.intent?.status !== "done", "failed with an intent that is done");
      must(s.intent?.status !== "open" || o.key.role !== "task", "failed with an intent that is being carried out");
    }
  }

  // finish is the effect of step.finish on a node.
  finish(o, p, s) {
    if (o.args.status === "done") {
      s.status = "done";
      if (s.agent) s.said = o.d.intent_id;
      return;
    }
    this.fails(p, s, o.now);
  }

  // fails is a failed attempt of a node: another follows where its definition says so, unless it may have acted.
  fails(p, s, now) {
    s.attempts++;
    const mayHave = s.intent ? s.intent.rejected || (s.intent.once && s.intent.status !== "undelivered") : s.agent && p.noted.some((e) => e.step === s.step && e.once && e.status !== "undelivered");
    const acted = s.idle || mayHave; // of a replay, what is not carried out comes to the same again
    const again = s.node.retry && s.attempts <= s.node.retry.max && !acted;
    s.status = again ? "pending" : "failed";
    if (!again) return;
    s.intent = undefined;
    s.retryAt = now + (s.node.retry.backoff_sec ?? 0) * 1000;
  }
}
