// The state machine of docs/spec/journal.md: keys, directory, intents, holds. Plans
// and tasks are plans.mjs's.

import { Bad, digest, jcs, kidOf, must, open, signed } from "./bundle.mjs";
import { admit, base64url, rawSignature } from "./keys.mjs";
import { Agents } from "./agents.mjs";
import { Approvals, UNSETTLED } from "./approvals.mjs";
import { Batches } from "./batches.mjs";
import { Erasures, TRANSIENT } from "./erasures.mjs";
import { Routing } from "./routing.mjs";
import { Plans } from "./plans.mjs";
import { Schedules } from "./schedules.mjs";
import { Sources } from "./sources.mjs";

const LEEWAY = 5000;
const DAY = 86400000;
const RULES = 1;
const unsettled = (d) => (d.hold?.rules ?? []).some((rule) => rule.id === UNSETTLED);

const admitted = new Map();
const admitOnce = (jwk) => {
  const name = jcs(jwk);
  if (!admitted.has(name)) admitted.set(name, admit(jwk));
  return admitted.get(name);
};

// TEXTS are the members of the arguments, by type, that a summary has the sizes of.
const TEXTS = {
  "plan.open": ["task", "turn/history/content", "turn/location", "turn/session_metadata", "turn/session_name"],
  plan: ["answer", "steps/task", "steps/return_spec/reason", "route/intent_summary", "route/entities"],
  "agent.ask": ["input", "context/locale", "context/location", "context/prior_context"],
  "step.finish": ["reason", "suggestion", "reply", "components"],
  "plan.close": ["response", "failure/reason", "failure/last_failure/reason"],
  cancel: ["reason"],
  "schedule.put": ["input"],
  action: ["payload"],
  "workflow.start": ["inputs"],
  "run.replay": [],
  "graph.patch": ["patch/justification", "patch/add_nodes/inputs", "patch/add_nodes/from"],
  "approval.ask": ["title", "detail", "items/text"],
};

// without gives a value with the size of a text in its place; of arrays in each element.
function without(v, [name, ...more]) {
  if (Array.isArray(v)) return v.map((x) => without(x, [name, ...more]));
  if (typeof v !== "object" || v === null || !Object.hasOwn(v, name)) return v;
  if (more.length > 0) return { ...v, [name]: without(v[name], more) };
  const { [name]: text, ...rest } = v;
  return { ...rest, [`${name}_bytes`]: Buffer.byteLength(typeof text === "string" ? text : jcs(text)) };
}

// summaryOf is what is read in place of an intent that was erased; nothing, of one that cannot be.
function summaryOf({ d, type, tenant, user_id, context, args }) {
  const { labels, ...named } = context;
  const s = { type, tenant, user: user_id, context: named };
  if (d.verdict === "deny") return s;
  if (d.executor === "router" && !Object.hasOwn(TEXTS, type)) return undefined;
  if (typeof args.plan_id === "string" && args.plan_id !== "") s.plan_id = args.plan_id;
  if (d.executor === "router") s.args = TEXTS[type].reduce((a, text) => without(a, text.split("/")), args);
  return s;
}

// covers: area:verb[:resource]. The memory of a whole tenant is given by name alone.
function covers(have, need) {
  const [area, verb, resource] = have.split(":");
  const [needArea, needVerb, needResource] = need.split(":");
  if ((area !== "*" && area !== needArea) || (verb !== "*" && verb !== needVerb)) return false;
  if (resource === undefined) return need !== "memory:write:tenant" && need !== "runs:replay:any";
  return resource === "*" || resource === needResource;
}

const among = (a, b) => (a ?? []).every((x) => b.includes(x));
const part = (record, name) => (record.bodies[name] === undefined ? undefined : JSON.parse(record.bodies[name]));
const apiKey = (grant) => (/^apikey:(.+)$/.exec(grant?.act.client ?? "") ?? [])[1] ?? "";

// caller is that key, or the name of whoever came with an access token.
const caller = (grant) => apiKey(grant) || (/^oidc:/.test(grant?.act.client ?? "") ? grant.act.client : "");

