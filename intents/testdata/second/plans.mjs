// Plans and tasks: the moves of docs/spec/journal.md.

import { approvals } from "./agents.mjs";
import { jcs, kidOf, must, signed } from "./bundle.mjs";
import { Budgets } from "./budgets.mjs";
import { Clients } from "./client.mjs";
import { admit, base64url } from "./keys.mjs";
import { Runs } from "./runs.mjs";
import { OF_AGENTS } from "./schedules.mjs";

const MAX_STEPS = 10;
const MAX_LIVE = 4;
const MAX_LIVE_NODES = 8;
const MAX_REPLANS = 3;
const HOUR = 3600000;
const LEEWAY = 5000;
const KEPT = 48 * HOUR;
const REQUEST_KEPT = 24 * HOUR;
const RETRY_KEPT = 600000;

export class Plans {
  constructor(state) {
    Object.assign(this, { state, plans: new Map(), tasks: new Map(), byKey: new Map(), unshown: new Set(), budgets: new Budgets(state), clients: new Clients(state), runs: new Runs(state) });
  }

  // key of a task.
  key(kid) {
    return this.byKey.get(kid)?.key;
  }

  of(o) {
    return this.plans.get(`${o.tenant}/${o.context.plan_id}`);
  }

  // own is a plan of the intent's actor; an operator may act on any of the tenant.
  own(o) {
    const { plan_id } = o.args;
    const p = this.plans.get(`${o.tenant}/${plan_id}`);
    must(p, "no such plan");
    must(p.user === o.user_id || o.key.role === "operator", "no such plan of this user");
    must((o.context.plan_id ?? plan_id) === plan_id, "context names another plan");
    return p;
  }

  // driven is a plan of the actor that its last driver moves.
  driven(o) {
    const p = this.own(o);
    this.runs.moves(o, p);
    must(!p.final, `the plan is ${p.status}`);
    must(p.epoch > 0 && o.args.epoch === p.epoch, "epoch is not the plan's");
    return p;
  }

  apply(o) {
    const moves = {
      "plan.open": this.open, "plan.claim": this.claim, plan: this.revise, step: this.step, "agent.ask": this.ask,
      "step.finish": this.finish, "plan.close": this.close, cancel: this.cancel, "agent.get": this.agent,
      "workflow.start": (x) => this.runs.start(x), "run.replay": (x) => this.runs.replay(x), "node.skip": (x) => this.runs.skip(x), "graph.patch": (x) => this.runs.patch(x),
    };
    if (Object.hasOwn(moves, o.type)) moves[o.type].call(this, o);
  }

  open(o) {
    const name = `${o.tenant}/${o.args.plan_id}`;
    must((o.context.plan_id ?? o.args.plan_id) === o.args.plan_id, "context names another plan");
    must(!this.plans.has(name), "a plan with this id exists");
    const { session_id: session = "", turn_id: turn = "" } = o.context;
    const request = o.args.request?.digest;
    this.clients.opens(o);
    const client = o.args.api_key !== undefined;
    const takes = !o.released && !client && o.args.agent !== "dreaming-agent";
    this.mayTurn(o, session, o.args.request, takes);
    const scheduled = this.state.schedules.fire(o);
    this.plans.set(name, {
      request, opening: o.position, opened: this.state.at, turning: session !== "" && takes,
      id: o.args.plan_id, tenant: o.tenant, user: o.user_id, session, turn, status: "pending", final: false, epoch: 0, revision: 0,
      digest: "", steps: [], replans: 0, exhausted: false, effects: [], noted: [], pending: 0,
    });
    const p = this.plans.get(name);
    this.state.sources.inherit(p, scheduled);
    p.registry = this.state.agents.now(o.tenant);
    const agent = o.args.routing ? this.state.routing.enter(o, p) : o.args.agent;
    if (!agent) return;
    this.runBy(p, agent, client ? this.clients.runs(o) : this.state.agents.runs(o.tenant, agent));
    p.digest = o.d.intent_id;
  }

  // runBy makes a plan that of an agent, which asks nobody if routing has chosen it.
  runBy(p, agent, runs) {
    if (p.routing) Object.assign(runs, { asks: new Map(), types: runs.types.filter((t) => t !== "agent.ask") });
    const steps = [{ step: 1, skills: runs.skills, inputs: [], after: [], status: "pending", revision: 0, results: [] }];
    Object.assign(p, { agent, runs, steps });
  }

