// Breakers: which calls go to a skill server that fails.

import { must } from "./bundle.mjs";

export class Breakers {
  constructor(state) {
    Object.assign(this, { state, terms: { failures: 5, reset_ms: 30000, probes: 3, probe_ms: 60000 }, open: new Map() });
  }

  control(terms) {
    this.terms = terms;
    if (terms.failures === 0) this.open.clear();
  }

  // name of the breaker of an intent, if there may be one in its way.
  name({ type, tenant, facts }) {
    if (type !== "skill.call" || !facts.skill) return undefined;
    return JSON.stringify([tenant, facts.skill.name.split(".")[0]]);
  }

  // at is a breaker at a time: a round that has ended without success has opened it again.
  at(name, now) {
    const b = this.open.get(name) ?? { failures: 0 };
    const end = b.began + this.terms.probe_ms;
    return b.round !== undefined && now >= end ? { failures: b.failures, opened: end } : b;
  }

  mark(name, now) {
    const b = name === undefined ? {} : this.at(name, now);
    if (b.opened === undefined) return undefined;
    const rests = b.round === undefined && now < b.opened + this.terms.reset_ms;
    return rests || (b.probes ?? 0) >= this.terms.probes ? "open" : "probe";
  }

  // sent: an intent that executors carry out has the mark that its breaker gives.
  sent(o, now, facts) {
    o.breaker = this.name(o);
    o.mark = facts.breaker;
    must(o.mark === this.mark(o.breaker, now), "the record has another mark than its breaker gives");
    if (o.mark !== "probe") return;
    const b = this.at(o.breaker, now);
    if (b.round === undefined) Object.assign(b, { round: this.state.position, began: this.state.at, probes: 0 });
    b.probes += 1;
    o.round = b.round;
    this.open.set(o.breaker, b);
  }

  ended(o, out) {
    const { state, terms } = this;
    const unsent = out.status === "failed" && ["DISPATCH_UNAVAILABLE", "CANCELLED"].includes(out.code) && !out.transport;
    must(o.mark !== "open" || unsent, "its breaker refused it, and the outcome is another one");
    if (o.breaker === undefined || !out.transport || terms.failures === 0) return;
    const b = this.at(o.breaker, state.at);
    const probed = b.opened !== undefined;
    if (probed && (b.round === undefined || b.round !== o.round)) return;
    if (!out.transport.failure) return void this.open.delete(o.breaker);
    const failures = b.failures + 1;
    this.open.set(o.breaker, probed || failures >= terms.failures ? { failures, opened: state.at } : { failures });
  }
}