export class State {
  constructor(trust, blobs) {
    Object.assign(this, { trust, blobs, revision: 0, latest: 0, keys: new Map(), ledgerKeys: new Set(), policies: new Set() });
    this.intents = new Map(); // open, by position
    this.held = new Map(); // of these, those that wait for people, by intent_id
    this.unknown = new Map(); // indeterminate intents, by intent_id
    this.taken = new Map(); // idempotency keys
    this.names = new Map(); // what an intent names, as far as it is shown, by decision.key; and the other way round
    this.revoked = new Map(); // "tenant/user": grants before are dead
    this.directories = [{ at: -1, tenants: new Map() }];
    this.plans = new Plans(this);
    this.agents = new Agents(this);
    this.routing = new Routing(this);
    this.schedules = new Schedules(this);
    this.sources = new Sources(this);
    this.approvals = new Approvals(this);
    this.batches = new Batches();
    this.erasures = new Erasures();
  }

  take(r) {
    this.position = r.position;
    this.at = Date.parse(r.at);
    this.latest = Math.max(this.latest, this.at);
    must(new Date(this.at).toISOString() === r.at, "a time in another form");
    this.erasures.may(r);
    if (r.kind === "control") this.control(part(r, "control"));
    if (r.kind !== "intent" && r.kind !== "outcome") this.batches.take(undefined);
    must(this.keySet, "the log does not begin with its genesis");
    if (r.kind === "intent") this.intent(r);
    else if (r.kind === "outcome") this.outcome(r);
    else if (r.kind === "release") this.release(part(r, "release"));
    else if (r.kind === "takeover") this.about(part(r, "takeover").of, "a takeover of an intent that is not open");
    else must(r.kind === "control", "a record of no kind");
    this.plans.leave(this.latest);
  }

  control(c) {
    must((c.genesis !== undefined) === (this.position === 0), "a genesis is the first record, and no other");
    must(c.rules === (this.position === 0 ? RULES : undefined), "rules that nobody knows here, or of another record than the genesis");
    if (c.genesis !== undefined) this.genesis(c.genesis);
    if (c.policy_digest) this.policy(c.policy_digest, c.policy_revision ?? 0);
    if (c.catalog_digest) this.catalog = c.catalog_digest;
  }

  genesis(token) {
    const { root, origin } = this.trust;
    const g = open(token, "writ-genesis+jws", (kid) => kid === root.kid && admitOnce(root));
    must(g.origin === origin && origin === `writ/${root.kid}` && g.root.x === root.x, "another log's genesis");
    this.root = admitOnce(root);
    this.putKeys(g.key_set, 1, "");
    this.policy(g.policy_digest, 0);
    this.catalog = g.catalog_digest;
    this.beginRoles = g.roles;
    this.change((tenants) => {
      for (const id of g.tenants) this.newTenant(tenants, id);
      for (const { tenant, ...user } of g.users) tenants.get(tenant).users.set(user.user_id, user);
      for (const { tenant, key, value } of g.data ?? []) tenants.get(tenant).data.set(key, value);
    });
  }

  policy(name, revision) {
    must(revision === 0 || revision >= this.revision, "a policy revision after a later one");
    this.revision = Math.max(this.revision, revision);
    this.policyDigest = name;
    this.policies.add(name);
  }

  putKeys(token, version, prev) {
    const set = open(token, "writ-keyset+jws", (kid) => kid === this.root.kid && this.root);
    must(set.version === version && (set.prev ?? "") === prev, "not the successor of the key set in force");
    this.keySet = { token, version };
    const admitted = set.keys.map(admitOnce);
    must(admitted.every(Boolean), "a key set with a key that is not admitted");
    this.keys = new Map(admitted.map((key) => [key.kid, key]));
    for (const key of this.keys.values()) if (key.role === "ledger") this.ledgerKeys.add(key.x);
  }

  // alive is a key that may sign now.
  alive(kid, role) {
    const key = this.keys.get(kid);
    return key && !key.revoked && (!role || key.role === role) ? key : undefined;
  }

  newTenant(tenants, id) {
    tenants.set(id, { roles: new Map(this.beginRoles.map((r) => [r.role, r.capabilities])), users: new Map(), keys: new Map(), pins: new Set(), approved: new Map(), effects: new Map(), data: new Map(), stopped: new Map() });
  }

  change(fn) {
    const tenants = structuredClone(this.directories.at(-1).tenants);
    fn(tenants);
    this.directories.push({ at: this.position, tenants });
  }

  // seen is the directory that a decision had seen; it says so itself.
  seen(position) {
    must(position < this.position, "rests on records that come after it");
    return this.directories.findLast((d) => d.at <= position).tenants;
  }