  agent(o) {
    const p = this.of(o);
    must(p && !p.final, "no open plan");
    const { step } = o.context;
    must(p.runs?.apiKey === undefined, "no agent runs the plan of a client");
    must(p.runs || !step || p.steps.find((s) => s.step === step)?.runs, "no agent runs the step");
  }

  // mayTurn: a request opens one plan, and a session has one open turn.
  mayTurn(o, session, request, takes) {
    const own = [...this.plans.values()].filter((p) => p.tenant === o.tenant && p.user === o.user_id);
    const before = request && own.findLast((p) => p.request === request.digest);
    const stands = { key: (p) => o.now < p.opened + REQUEST_KEPT, retry: (p) => o.now < p.closed + RETRY_KEPT, body: () => false };
    must(!before || (before.final && (before.epoch === 0 || !stands[request.kind](before))), "the request has opened a plan before");
    must(!takes || !own.some((p) => p.turning && p.session === session), "the session has an open turn");
  }

  claim(o) {
    const p = this.own(o);
    this.runs.moves(o, p);
    must(!p.final, `the plan is ${p.status}`);
    must(o.args.epoch === p.epoch + 1, "epoch is not the plan's plus one");
    p.epoch = o.args.epoch;
    if (p.status === "pending") p.status = p.agent || p.graph ? "executing" : "planning";
    this.endTasks(p, "a newer plan.claim");
    for (const s of p.steps) {
      const mine = p.effects.filter((e) => e.step === s.step);
      if (s.status === "held" && !mine.some((e) => e.status === "held")) s.status = "pending";
      if (s.status === "running") s.status = "pending";
    }
  }

  replan(p) {
    if (p.agent || p.graph || p.status === "replanning") return;
    p.status = "replanning";
    if (p.replans >= MAX_REPLANS) p.exhausted = true;
    else p.replans++;
  }

  // stays: a revision leaves what is done and what has begun and may end well.
  stays(s) {
    return s.status === "done" || s.status === "held" || (s.status === "pending" && s.begun);
  }

  // ready: all that a step waits for is done.
  ready(p, s) {
    const before = [...s.inputs, ...s.after];
    const at = p.steps.indexOf(s);
    if (at > 0 && s.after.length === 0 && !s.parallel) before.push(p.steps[at - 1].step);
    return s.status === "pending" && before.every((n) => p.steps.some((x) => x.step === n && x.status === "done"));
  }

  live(p) {
    return [...this.tasks.values()].filter((t) => t.plan === p && !t.ended).length;
  }

  revise(o) {
    const p = this.driven(o);
    must(!p.agent && !p.graph, "a plan of an agent, or a run, is planned by nobody");
    must((o.args.route !== undefined) === (o.key.role === "manager"), "a planner signs plans, a manager those that are routed");
    if (p.routing || o.args.route) return this.state.routing.route(o, p);
    must(!p.exhausted && (p.status === "planning" || p.status === "replanning"), `the plan is ${p.status}, or was replanned too often`);
    must(o.args.revision === p.revision + 1, "revision is not the plan's plus one");
    const { steps } = o.args;
    const answer = o.args.answer ?? o.args.answer_bytes;
    must(steps.length > 0 ? answer === undefined : o.args.revision === 1 && answer !== undefined, "steps, or the answer of a first revision");
    must(this.live(p) === 0, "a task of the plan lives");
    const { drop = [] } = o.args;
    must(drop.every((n) => p.steps.some((s) => s.step === n && s.status !== "done" && this.stays(s))), "drops a step that does not wait");
    const staying = p.steps.filter((s) => this.stays(s) && !drop.includes(s.step));
    must(staying.length + steps.length <= MAX_STEPS, "too many steps");
    const last = p.steps.at(-1)?.step ?? 0;
    const known = new Set(staying.map((s) => s.step));
    const added = steps.map((s, i) => {
      must(s.step === last + i + 1, "step numbers do not run on");
      const inputs = s.input_from_step ? [s.input_from_step] : s.inputs ?? [];
      must(inputs.every((n) => known.has(n)), "input from no earlier step");
      must((s.after ?? []).every((n) => known.has(n)), "it waits for no earlier step");
      known.add(s.step);
      const { agent } = s;
      must(!agent || s.skills.length === 0, "a step of an agent has no skills of its own");
      const runs = agent && this.state.agents.runs(o.tenant, agent, this.state.agents.then(o.tenant, p.registry ?? []));
      if (runs) runs.types = [...runs.types.filter((t) => t !== "agent.ask"), "read_memory", "write_memory"];
      return { agent, runs, step: s.step, id: s.id, skills: runs?.skills ?? s.skills ?? [], inputs, after: s.after ?? [], parallel: s.parallel, status: "pending", revision: o.args.revision, results: [] };
    });
    Object.assign(p, { revision: o.args.revision, digest: o.d.intent_id, status: "executing", answer });
    p.steps = [...staying, ...added];
    this.budgets.report(p, o.args.usage);
  }

