// What people may say of a held intent, and who could: docs/spec/state.md, Holds.

import { replaces } from "./agents.mjs";
import { digest, jcs, must } from "./bundle.mjs";

export const UNSETTLED = "writ.unsettled"; // the hold rule that asks nobody
const ASK = "writ.ask";

// Approvals are the edits of held intents that no intent has come of, and the rules about them.
export class Approvals {
  constructor(state) {
    Object.assign(this, { state, edits: new Map() });
  }

  may(tenants, tenant, roles, capability = "runs:approve") {
    return this.state.capabilities(tenants, tenant, roles).some((c) => this.state.covers(c, capability));
  }

  // canMeet: the people of a tenant who have a capability could meet a rule.
  canMeet(tenants, tenant, rule, held, capability) {
    const t = tenants.get(tenant);
    const needed = Math.max(rule.count ?? 1, 1);
    const people = [...t.users.values()].filter((u) => !u.disabled).map((u) => ({ user_id: u.user_id, key: "", roles: u.roles }));
    for (const [key, k] of t.keys) {
      const names = [k.user_id, ...(k.may_assert_user ? [...(rule.approvers ?? []), ...Array.from({ length: needed }, (_, i) => `anybody ${i}`)] : [])];
      people.push(...names.filter((name) => !t.users.has(name)).map((user_id) => ({ user_id, key, roles: k.max_roles })));
    }
    return this.state.counted(rule, people.filter((p) => this.may(tenants, tenant, p.roles, capability)), held, tenants) >= needed;
  }

  // question: people are asked about items that each have their own id, and it waits for them.
  question(o, tenants) {
    const { items = [], approvers } = o.args;
    must(new Set(items.map((i) => i.id)).size === items.length, "two items of one id");
    const rule = { id: ASK, reason: "an agent asks people" };
    if (approvers) rule.approvers = approvers;
    else rule.roles = this.approving(o.tenant, tenants);
    must((o.d.hold?.rules ?? []).some((r) => jcs(r) === jcs(rule)), "people are asked, and it does not wait for them");
  }

  // approving are the roles of a tenant that let people approve.
  approving(tenant, tenants) {
    return [...tenants.get(tenant).roles.keys()].filter((role) => this.may(tenants, tenant, [role])).sort();
  }

  // replaced: agents that replace a built-in one wait for a second person.
  replaced(o, tenants) {
    if (!replaces(o.facts.scopes?.agents ?? [])) return;
    const rule = { id: "writ.registry.replace", reason: "the agents replace the built-in agent general", roles: this.approving(o.tenant, tenants), four_eyes: true };
    must((o.d.hold?.rules ?? []).some((r) => jcs(r) === jcs(rule)), "it replaces a built-in agent, and it does not wait for people");
  }

  hold(o, tenants) {
    this.take(o);
    for (const rule of o.d.hold.rules.filter((r) => r.id !== UNSETTLED)) must(this.canMeet(tenants, o.tenant, rule, o), `nobody could meet ${rule.id}`);
  }

  // take makes of a held intent the one that comes of an edit.
  take(o) {
    const { plan_id, step, ask, cause } = o.context;
    const e = this.edits.get(cause);
    if (!e || jcs([e.tenant, e.place, e.type]) !== jcs([o.tenant, [plan_id, step, ask ?? ""], o.type])) return;
    this.edits.delete(cause);
    if (e.digest !== digest(jcs(o.args)) || o.now >= e.deadline) return;
    Object.assign(o, { editors: e.editors, yes: [e.editors.at(-1)], last: e.by });
    o.asked.push(...e.editors);
  }

  // about is the intent on hold that an approval names.
  about({ tenant, args }) {
    const one = this.state.held.get(args.intent_id);
    must(one && one.tenant === tenant, "approves an intent of the tenant that is not held");
    if (args.run_id !== undefined) {
      const p = this.state.plans.plans.get(`${tenant}/${args.run_id}`);
      const { context: c } = one;
      const { node_id } = args;
      must(p && c.plan_id === args.run_id, "the intent is not held in this run");
      must(c.node_id === node_id || (c.step > 0 && (String(c.step) === node_id || p.steps.find((s) => s.step === c.step)?.id === node_id)), "the intent is not held at this node");
    }
    return one;
  }

  items(held, items) {
    const asked = held.type === "approval.ask" ? (held.args.items ?? []).map((i) => i.id) : [];
    must((items ?? []).every((id) => asked.includes(id)), "says yes to what nobody asked");
  }

  // said is the result of a question to which people have said yes.
  said({ args }, approvals) {
    const all = (args.items ?? []).map((i) => i.id);
    return { approved: approvals.map((a) => ({ user_id: a.user_id, at: a.at, items: a.items ?? all })) };
  }

  edit(held, who, o) {
    const { args } = o.args;
    must(held.key.role === "task" && held.context.plan_id && held.type !== "agent.ask" && held.d.hold.rules.every((r) => !r.mask?.length), "cannot be edited");
    const plan = this.state.plans.plans.get(`${held.tenant}/${held.context.plan_id}`);
    must(!plan?.graph || plan.steps.find((x) => x.step === held.context.step)?.agent, "cannot be edited: the graph words it");
    must(jcs(args) !== jcs(held.args), "edits nothing");
    must((args.skill ?? "") === (held.args.skill ?? ""), "edits the skill");
    const then = { ...held, asked: [...held.asked, who] };
    const tenants = this.state.directories.at(-1).tenants;
    must(held.d.hold.rules.every((rule) => rule.id === UNSETTLED || this.canMeet(tenants, held.tenant, rule, then)), "nobody is left to approve what it becomes");
    const { plan_id, step, ask } = held.context;
    this.edits.set(held.d.intent_id, {
      tenant: held.tenant, place: [plan_id, step, ask ?? ""], type: held.type, digest: digest(jcs(args)), deadline: held.deadline, by: o.d.intent_id,
      editors: [...(held.editors ?? []), who],
    });
    held.edited = true;
  }

  // agents: somebody could approve each call for which their files ask that.
  agents(agents, tenant) {
    const { tenants } = this.state.directories.at(-1);
    const of = tenant === "system" ? [...tenants.keys()] : [tenant];
    for (const { roles } of agents.flatMap((a) => a.holds ?? [])) must(of.some((t) => this.canMeet(tenants, t, { roles }, { tenant: t, asked: [] })), "nobody could approve calls of an agent");
  }
}