  row(type) {
    this.rows ??= new Map();
    if (!this.rows.has(this.catalog)) {
      must(this.blobs.has(this.catalog), "the catalog is not in the bundle");
      this.rows.set(this.catalog, new Map(JSON.parse(this.blobs.get(this.catalog)).intents.map((row) => [row.type, row])));
    }
    return this.rows.get(this.catalog).get(type);
  }

  // end: what is missing of the records may be.
  end(fail) {
    const open = [...this.plans.plans.values()].filter((p) => !p.final).map((p) => p.opening);
    this.erasures.end(fail, [...open, ...[...this.held.values()].map((o) => o.position)]);
  }

  // timed gives the time that a decision was made at.
  timed(text) {
    const now = Date.parse(text);
    must(new Date(now).toISOString() === text && now <= this.at, "decided at another time than its record says");
    return now;
  }

  inForce(d) {
    must(d.catalog_digest === this.catalog, "decided under a catalog that is not in force");
    must(d.policy_digest === this.policyDigest || (d.verdict === "deny" && this.policies.has(d.policy_digest)), "decided by a policy that is not in force");
  }

  intent(r) {
    const [d, facts] = [part(r, "decision"), part(r, "facts")];
    const o = r.withheld.some((name) => name !== TRANSIENT) ? this.erased(r, d, facts) : this.shown(r, d, facts);
    this.batches.take(d.batch, o.tenant, r.position);
    o.replay = part(r, "replay");
    o.now = this.timed(facts.now);
    const tenants = this.seen(d.directory);
    this.inForce(d);
    this.erasures.beside(r, o);
    this.erasures.lacks(r, o, r.position);
    o.key = this.keys.get(o.kid) ?? this.plans.key(o.kid);
    if (!o.erased) this.signed(r, o);
    if (d.verdict === "deny") {
      const breaker = ["skill.call", "resource.read"].includes(o.type) ? facts.skill?.name : ["plan.open", "plan"].includes(o.type);
      must(d.code !== "DISPATCH_UNAVAILABLE" || breaker, "refused for its skill server, and it calls none");
      return must(d.code && d.code !== "OK", "a refusal without a code");
    }
    must(d.verdict === "allow" || d.verdict === "hold", "no verdict");
    must(o.key, "an unknown key");
    must(!o.key.revoked && o.now <= o.key.end, "a revoked key");
    must(facts.signer.kid === o.kid && facts.signer.role === o.key.role, "the record names another signer");
    const row = this.row(o.type);
    must(row && row.signed_by.includes(o.key.role), `a ${o.key.role} key may not sign ${o.type}`);
    must(row.executor === d.executor, "decided otherwise than the catalog says");
    if (!o.erased) {
      this.actor(o, part(r, "grant"));
      this.fresh(o);
      this.entitled(o, row, tenants);
    }
    if (o.key.role === "task") {
      this.plans.scope(o);
      this.sources.decided(o);
    }
    this.plans.fresh(o);
    must(this.plans.unsettled(o) === unsettled(d), "it waits for an earlier call of its skill where what became of each is known, or does not where it is not");
    this.plans.timed(o);
    this.reserve(o);
    this.intents.set(o.position, o);
    if (o.type === "approval.ask") this.approvals.question(o, tenants);
    if (o.type === "registry.push") this.approvals.replaced(o, tenants);
    this.approvals.stood(o, tenants);
    if (d.verdict === "hold") return this.hold(o, tenants);
    if (d.executor === "router") this.apply(o);
    else this.plans.dispatched(o);
  }

  // shown is an intent as it was signed.
  shown(r, d, facts) {
    const envelope = part(r, "envelope");
    const body = JSON.parse(envelope.payload);
    must(jcs(body) === envelope.payload, "an intent that is not canonical");
    const raw = envelope.header === "";
    const input = raw ? envelope.payload : `${envelope.header}.${Buffer.from(envelope.payload).toString("base64url")}`;
    must(d.intent_id === digest(input), "the record names another intent_id");
    const { actor, intent, context = {} } = body;
    const kid = raw ? actor.kid : kidOf(envelope.header, "writ-intent+jws");
    must(base64url(kid) !== null && (actor.kid ?? kid) === kid, "an intent that names no key, or two");
    const name = jcs([actor.tenant, actor.user_id, intent.type, body.constraints.idempotency_key]);
    return { body, d, facts, position: r.position, digest: r.digest, context, ...actor, ...intent, kid, name, raw, input, sig: envelope.sig };
  }