  step(o) {
    const p = this.driven(o);
    this.budgets.affordable(o, p);
    const a = o.args;
    const { key, deadline } = this.introduced(o);
    must(p.status === "executing", `the plan is ${p.status}`);
    must(a.plan_digest === p.digest, "not the digest of the plan's current revision");
    const s = p.steps.find((x) => x.step === a.step);
    must(s, "not a step of the plan");
    const runs = p.runs ?? s.runs;
    must(!runs || deadline <= o.now + runs.seconds * 1000 + LEEWAY, "a deadline beyond the agent's time limit");
    must(s.status === "pending", `the step is ${s.status}`);
    if (p.graph) this.runs.begin(o, p, s, deadline);
    else must(this.ready(p, s), "one that the step waits for is not done");
    must(this.live(p) < (p.graph ? MAX_LIVE_NODES : MAX_LIVE), "no more tasks of a plan live at once");
    Object.assign(s, { status: "running", begun: true });
    this.begin(o, { agent: p.agent ?? s.agent, node: p.graph && s.id, types: p.graph ? this.runs.types(s) : runs?.types, holds: runs?.holds, apiKey: runs?.apiKey, skills: s.skills, plan: p, step: s, revision: s.revision, deadline, key, limits: runs?.limits });
  }

  // introduced is the key that an intent brings, and until when it signs.
  introduced(o) {
    const { args, now } = o;
    const key = admit({ ...args.jwk });
    must(key, "a key that is not admitted");
    must(!this.state.keys.has(key.kid) && !this.byKey.has(key.kid), "a key that was used before");
    const { pop, ...proved } = args;
    const [header, signature] = pop.split("..");
    const input = `${header}.${Buffer.from(jcs(proved)).toString("base64url")}`;
    must(o.erased || kidOf(header, "writ-pop+jws") === key.kid && signed(key.x, input, base64url(signature)), "no proof that the key is possessed");
    const deadline = Date.parse(args.deadline);
    must(deadline > now && deadline <= now + HOUR + LEEWAY, "a deadline that is not within the next hour");
    return { key, deadline };
  }

  begin(o, t) {
    const id = o.args.task_id;
    must(!this.tasks.has(`${o.tenant}/${id}`), "a task with this id exists");
    const task = { ...t, id, tenant: o.tenant, user: o.user_id, key: { ...t.key, role: "task" } };
    task.replies = this.budgets.replies(task.plan, task);
    this.tasks.set(`${o.tenant}/${id}`, task);
    this.byKey.set(t.key.kid, task);
  }

  // asked are the tasks that calls of a task's step have asked for, in order.
  asked(t) {
    return [...this.tasks.values()].filter((c) => c.plan === t.plan && c.ask && c.step === t.step && c.revision === t.revision);
  }

  // ask opens a task of another agent for a call of the task of an agent's plan.
  ask(o) {
    const a = o.args;
    const { call } = o.context;
    const t = this.tasks.get(`${o.tenant}/${a.parent}`);
    must(t && t.user === o.user_id && t.plan.id === a.plan_id, "no such task of this user and plan");
    must(a.parent === o.context.task_id, "not the key's own task");
    must(!t.ended && o.now <= t.deadline, "the task that asks has ended");
    const agent = t.ask ? undefined : t.plan.runs?.asks.get(a.agent);
    must(agent, "not an agent that it may ask");
    this.budgets.affordable(o, t.plan);
    const { key, deadline } = this.introduced(o);
    must(a.epoch === t.plan.epoch, "epoch is not the plan's");
    must(call !== undefined, "an ask that does not say which call it is");
    const asked = this.asked(t);
    const last = asked.findLast((c) => c.ask === call);
    must(!last || (last.ended && (last.said === undefined || last.said === "held")), "the call has asked before");
    must(deadline <= t.deadline, "a deadline after that of the task that asks");
    must(deadline <= o.now + Math.min(t.plan.runs.askFor, agent.seconds) * 1000 + LEEWAY, "a deadline beyond the limits of the agents");
    must(asked.filter((c) => !c.ended && o.now <= c.deadline).length < t.plan.runs.fanOut, "no more asked tasks live at once");
    must(last || new Set(asked.map((c) => c.ask)).size < t.plan.runs.requests, "no more calls of the step ask");
    const types = agent.types.filter((type) => type !== "agent.ask");
    this.begin(o, { agent: a.agent, types, holds: agent.holds, skills: agent.skills, plan: t.plan, step: t.step, revision: t.revision, deadline, key, ask: call, parent: t, limits: agent.limits });
    (t.plan.calls ??= []).push(o.context);
  }

