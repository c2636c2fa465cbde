// Erasures: parts of records that are not there, which a record.erase or user.erase has taken away, or the end of
// a plan: the texts beside its opening.

import { Bad, must } from "./bundle.mjs";
import { sha256 } from "./keys.mjs";

export const TRANSIENT = "transient";

// PARTS of a record that a name in a record.erase takes away.
const PARTS = { intent: { envelope: ["envelope", "grant", "replay"] }, outcome: { result: ["result", "reason", "lines", "outputs"] } };

export class Erasures {
  constructor() {
    this.lacking = new Map(); // by the position of the intent: the records, and what of each no erasure has named yet
  }

  // may: only such parts are withheld that can be erased.
  may({ kind, withheld }) {
    const parts = Object.values(PARTS[kind] ?? {}).flat();
    if (kind === "intent") parts.push(TRANSIENT);
    must(withheld.every((name) => parts.includes(name)), "a part is withheld that cannot be erased");
  }

  // beside: the record has the texts whose digests the intent signs, or had them; no refused one's.
  beside({ bodies, withheld }, { type, args, d }) {
    const digests = type === "plan.open" && d.verdict !== "deny" ? (args.transient ?? {}) : {};
    const names = Object.keys(digests);
    const there = bodies[TRANSIENT] !== undefined;
    must(names.length > 0 === (there || withheld.includes(TRANSIENT)), "texts beside an intent that does not sign them, or none where it does");
    if (!there) return;
    const texts = JSON.parse(bodies[TRANSIENT]);
    must(names.length === Object.keys(texts).length, "other texts beside the intent than it signs");
    for (const name of names) {
      const { salt, text } = texts[name] ?? {};
      const sum = sha256(Buffer.concat([Buffer.from(salt ?? "", "base64"), Buffer.from(text ?? "")]), "hex");
      must(`sha256:${sum}` === digests[name], "a text beside the intent is not the one that it signs");
    }
  }

  // lacks notes the parts of a record about an intent that are not there.
  lacks({ kind, position, withheld }, o, of) {
    if (withheld.length === 0) return;
    const all = this.lacking.get(of) ?? [];
    this.lacking.set(of, [...all, { kind, position, parts: withheld, id: o.d.intent_id, tenant: o.tenant, user: o.user_id }]);
  }

  // erase: an erasure accounts for what it names of an intent of its tenant before it.
  erase(o, at) {
    const { intent_id: id, position, parts, tenant = o.tenant } = o.args;
    must(position < at, "erases a record that comes after it");
    const all = this.lacking.get(position) ?? [];
    for (const m of all) {
      must(m.id === id && m.tenant === tenant, "erases what is of another intent or tenant");
      m.parts = m.parts.filter((part) => !parts.some((named) => PARTS[m.kind][named]?.includes(part)));
    }
    this.lacking.set(position, all.filter((m) => m.parts.length > 0));
  }

  // eraseUser: it accounts for everything of a user's intents before it.
  eraseUser(tenant, user) {
    for (const m of [...this.lacking.values()].flat()) if (m.tenant === tenant && m.user === user) m.parts = m.parts.filter((part) => part === TRANSIENT);
  }

  // end: every part that is missing was erased, and no plan whose texts are missing is open. retained
  // are the positions of the openings of such plans.
  end(fail, retained) {
    const all = [...this.lacking.values()].flat();
    for (const m of all) m.parts = m.parts.filter((part) => part !== TRANSIENT || retained.includes(m.position));
    const [first] = all.filter((m) => m.parts.length > 0).sort((a, b) => a.position - b.position);
    if (!first) return;
    fail.position = first.position;
    throw new Bad(`no erasure, and no end of a plan, took ${first.parts.join(", ")} away`);
  }
}