  // erased is an intent as far as its summary says.
  erased(r, d, facts) {
    const s = part(r, "summary");
    must(s && d.verdict !== "hold" && r.withheld.includes("envelope"), "an intent is withheld that cannot be erased");
    must(d.verdict === "deny" || d.executor !== "router" || s.args, "an intent is withheld that others rest on");
    const args = s.args ?? (s.plan_id ? { plan_id: s.plan_id } : {});
    return { erased: true, d, facts, position: r.position, digest: r.digest, context: s.context, tenant: s.tenant, user_id: s.user, type: s.type, args, kid: facts.signer.kid };
  }

  // signed: its key has signed the intent, and its summary follows from it.
  signed(r, o) {
    const { key, raw, input, sig } = o;
    if (key) must(raw === Boolean(key.raw) && signed(key.x, input, raw ? rawSignature(sig) : base64url(sig)), "the signature of the intent");
    must(jcs(part(r, "summary") ?? null) === jcs(summaryOf(o) ?? null), "its summary does not follow from the intent");
  }

  // actor: the grant, or the operator's own key, speaks for the intent's user.
  actor(o, token) {
    must(token === o.grant, "the record holds another grant than the intent");
    if (o.key.role === "operator") {
      must(o.grant === undefined && o.key.subject === o.user_id && o.key.tenant === o.tenant, "not the operator");
      return;
    }
    must(o.grant !== undefined, "no grant");
    const g = (o.claims = this.granted(o));
    must(o.now <= g.exp * 1000 + LEEWAY && o.now >= g.iat * 1000 - LEEWAY, "a grant of another time");
  }

  // granted opens the grant of an intent, with the keys and revocations of now.
  granted(o) {
    const g = open(o.grant, "writ-grant+jws", (kid) => this.alive(kid, "gateway"));
    const { origin } = this.trust;
    must(g.iss === origin && g.aud === origin && g.use === undefined && g.exp > g.iat && g.exp <= g.iat + 900, "not a grant of intents of this log");
    must(g.sub === o.user_id && g.tenant === o.tenant && among(o.body.actor.roles, g.roles ?? []), "a grant of another actor");
    must((g.session_id ?? "") === (o.context.session_id ?? "") && (g.turn_id ?? "") === (o.context.turn_id ?? ""), "a grant of another session");
    const { plan_id, run_id } = o.context;
    must(!g.for || [`plan:${plan_id}`, `run:${run_id}`].includes(g.for), "a grant for other work");
    must(!this.dead(g), "a grant that was revoked before");
    return g;
  }

  dead(g) {
    const before = this.revoked.get(`${g.tenant}/${g.sub}`) ?? -Infinity;
    return g.iat * 1000 <= before + LEEWAY;
  }

  fresh(o) {
    const { audience, issued_at, ttl_sec } = o.body.constraints;
    const issued = Date.parse(issued_at);
    must(audience === this.trust.origin, "for another log");
    must(issued <= o.now + LEEWAY, "accepted before it was issued");
    must(o.now <= issued + ttl_sec * 1000 + LEEWAY, "accepted after its ttl_sec");
  }

  // entitled: the actor's roles give what the type needs.
  entitled(o, row, tenants) {
    must(o.body.constraints.ttl_sec <= row.ttl_sec, "decided otherwise than the catalog says");
    const roles = this.rolesOf(o, tenants);
    must(jcs(o.facts.roles ?? []) === jcs(roles), "decided with other roles than grant and directory give");
    this.capable(o, row, tenants, roles);
  }

  capable(o, row, tenants, roles) {
    const given = (caps, need) => caps.some((c) => covers(c, need));
    const caps = this.capabilities(tenants, o.tenant, roles);
    let need = row.capability;
    if ((o.type === "plan.open" || o.type === "agent.ask") && o.args.agent) need = `agents:run:${o.args.agent}`;
    if (o.type === "kb.index" || o.type === "kb.remove") need += o.args.scope === "tenant" ? ":tenant" : ":own";
    if (o.type === "workflow.start") need = `runs:start:${o.args.workflow_id}`;
    if (o.type === "soul.put") need += o.args.user_id === o.user_id ? ":own" : ":tenant";
    if (o.type === "write_memory" && o.args.scope === "tenant") need = "memory:write:tenant";
    const declared = o.body.constraints.capabilities ?? [];
    must(declared.every((c) => given(caps, c)), "declares what no role gives");
    const ofSteps = (o.type === "plan" ? o.args.steps : []).filter((s) => s.agent).map((s) => `agents:run:${s.agent}`);
    for (const n of [need, ...ofSteps]) must(given(caps, n) && (declared.length === 0 || given(declared, n)), `no role gives ${n}`);
  }