  finish(o) {
    const { task_id, status, memory_key } = o.args;
    const t = this.tasks.get(`${o.tenant}/${task_id}`);
    must(t && t.user === o.user_id, "no such task of this user");
    this.runs.moves(o, t.plan);
    must(!t.ended, "the task has ended");
    const own = o.context.task_id === task_id;
    const ofIts = status === "unavailable" && t.parent?.id === o.context.task_id;
    must(o.key.role !== "task" || own || ofIts, "another task, and none that it has asked for and has no answer of");
    must(status !== "unavailable" || (o.key.role === "task" && ofIts), "unavailable is said by the task that asked");
    must(o.key.role === "task" || status === "failed", "a driver may only say failed");
    const replies = (o.args.reply ?? o.args.reply_bytes) !== undefined;
    if (t.plan.graph) this.runs.finishable(o, t.plan, t.step);
    else must(status !== "done" || replies === (t.plan.agent !== undefined), "done with a reply where none belongs, or without");
    must(status !== "done" || t.plan.agent || t.plan.graph || t.step.results.includes(memory_key) || this.unshown.has(`${o.tenant}/${task_id}`), "done names no result of a write_memory of the step");
    const held = t.held || this.asked(t).some((c) => c.parent === t && c.held);
    const waits = t.plan.noted.some((e) => e.step === t.step.step && e.status === "held" && (!t.ask || e.ask === t.ask));
    must(status !== "held" || waits || held, "no intent of the step waits, nor was one of the task held");
    const complete = o.args.workflow_complete === true;
    must(!complete || (t.plan.runs?.remote && !t.ask && status === "done"), "a workflow is complete that no remote agent's plan has");
    this.endTask(t, "step.finish", status, o.args.usage);
    if (complete) t.plan.over = true;
    if (t.ask) return; // what it says is for the task that asked
    if (status === "done" && t.plan.agent) t.plan.answer = o.args.reply;
    if (t.plan.graph && status !== "held") return this.runs.finish(o, t.plan, t.step);
    t.step.status = status === "held" && !waits ? "pending" : status;
    if (t.step.status === "held") t.plan.turning = false;
    if (status === "held") return;
    if (status === "done") t.plan.effects = t.plan.effects.filter((e) => e.step !== t.step.step || e.revision !== t.revision);
    else if (o.args.cause === "needs_plan" && status === "insufficient" && t.plan.revision === 1 && t.plan.status === "executing" && !t.plan.agent) t.plan.status = "replanning";
    else this.replan(t.plan);
  }

  close(o) {
    const p = this.driven(o);
    must(o.args.status !== "complete" || !p.graph || this.runs.over(p), "a run is complete when each node has ended well");
    const all = p.graph || p.status === "executing" && p.steps.every((s) => s.status === "done");
    must(o.args.status !== "complete" || all, "a plan is complete when all its steps are done");
    must(o.args.status !== "needs_input" || !(p.graph || p.agent), "only a planner's plan asks its user");
    const told = (p.steps.length > 0 && !p.agent) || typeof p.answer !== "string" || typeof o.args.response !== "string" || o.args.response === p.answer;
    must(o.args.status !== "complete" || told, "a plan without steps is closed with its answer");
    this.budgets.report(p, o.args.usage);
    this.end(p, o.args.status);
  }

  cancel(o) {
    const p = this.own(o);
    this.runs.moves(o, p);
    must(!p.final, `the plan is ${p.status}`);
    this.end(p, "failed");
  }

  end(p, status) {
    this.endTasks(p, `the plan is ${status}`);
    for (const s of p.steps) if (s.status === "running") s.status = "interrupted";
    Object.assign(p, { status, final: true, turning: false, closed: this.state.at, runs: undefined });
  }

