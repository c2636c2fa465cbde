// Tenants that leave for another log, and come from one: docs/spec/state.md, Moves.

import { must } from "./bundle.mjs";

const BEGINS = ["plan.open", "workflow.start", "run.replay", "schedule.put"];
const CHANGES = ["admin.put", "skill.approve", "registry.push"];

export class Moves {
  constructor(state) {
    this.state = state;
  }

  place(tenant) {
    return this.state.directories.at(-1).tenants.get(tenant)?.place ?? {};
  }

  lives(tenant) {
    const { to, came, arrived } = this.place(tenant);
    return !to && (!came || arrived);
  }

  // order: what begins something needs a tenant that lives here.
  order(o) {
    if (o.d.executor !== "router") {
      const p = this.state.plans.of(o);
      return must(o.d.effect === "pure" || (p && !p.final) || this.lives(o.tenant), "an order of no open plan, of a tenant that lives elsewhere");
    }
    must(!BEGINS.includes(o.type) || this.lives(o.tenant), "begins something for a tenant that lives elsewhere");
    const { tenant, new_tenant, moved, user, api_key } = o.args;
    if (!CHANGES.includes(o.type) || new_tenant || moved || user?.disabled || api_key?.revoked) return;
    must(!this.place(tenant ?? o.tenant).to, "changes what a tenant has left with");
  }

  // begins: a new tenant, or one that came from another log.
  begins({ id, came }) {
    const there = this.state.directories.at(-1).tenants.has(id);
    must(!there || (came && !this.lives(id)), "a tenant with this id exists");
    must(!came || (this.state.rules > 6 && came.origin !== this.state.trust.origin), "comes from this log, or too early");
  }

  // put is an admin.put about where a tenant lives.
  put(o, tenant) {
    const { moved, arrived } = o.args;
    if (!moved && !arrived) return;
    const { to, came, arrived: before } = this.place(tenant);
    must(this.state.rules > 6 && o.tenant === "system", "moved by nobody who may");
    if (arrived) must(came && !before, "arrives, and is not on its way");
    else if (!moved.origin) must(to, "stays, and has not left");
    else must(!to && tenant !== "system" && moved.origin !== this.state.trust.origin && this.lives(tenant), "leaves where it may not");
    this.state.change((tenants) => {
      const t = tenants.get(tenant);
      t.place = arrived ? { ...t.place, arrived: true } : { ...t.place, to: moved.origin };
    });
  }
}