  // mayRun: what routing goes on with needs the capability of its agent.
  mayRun(o, agent) {
    must(this.given(o, `agents:run:${agent}`), `no role gives agents:run:${agent}`);
  }

  // given: a role of the actor gives a capability.
  given(o, need) {
    return this.capabilities(this.directories.at(-1).tenants, o.tenant, o.facts.roles ?? []).some((c) => covers(c, need));
  }

  covers(have, need) {
    return covers(have, need);
  }

  capabilities(tenants, tenant, roles) {
    return roles.flatMap((role) => tenants.get(tenant).roles.get(role) ?? []);
  }

  // rolesOf an actor are an operator's of the directory, else those of the grant
  // that API key and user still give.
  rolesOf(o, tenants) {
    const t = tenants.get(o.tenant);
    must(t, "no such tenant");
    const user = t.users.get(o.user_id);
    if (o.key.role === "operator") {
      must(user && !user.disabled, "the operator is no user");
      const { args } = o;
      const foreign = o.type === "policy.push" || args.new_tenant !== undefined || (args.tenant ?? o.tenant) !== o.tenant;
      must(o.tenant === "system" || !foreign, "only operators of system name another tenant");
      return user.roles;
    }
    return this.rolesNow(t, o.claims);
  }

  rolesNow(t, g) {
    let roles = g.roles ?? [];
    if (apiKey(g)) {
      const key = t.keys.get(apiKey(g));
      must(key && (key.user_id === g.sub || key.may_assert_user), "an API key that is not there any more");
      roles = roles.filter((role) => key.max_roles.includes(role));
    }
    const user = t.users.get(g.sub);
    must(!user?.disabled, "a disabled user");
    return user ? roles.filter((role) => user.roles.includes(role)) : roles;
  }

  // reserve reserves the idempotency key, which is an HMAC under a secret: what intents name has one
  // key, and each key one name.
  reserve(o) {
    const { key } = o.d;
    must(/^[0-9a-f]{32}$/.test(key ?? ""), "the decision names no idempotency key");
    if (o.name !== undefined) {
      must((this.names.get(key) ?? o.name) === o.name && (this.names.get(o.name) ?? key) === key, "the decision names another idempotency key");
      this.names.set(key, o.name).set(o.name, key);
    }
    const holder = this.taken.get(key);
    must(!holder || (holder.ended !== undefined && this.at >= holder.ended + DAY), "a second intent under one idempotency key");
    this.taken.set(key, { intent: o });
  }

  about(of, why) {
    const o = this.intents.get(of === -1 ? this.position - 1 : of);
    must(o, why);
    return o;
  }

  outcome(r) {
    const out = part(r, "outcome");
    const o = this.about(out.of, "an outcome of no open intent");
    this.intents.delete(o.position);
    this.erasures.lacks(r, o, o.position);
    if (o.d.verdict === "hold" && !o.released) {
      must(out.status === "failed", "a held intent is carried out without release");
      must(out.code !== "APPROVAL_REJECTED" || o.refused, "rejected, and nobody said so");
      must(out.code !== "CHANGED" || o.edited, "changed, and nobody has edited it");
      must(out.code !== "APPROVAL_EXPIRED" || this.at >= o.deadline, "expired before its deadline");
    }
    must(out.result === undefined && out.outputs === undefined, "a result that is no part of its own");
    const answer = part(r, "result");
    if (o.said && out.status === "done" && !r.withheld.includes("result")) must(answer !== undefined && jcs(answer) === jcs(o.said), "the answer to a question is not what people said");
    if (o.type === "write_memory" && r.withheld.includes("result")) this.plans.unshown.add(`${o.tenant}/${o.context.task_id}`);
    this.held.delete(o.d.intent_id);
    const again = out.status === "failed" && out.retryable;
    if (again) this.taken.delete(o.d.key);
    else this.taken.set(o.d.key, { intent: o, ended: this.at });
    if (out.status === "indeterminate") this.unknown.set(o.d.intent_id, o);
    this.sources.ended(o, out, answer, r.withheld.includes("result"));
    this.plans.ended(o, out, answer);
    if (o.type === "session.close" && out.status === "done") this.routing.close(o);
  }