  // leave takes out what was closed long before the latest record and waits for no intent.
  leave(latest) {
    for (const [name, p] of this.plans) {
      if (!p.final || p.pending > 0 || latest < p.closed + KEPT) continue;
      this.plans.delete(name);
      this.state.routing.left(p);
      for (const [id, t] of this.tasks) {
        if (t.plan !== p) continue;
        this.tasks.delete(id);
        this.byKey.delete(t.key.kid);
      }
    }
  }

  // timed: the ids that an intent brings carry their time.
  timed(o) {
    const kind = { "plan.open": "plan", step: "task", "agent.ask": "task", "workflow.start": "plan" }[o.type];
    if (!kind) return;
    const id = o.type === "workflow.start" ? this.runs.id(o) : o.args[`${kind}_id`];
    const found = new RegExp(`^${kind}_([0-9a-z]{11}).`).exec(id);
    must(found, "an id that does not carry its time");
    const at = Number.parseInt(found[1], 36);
    must(o.now - HOUR <= at && at <= o.now + LEEWAY, "an id that was not made within the hour before");
  }

  endTasks(p, why) {
    for (const t of this.tasks.values()) if (t.plan === p) this.endTask(t, why);
  }

  // endTask ends a task and those that it has asked for. Of an asked one that something else
  // ends after its deadline nothing will be heard.
  endTask(t, why, said, usage = []) {
    if (t.ended) return;
    t.ended = why;
    t.said = said ?? (this.state.at > t.deadline ? "unavailable" : undefined);
    if (t.apiKey !== undefined) return; // the client's model is no concern of ours, and it asks nobody
    if (usage.length > 0) this.budgets.report(t.plan, usage);
    else this.budgets.lost(t);
    for (const c of this.tasks.values()) if (c.parent === t) this.endTask(c, "the task that asked has ended");
  }

  endOf(tenant, user) {
    for (const p of this.plans.values()) if (p.tenant === tenant && p.user === user && !p.final) this.end(p, "failed");
  }

  // scope: a task signs for its own step alone, while it lives.
  scope(o) {
    const t = this.byKey.get(o.kid);
    const c = o.context;
    must(!t.ended, `its task has ended: ${t.ended}`);
    must(o.now <= t.deadline, "its task is past its deadline");
    must(o.tenant === t.tenant && o.user_id === t.user, "its task is another user's");
    must(c.task_id === t.id && c.plan_id === t.plan.id && (c.revision ?? 0) === t.revision && c.step === t.step.step, "its context is not its step's");
    must(c.ask === t.ask, "its context names another call that asked for it");
    must((c.session_id ?? "") === t.plan.session && (c.turn_id ?? "") === t.plan.turn, "its context is not its plan's session and turn");
    const f = o.facts.task;
    must(f && f.task_id === t.id && f.plan_id === t.plan.id && f.revision === t.revision && f.step === t.step.step, "decided with another task");
    must(jcs(f.skills ?? []) === jcs(t.skills), "decided with other skills than the task's");
    must(f.agent === t.agent, "decided with another agent");
    must(t.agent || !OF_AGENTS.includes(o.type), "a planner's step has no tool for this");
    const called = o.facts.skill?.name; // a node may name it by its tool alone
    if (t.node && !t.agent) must(t.types.includes(o.type) && (!called || t.skills.some((s) => called === s || called.endsWith(`.${s}`))), "not the intent that the node is");
    if (!t.agent) return;
    if (o.type === "skill.load") must((o.args.skills ?? []).every((name) => t.skills.includes(name)), "loads a skill that is not one of the task's");
    this.clients.scope(o, t);
    must(t.types.includes(o.type), "its agent has no tool for this");
    must(!o.facts.skill || t.skills.includes(o.facts.skill.name), "a skill that is not one of the task's");
    if (o.erased) return;
    const held = (o.d.hold?.rules ?? []).map(jcs);
    must(approvals(t.agent, t.holds, o).every((rule) => held.includes(jcs(rule)) || this.state.approvals.satisfied(rule, o)), "its agent's file holds it, and it did not wait for people");
  }

  // dispatched and held intents of a plan: it does not leave without them, and later
  // drivers are told of them.
  dispatched(o) {
    this.await(o);
    this.runs.note(o, this.of(o), "open");
    if (o.context.plan_id && o.d.effect === "once") this.note(o, "open");
  }

  hold(o) {
    this.await(o);
    this.runs.note(o, this.of(o), "held");
    this.note(o, "held");
    if (o.key.role === "task") this.byKey.get(o.kid).held = true;
  }

