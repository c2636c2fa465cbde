// Batches: intents that were accepted with one commit stand together.

import { must } from "./bundle.mjs";

export class Batches {
  // take holds a record other than an outcome to those before it; b is its place in a batch, if it has one.
  take(b, tenant, position) {
    const { now } = this;
    if (!b || b.offset === 0) {
      must(!now || now.seen === now.of, "not all intents of a batch are there");
      this.now = b && { first: position, index: b.index, of: b.of, seen: 1, tenant };
      return;
    }
    const follows = now && now.first === position - b.offset && now.of === b.of && now.tenant === tenant && now.index < b.index;
    must(follows, "accepted in a batch whose other intents are not those before it");
    now.index = b.index;
    now.seen++;
  }
}