  hold(o, tenants) {
    const terms = o.d.hold;
    must(terms?.rules?.length > 0, "held without saying what for");
    o.deadline = Date.parse(terms.deadline);
    must(o.deadline <= o.now + DAY, "held without a deadline, or for more than a day");
    Object.assign(o, { yes: [], asked: [{ user_id: o.user_id, key: caller(o.claims) }, ...(o.key.subject ? [{ user_id: o.key.subject }] : [])] });
    this.approvals.hold(o, tenants);
    this.held.set(o.d.intent_id, o);
    this.plans.hold(o);
  }

  // same: two people are one for four eyes, by user, API key or owner of a key that asserts users.
  same(a, b, t) {
    const owner = ({ key }) => (t.keys.get(key)?.may_assert_user && t.keys.get(key).user_id) || undefined;
    const of = [b.user_id, owner(b)];
    return Boolean(a.key && a.key === b.key) || of.includes(a.user_id) || Boolean(owner(a) && of.includes(owner(a)));
  }

  // accepts: a rule of the hold lets somebody approve.
  accepts(rule, who, held, tenants) {
    if (rule.four_eyes && held.asked.some((a) => this.same(who, a, tenants.get(held.tenant)))) return false;
    if (rule.in_person && who.key && !tenants.get(held.tenant).keys.get(who.key)?.in_person) return false;
    return (rule.approvers ?? []).includes(who.user_id) || (rule.roles ?? []).some((role) => who.roles.includes(role));
  }

  counted(rule, approvals, held, tenants) {
    const people = [];
    for (const a of approvals) {
      const same = (b) => b.user_id === a.user_id || (rule.four_eyes && this.same(a, b, tenants.get(held.tenant)));
      if (this.accepts(rule, { ...a, roles: a.roles ?? [] }, held, tenants) && !people.some(same)) people.push(a);
    }
    return people.length;
  }

  approve(o) {
    const { decision, items, also } = o.args;
    if (decision === "withdraw") return this.approvals.withdraw(o);
    const held = this.approvals.about(o);
    must(o.now < held.deadline, "approves an intent after its deadline");
    const g = o.claims;
    must(!g || (!g.for && g.act.amr?.length > 0 && o.now - g.iat * 1000 <= 300000), "a grant that does not show that the approver was there");
    const who = { user_id: o.user_id, key: caller(g), roles: o.facts.roles, at: o.facts.now, kid: o.kid, by: o, items };
    const { tenants } = this.directories.at(-1);
    must(held.d.hold.rules.some((rule) => this.accepts(rule, who, held, tenants)), "not one of those who may approve");
    if (decision === "edit") return this.approvals.edit(held, who, o);
    this.approvals.items(held, items);
    if (decision !== "approve") {
      held.refused = true;
      return;
    }
    const standing = held.yes.filter((a) => this.stands(a, held, tenants));
    must(!standing.some((a) => a.user_id === who.user_id), "has approved already");
    must(held.d.hold.rules.some((rule) => this.counted(rule, [...standing, who], held, tenants) > this.counted(rule, standing, held, tenants)), "an approval that counts for nothing");
    if (also) this.approvals.stand(held, who, also, o);
    held.yes.push(who);
    held.last = o.d.intent_id;
  }

  // stands: the approver's key and grant were not revoked since, and whoever it is may approve still.
  stands(a, held, tenants) {
    try {
      must(this.alive(a.kid) && (!a.by.claims || (this.alive(kidOf(a.by.grant.split(".")[0], "writ-grant+jws")) && !this.dead(a.by.claims))), "revoked");
      const t = tenants.get(held.tenant);
      const user = t.users.get(a.user_id);
      must(a.by.claims || (user && !user.disabled), "no user any more");
      a.now = a.by.claims ? this.rolesNow(t, { ...a.by.claims, roles: a.roles }) : user.roles;
      return this.capabilities(tenants, held.tenant, a.now).some((c) => covers(c, "runs:approve"));
    } catch (error) {
      if (error instanceof Bad) return false;
      throw error;
    }
  }

