// Schedules: requests that are carried out later, as docs/spec/state.md says it.

import { must } from "./bundle.mjs";

const MAX = 100;

// OF_AGENTS are the types that no task of a planner's step signs.
export const OF_AGENTS = ["action", "schedule.put", "schedule.list", "schedule.delete"];

const next = (o) => (o.facts.next === undefined ? undefined : Date.parse(o.facts.next));

export class Schedules {
  constructor(state) {
    Object.assign(this, { state, stand: new Map() });
  }

  // of finds a schedule of the intent's user.
  of(o, id) {
    const name = `${o.tenant}/${o.user_id}/${id}`;
    must(this.stand.has(name), "no such schedule of this user");
    return [name, this.stand.get(name)];
  }

  put(o) {
    const { id = `s_${o.d.intent_id.slice(7, 23)}`, agent, at } = o.args;
    const own = `${o.tenant}/${o.user_id}/`;
    must(next(o) > o.now, "due at no time to come");
    must(at === undefined || Date.parse(at) === next(o), "due at another time than it says");
    must(this.stand.has(own + id) || [...this.stand.keys()].filter((name) => name.startsWith(own)).length < MAX, "more schedules than a user may have");
    if (agent !== undefined) this.state.agents.runs(o.tenant, agent);
    this.stand.set(own + id, { agent, once: at !== undefined, next: next(o), sources: this.state.plans.of(o)?.sources });
  }

  // list: the plan has read what agents have put into the user's schedules.
  list(o) {
    const p = this.state.plans.of(o);
    for (const [name, s] of this.stand) if (p && name.startsWith(`${o.tenant}/${o.user_id}/`)) this.state.sources.add(p, s.sources, this.state.at);
  }

  delete(o) {
    this.stand.delete(this.of(o, o.args.id)[0]);
  }

  // deleteOf deletes all schedules of a user.
  deleteOf(tenant, user) {
    for (const name of [...this.stand.keys()]) if (name.startsWith(`${tenant}/${user}/`)) this.stand.delete(name);
  }

  // fire: a plan is opened for a time that has come, once.
  fire(o) {
    const { schedule, agent } = o.args;
    if (schedule === undefined) return undefined;
    const [name, s] = this.of(o, schedule.id);
    const due = Date.parse(schedule.due);
    must(s.agent === agent, "the schedule is for another agent");
    must(due <= o.now, "the time has not come");
    must(s.once ? due === s.next : due >= s.next, "none of its times, or one that was in a plan before");
    must(s.once ? next(o) === undefined : next(o) > o.now, "another next time");
    if (s.once) this.stand.delete(name);
    else s.next = next(o);
    return s.sources;
  }
}
