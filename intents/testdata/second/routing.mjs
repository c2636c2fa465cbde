// Request routing of docs/spec/state.md: which agent the request of a plan goes to.

import { must } from "./bundle.mjs";

export class Routing {
  constructor(state) {
    Object.assign(this, { state, last: new Map() });
  }

  // routed are the agents that requests go to, by name, and the default's name.
  routed(tenant, layers) {
    const { agents } = this.state;
    const set = agents.effective(tenant, undefined, layers);
    const found = new Map([...set].filter(([, a]) => a.routing && agents.runnable(a)));
    must(found.size > 0, "no agent has routing");
    return { found, standard: set.nearest };
  }

  // enter opens a plan for routing, and gives the agent that its session goes on with.
  enter(o, p) {
    const { routing, agent, schedule } = o.args;
    must(agent === undefined && schedule === undefined, "routing chooses the agent of a user's request");
    p.routing = routing;
    const layer = this.routed(o.tenant);
    const last = p.session && this.last.get(this.name(p));
    if (!last || last.over || (last.final && o.now >= last.closed + routing.ttl_minutes * 60000)) return undefined;
    if (last.route === "clarify") p.before = last;
    if (p.before || !routing.bypass || !layer.found.has(last.agent)) return undefined;
    const broken = this.broken(o, last.agent);
    const goes = broken ? this.there(o, layer.standard) : last.agent;
    this.state.mayRun(o, goes);
    this.goesTo(p, broken ? "breaker" : "bypass");
    return goes;
  }

  // broken: the breaker of an agent was open, as the router says.
  broken(o, agent) {
    return (o.facts.open_agents ?? []).includes(agent);
  }

  // there is the default, whose breaker is not open.
  there(o, standard) {
    must(standard !== undefined && !this.broken(o, standard), "no agent is there");
    return standard;
  }

  name(p) {
    return `${p.tenant}/${p.user}/${p.session}`;
  }

  goesTo(p, decision) {
    p.route = decision;
    if (p.session && decision !== "breaker") this.last.set(this.name(p), p);
  }

  left(p) {
    if (this.last.get(this.name(p)) === p) this.last.delete(this.name(p));
  }

  // close: a session that was closed goes on no more.
  close(o) {
    const last = this.last.get(`${o.tenant}/${o.user_id}/${o.context.session_id}`);
    if (last) last.over = true;
  }

  decide(o, { found, standard }, said, clarify) {
    const { confidence = 0, ambiguous = false } = said;
    const a = found.get(said.agent);
    if (!a) return [this.there(o, standard), "unknown"];
    if (said.agent === standard) return [this.there(o, standard), "direct"];
    if (this.broken(o, said.agent)) return [this.there(o, standard), "breaker"];
    const { confidence_threshold: threshold, clarification_required: asks } = a.routing;
    if (confidence >= threshold && threshold < 1 && !ambiguous) return [said.agent, "confident"];
    return asks && clarify ? [undefined, "clarify"] : [this.there(o, standard), "default"];
  }

  // route judges the route of a plan, and gives the agent; undefined: the user is asked.
  route(o, p) {
    const { route, revision, drop = [], steps } = o.args;
    const answer = o.args.answer ?? o.args.answer_bytes;
    must(p.routing && route, "a plan that was opened for routing is routed, and no other");
    must(p.status === "planning" && revision === 1 && drop.length === 0, "a plan is routed once");
    const layers = this.state.agents.then(o.tenant, p.registry);
    const [agent, decision] = this.decide(o, this.routed(o.tenant, layers), route, p.routing.clarify && !p.before);
    must(route.decision === decision, `what the classifier says makes it ${decision}`);
    const [only, ...more] = steps;
    if (agent) must(only && more.length === 0 && only.step === 1 && only.agent === agent && only.skills.length === 0 && answer === undefined, "not one step of the agent");
    else must(!only && answer !== undefined, "asks the user nothing, or has steps");
    this.goesTo(p, decision);
    Object.assign(p, { status: "executing", digest: o.d.intent_id, answer });
    if (agent) this.state.plans.runBy(p, agent, this.state.agents.runs(o.tenant, agent, layers));
    else p.revision = revision;
    this.state.plans.budgets.report(p, o.args.usage);
  }
}