  release({ of, by, decision: d, facts }) {
    const o = this.about(of, "releases an intent that is not open");
    must(o.d.verdict === "hold" && !o.released, "releases an intent that is not held");
    const now = this.timed(facts.now);
    const tenants = this.seen(d.directory);
    must(by === o.last || (by === "" && unsettled(o.d)), "released by another intent than the last approval");
    must(!this.plans.unsettled(o), "released although nobody knows what became of an earlier call of its skill");
    must(now < o.deadline, "released after its deadline");
    must(d.verdict === "allow" && d.code === "OK" && d.intent_id === o.d.intent_id && d.executor === o.d.executor && d.effect === o.d.effect, "released as another intent than was held");
    for (const a of facts.approvals ?? []) {
      const yes = o.yes.find((y) => y.user_id === a.user_id && y.at === a.at && y.key === (a.key ?? "") && jcs(y.items ?? []) === jcs(a.items ?? []));
      must(yes, "released with an approval that nobody gave");
      must(this.stands(yes, o, tenants) && among(a.roles, yes.now), "released with an approval that does not count any more");
    }
    for (const rule of o.d.hold.rules.filter((r) => r.id !== UNSETTLED)) must(this.counted(rule, facts.approvals ?? [], o, tenants) >= Math.max(rule.count ?? 1, 1), `released without the approvals that ${rule.id} wants`);
    this.inForce(d);
    must(!this.keys.get(o.kid)?.revoked, "released although its key was revoked before");
    if (o.claims) this.granted(o);
    const roles = this.rolesOf(o, tenants);
    must(jcs(facts.task ?? null) === jcs(o.facts.task ?? null), "released with other sources than it was held with");
    must(jcs(facts.roles ?? []) === jcs(roles), "released with other roles than grant and directory give");
    this.capable(o, this.row(o.type), tenants, roles);
    o.released = true;
    if (o.type === "approval.ask") o.said = this.approvals.said(o, facts.approvals ?? []);
    this.held.delete(o.d.intent_id);
    if (d.executor !== "router") return;
    this.apply({ ...o, now, facts });
  }

  // ofTenant refuses what a gateway may not sign for people: what concerns system, or another tenant.
  ofTenant(o, tenant) {
    must(o.key.role !== "gateway" || o.tenant !== "system" && tenant === o.tenant, "the gateway administers system, or another tenant");
  }

  // apply is the effect of an intent of the router.
  apply(o) {
    const { args } = o;
    const tenant = args.tenant ?? o.tenant;
    switch (o.type) {
      case "hitl.approve":
        return this.approve(o);
      case "key.put":
        return this.putKeys(args.key_set, this.keySet.version + 1, digest(this.keySet.token));
      case "admin.put":
        return this.adminPut(o, args, tenant);
      case "admin.stop":
        this.ofTenant(o, tenant);
        return this.stop(o, args, tenant);
      case "skill.approve":
        this.ofTenant(o, tenant);
        must(this.directories.at(-1).tenants.has(tenant), "no such tenant");
        return this.change((tenants) => {
          const t = tenants.get(tenant);
          if (args.revoked) {
            t.pins.delete(args.skill);
            t.approved.delete(args.skill);
            return t.effects.delete(args.skill);
          }
          t.pins.add(args.skill);
          t.approved.set(args.skill, args);
          t.effects.set(args.skill, args.effect);
        });
      case "registry.push":
        this.ofTenant(o, tenant);
        return this.agents.push(o, tenant);
      case "policy.push":
        must(args.revision > this.revision, "a policy revision after a later one");
        return this.policy(args.digest, args.revision);
      case "grant.revoke": {
        const before = Date.parse(args.before);
        must(before <= o.now + LEEWAY, "revokes grants of the future");
        must(this.directories.at(-1).tenants.has(args.tenant), "no such tenant");
        const name = `${args.tenant}/${args.sub}`;
        this.revoked.set(name, Math.max(before, this.revoked.get(name) ?? -Infinity));
        return this.plans.endOf(args.tenant, args.sub);
      }
      case "schedule.put":
        return this.schedules.put(o);
      case "schedule.list":
        return this.schedules.list(o);
      case "schedule.delete":
        return this.schedules.delete(o);
      case "intent.resolve":
        return this.resolve(o);
      case "record.erase":
        return this.erasures.erase(o, this.position);
      case "user.erase":
        return this.eraseUser(tenant, args.user_id);
      case "usage.report":
        return this.plans.budgets.reported(o);
      default:
        return this.plans.apply(o);
    }
  }