  // fresh: nothing that acts once is accepted again in its plan while it may have acted.
  fresh(o) {
    if (this.runs.signed(o, this.of(o)) || this.clients.numbered(o, this.of(o))) return;
    if (o.d.effect !== "once" || o.erased) return;
    this.occurs(o, jcs(o.args));
  }

  // occurs: of equal intents of one step, occurrence n has n before it. Those of steps that
  // were replaced are not made again.
  occurs(o, args) {
    const { step, revision = 0, occurrence = 0, ask } = o.context;
    const all = (this.of(o)?.noted ?? []).filter((e) => e.once && e.type === o.type && e.args === args);
    const stands = (e) => !e.step || this.of(o).steps.some((s) => s.step === e.step && s.revision === e.revision);
    must(all.every((e) => stands(e) || e.status === "undelivered"), "an equal intent of a step that was replaced");
    const equal = all.filter((e) => e.step === step && e.revision === revision && e.ask === ask);
    must(!equal.some((e) => e.status === "indeterminate"), "nobody knows how an equal intent ended");
    must(!equal.some((e) => e.occurrence === occurrence && e.status !== "undelivered"), "an equal intent that acts once was accepted before");
    const before = new Set(equal.map((e) => e.occurrence).filter((n) => n < occurrence));
    const erased = (this.of(o)?.noted ?? []).some((e) => e.intent.erased && e.step === step && e.revision === revision && e.ask === ask);
    if (this.of(o)) must(before.size === occurrence || erased, "an occurrence without those before it");
  }

  // unsettled: nobody knows what became of an earlier call of the skill in the step. It is
  // indeterminate, or is being carried out and its task has ended.
  unsettled(o) {
    const { step, revision = 0, task_id } = o.context;
    if (o.d.effect !== "once" || !o.facts.skill || !step) return false;
    const late = (e) => {
      const t = this.tasks.get(`${o.tenant}/${e.task}`);
      return (e.status === "open" || (e.status === "held" && e.intent.released)) && e.task !== task_id && t?.ended !== undefined;
    };
    const same = (e) => e.once && e.skill === o.facts.skill.name && e.step === step && e.revision === revision;
    return (this.of(o)?.noted ?? []).some((e) => same(e) && (e.status === "indeterminate" || late(e)));
  }

  await(o) {
    o.plan = this.of(o);
    if (!o.plan) return;
    o.plan.pending++;
    this.clients.take(o, o.plan);
    if (o.context.call) (o.plan.calls ??= []).push(o.context);
  }

  note(o, status) {
    const { step, revision = 0, occurrence = 0, ask } = o.context;
    o.noted = { intent: o, task: o.context.task_id, skill: o.facts.skill?.name, step, revision, occurrence, ask, type: o.type, args: o.erased ? undefined : jcs(o.args), once: o.d.effect === "once", status };
    this.of(o)?.effects.push(o.noted);
    this.of(o)?.noted.push(o.noted);
  }

  // ended is what the outcome of an intent does to its plan.
  ended(o, out, result) {
    if (o.plan && out.status !== "indeterminate") o.plan.pending--;
    const p = this.of(o);
    if (!p) return;
    const s = p.steps.find((x) => x.step === o.context.step);
    this.clients.free(o, p, out);
    this.runs.ended(o, p, out);
    if (o.noted) {
      const wasHeld = o.noted.status === "held" && s?.status === "held" && !p.final;
      const nothing = out.status === "failed" && (out.code === "DISPATCH_UNAVAILABLE" || out.retryable);
      const never = o.d.verdict === "hold" && !o.released && out.code !== "APPROVAL_REJECTED";
      o.noted.status = nothing || never ? "undelivered" : out.status;
      const waits = p.noted.some((e) => e.step === s?.step && e.status === "held");
      if (wasHeld && !waits) s.status = "pending";
    }
    if (o.type !== "write_memory" || !s) return;
    if (out.status === "done" && s.revision === o.context.revision) s.results.push(result?.key);
    const t = this.tasks.get(`${o.tenant}/${o.context.task_id}`);
    if (out.code === "CONTRACT_VIOLATION" && t && !t.ended && s.status === "running") {
      this.endTask(t, "contract violation", "failed");
      if (t.ask) return; // the task that asked goes on
      if (p.graph) return this.runs.fails(p, s, this.state.at);
      s.status = "failed";
      this.replan(p);
    }
  }

  resolved(o, status) {
    if (o.plan) o.plan.pending--;
    this.runs.resolved(o, this.of(o), status);
    if (o.noted) o.noted.status = status === "failed" ? "undelivered" : "done";
  }
}
