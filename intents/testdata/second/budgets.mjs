// Budgets: what plans, users and tenants use of models, and when no task may begin.

import { must } from "./bundle.mjs";
import { limitsOf } from "./agents.mjs";

const DAY = 86400000;
const MOST = 1e12;

const add = (a, b) => Math.min(a + b, MOST);
const dayOf = (at) => Math.floor(at / DAY);
const tokens = (usage) => usage.reduce((n, u) => add(n, add(u.input_tokens, u.output_tokens)), 0);

export class Budgets {
  constructor(state) {
    Object.assign(this, { state, day: -1, users: new Map() });
  }

  spend(p, n) {
    if (n === 0) return;
    const day = dayOf(this.state.at);
    if (day > this.day) Object.assign(this, { day, users: new Map() });
    const name = JSON.stringify([p.tenant, p.user]);
    this.users.set(name, add(this.users.get(name) ?? 0, n));
    p.used = add(p.used ?? 0, n);
  }

  // reported is use in no plan.
  reported(o) {
    this.spend({ tenant: o.tenant, user: o.user_id }, tokens(o.args.usage));
  }

  report(p, usage = []) {
    this.spend(p, tokens(usage));
  }

  // lost is a task that ended without a report.
  lost(t) {
    const { request_limit: requests, total_tokens_limit: limit } = t.limits ?? limitsOf("executor");
    const made = Math.min(this.replies(t.plan, t) - t.replies + 1, requests);
    this.spend(t.plan, Math.floor((made * limit) / requests));
  }

  // replies is the highest number of a reply with calls in the place of a task.
  replies(p, { step, revision, ask }) {
    const here = (p.calls ?? []).filter((c) => c.step === step.step && (c.revision ?? 0) === revision && c.ask === ask);
    return Math.max(0, ...here.map((c) => Number.parseInt(c.call, 10)));
  }

  // affordable: nothing that the decision saw is spent, and it saw what the records give.
  affordable(o, p) {
    const budgets = this.state.directories.at(-1).tenants.get(o.tenant).data.get("budgets");
    if (!budgets || Object.keys(budgets).length === 0) return;
    const saw = o.facts.budget;
    must(saw, "decided without what was used");
    const today = this.day === dayOf(o.now) ? [...this.users].map(([name, n]) => [...JSON.parse(name), n]) : [];
    const mine = today.filter(([tenant]) => tenant === o.tenant);
    const sum = (rows) => rows.reduce((n, row) => add(n, row[2]), 0);
    must(saw.turn === (p.used ?? 0), "decided by another sum of the plan");
    const past = this.day > dayOf(o.now);
    must(past || (saw.day <= sum(mine) && saw.user <= sum(mine.filter(([, user]) => user === o.user_id))), "decided by more than was used");
    const left = (limit, n) => limit === undefined || n < limit;
    must(left(budgets.tokens_per_turn, saw.turn) && left(budgets.tokens_per_user_day, saw.user) && left(budgets.tokens_per_day, saw.day), "a budget is spent");
  }
}