  resolve(o) {
    const { intent_id, status } = o.args;
    must(this.unknown.delete(intent_id), "resolves an intent that is not indeterminate");
    for (const [name, { intent }] of this.taken) {
      if (intent.d.intent_id !== intent_id) continue;
      must(o.tenant === "system" || intent.tenant === o.tenant, "resolves another tenant's intent");
      if (status === "failed") this.taken.delete(name);
      this.plans.resolved(intent, status);
    }
  }

  // eraseUser: a disabled user all of whose intents have ended loses what can be erased.
  eraseUser(tenant, user) {
    must(this.directories.at(-1).tenants.get(tenant)?.users.get(user)?.disabled, "erases a user who is not disabled");
    const open = [...this.intents.values(), ...this.unknown.values()].some((x) => x.tenant === tenant && x.user_id === user);
    must(!open, "erases a user whose intents have not all ended");
    this.erasures.eraseUser(tenant, user);
    this.schedules.deleteOf(tenant, user);
  }

  adminPut(o, args, tenant) {
    const there = this.directories.at(-1).tenants;
    if (args.new_tenant) {
      const { id } = args.new_tenant;
      must(!there.has(id), "a tenant with this id exists");
      return this.change((tenants) => this.newTenant(tenants, id));
    }
    must(there.has(tenant), "no such tenant");
    must(args.data?.key !== "stop", "a stop that is put as data");
    this.change((tenants) => {
      const t = tenants.get(tenant);
      if (args.user) t.users.set(args.user.user_id, args.user);
      must(args.data?.key !== "alone" || [null, t.data.get("alone")].includes(args.data.value), "says anew who is alone");
      if (args.data) t.data.set(args.data.key, args.data.value);
      if (args.role) t.roles.set(args.role.role, args.role.capabilities);
      if (args.api_key) this.putKey(t, args.api_key);
      this.endAlone(t);
    });
    if (args.user?.disabled) this.plans.endOf(tenant, args.user.user_id);
  }

  // stop keeps who stopped what first, until somebody else lets it go on.
  stop(o, args, tenant) {
    const { tenants } = this.directories.at(-1);
    must(tenants.has(tenant), "no such tenant");
    const who = { user_id: o.user_id, key: caller(o.claims) };
    const stopped = new Map(args.resume ? [] : tenants.get(tenant).stopped);
    if (args.resume) {
      const t = tenants.get(tenant);
      const asked = [...t.stopped.values()];
      const one = (p) => asked.some((a) => this.same(p, a, t));
      const keyed = ({ user_id }) => [...this.keys.values()].some((k) => k.role === "operator" && !k.revoked && k.tenant === "system" && k.subject === user_id);
      const others = () =>
        this.approvals.canMeet(tenants, tenant, { roles: [...t.roles.keys()], four_eyes: true }, { tenant, asked }, "admin:stop") ||
        [...tenants.get("system").users.values()].some((u) => !u.disabled && this.approvals.may(tenants, "system", u.roles, "admin:stop") && !one({ user_id: u.user_id, key: "" }) && keyed(u));
      must(!one(who) || !others(), "whoever stopped it lets it go on, though somebody else could");
    }
    const names = [...(args.all ? ["all"] : []), ...(args.agents ?? []).map((n) => `agent ${n}`), ...(args.servers ?? []).map((n) => `server ${n}`)];
    for (const name of names) if (!stopped.has(name)) stopped.set(name, who);
    for (const kind of ["agent ", "server "]) must([...stopped.keys()].filter((name) => name.startsWith(kind)).length <= 256, "stops too much by name");
    this.change((changed) => {
      changed.get(tenant).stopped = stopped;
    });
  }

  // endAlone: the first other person who may approve ends that one is alone.
  endAlone(t) {
    const one = t.data.get("alone");
    if (!one) return;
    const approves = (roles) => roles.flatMap((role) => t.roles.get(role) ?? []).some((c) => covers(c, "runs:approve"));
    const users = [...t.users.values()].filter((u) => !u.disabled);
    const keyed = [...t.keys.values()].filter((k) => !t.users.has(k.user_id));
    if (users.some((u) => u.user_id !== one && approves(u.roles)) || keyed.some((k) => k.user_id !== one && approves(k.max_roles))) t.data.delete("alone");
  }

  putKey(t, key) {
    must(!key.in_person || !(key.may_assert_user || key.front_end), "a key of one person that others use, too");
    for (const [id, other] of t.keys) if (other.hash === key.hash) t.keys.delete(id);
    must(key.revoked || !t.keys.has(key.id), "another API key has this id");
    if (!key.revoked) t.keys.set(key.id, key);
  }
}
