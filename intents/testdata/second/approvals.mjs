// What people may say of a held intent, and who could: docs/spec/state.md, Holds.

import { replaces } from "./agents.mjs";
import { digest, jcs, must } from "./bundle.mjs";

export const UNSETTLED = "writ.unsettled"; // the hold rule that asks nobody
const ASK = "writ.ask";

// Approvals are the edits of held intents that no intent has come of, and the rules about them.
export class Approvals {
  constructor(state) {
    Object.assign(this, { state, edits: new Map(), standing: new Map() });
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

  // stand makes of a yes one for later calls: the same input but for some members, for so many calls.
  stand(held, who, also, o) {
    const { args, context, d, facts } = held;
    must(held.type === "skill.call" && args.from === undefined && context.session_id, "a standing approval of what is no call in a session");
    const pin = this.state.directories.at(-1).tenants.get(held.tenant).approved.get(facts.skill.name);
    must(pin && facts.skill.kind === undefined && !destroys(pin), "a standing approval of what may destroy something");
    must(pin.digest === facts.skill.digest, "a standing approval of another pin than people were asked about");
    must(pin.trusted, "a standing approval of what shows untrusted content");
    must((facts.task?.sources ?? []).every((s) => s.trusted), "a standing approval after untrusted content");
    must(d.hold.rules.every((rule) => !rule.four_eyes && !rule.mask?.length && rule.id !== UNSETTLED), "a standing approval of what others must look at");
    must((also.free ?? []).every((name) => Object.hasOwn(args.input ?? {}, name)), "lets a member differ that is not there");
    this.standing.set(d.intent_id, {
      tenant: held.tenant, user: held.user_id, session: context.session_id, skill: facts.skill.name, digest: pin.digest, rules: d.hold.rules.map((rule) => rule.id),
      free: also.free ?? [], rest: rest(args.input, also.free), left: also.uses, until: o.now + also.within_sec * 1000, yes: who,
    });
  }

  withdraw({ tenant, args }) {
    must(this.standing.get(args.intent_id)?.tenant === tenant, "withdraws an approval that does not stand");
    this.standing.delete(args.intent_id);
  }

  // stood: a call that names a standing approval was let through by one that counts for it.
  stood(o, tenants) {
    const { standing, approvals } = o.facts;
    if (standing === undefined) return must(!approvals?.length, "names approvals, and waited for none");
    must(o.d.verdict === "allow" && o.type === "skill.call", "names a standing approval, and is no call that one lets through");
    const x = this.standing.get(standing);
    if (o.erased) return this.use(standing, x);
    must(x && x.tenant === o.tenant && x.user === o.user_id && x.session === o.context.session_id, "no standing approval of this session");
    const { skill, task } = o.facts;
    must(x.skill === skill.name && x.digest === skill.digest && !destroys(skill) && (task?.sources ?? []).every((s) => s.trusted), "a standing approval of another call");
    must(o.now < x.until && o.args.from === undefined && x.rest === rest(o.args.input, x.free), "a standing approval of another input, or of before");
    must(this.state.stands(x.yes, o, tenants), "a standing approval that does not count any more");
    const yes = { user_id: x.yes.user_id, at: x.yes.at, ...(x.yes.key && { key: x.yes.key }), roles: x.yes.now };
    must(jcs(approvals) === jcs([yes]), "names another approval than the standing one");
    this.use(standing, x);
  }

  use(name, x) {
    if (x) x.left -= 1;
    if (x?.left === 0) this.standing.delete(name);
  }

  // satisfied: a standing approval satisfies a rule that held its call, too.
  satisfied(rule, o) {
    const { tenants } = this.state.directories.at(-1);
    return this.standing.get(o.facts.standing)?.rules.includes(rule.id) && this.state.counted(rule, o.facts.approvals, { tenant: o.tenant, asked: [] }, tenants) >= Math.max(rule.count ?? 1, 1);
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

// destroys: a call of a skill may destroy something.
const destroys = ({ destructive, effect }) => destructive === "yes" || (!destructive && effect !== "pure");

// rest is an input without the members that may differ.
const rest = (input, free) => jcs(Object.fromEntries(Object.entries(input ?? {}).filter(([name]) => !(free ?? []).includes(name))));
