// Erasures: parts of records that are not there, which a record.erase has taken away.

import { Bad, must } from "./bundle.mjs";

// PARTS of a record that a name in a record.erase takes away.
const PARTS = { intent: { envelope: ["envelope", "grant", "replay"] }, outcome: { result: ["result", "reason", "lines", "outputs"] } };

export class Erasures {
  constructor() {
    this.lacking = new Map(); // by the position of the intent: the records, and what of each no erasure has named yet
  }

  // may: only such parts are withheld that can be erased.
  may({ kind, withheld }) {
    const parts = Object.values(PARTS[kind] ?? {}).flat();
    must(withheld.every((name) => parts.includes(name)), "a part is withheld that cannot be erased");
  }

  // lacks notes the parts of a record about an intent that are not there.
  lacks({ kind, position, withheld }, o, of) {
    if (withheld.length === 0) return;
    const all = this.lacking.get(of) ?? [];
    this.lacking.set(of, [...all, { kind, position, parts: withheld, id: o.d.intent_id, tenant: o.tenant }]);
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

  // end: every part that is missing was erased.
  end(fail) {
    const [first] = [...this.lacking.values()].flat().sort((a, b) => a.position - b.position);
    if (!first) return;
    fail.position = first.position;
    throw new Bad(`no record.erase took ${first.parts.join(", ")} away`);
  }
}
