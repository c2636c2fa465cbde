// A second auditor, of the state machine: docs/spec/journal.md and ledger.md, written
// apart from the Go code and without any library.
//
//	node journal.mjs TRUST BUNDLE…
//
// prints a line {bundle, ok, position, reason} for every bundle of a whole log. It
// evaluates no policy and no argument schemas, and knows no masks.

import { readFileSync } from "node:fs";
import { Bad, checkpointBy, must, read } from "./bundle.mjs";
import { State } from "./state.mjs";

function judge(trust, bytes, fail) {
  const { header, checkpoint, blobs, records } = read(bytes, fail);
  must(header.origin === trust.origin, "another log than the pinned one");
  const state = new State(trust, blobs);
  for (const record of records) {
    fail.position = record.position;
    state.take(record);
  }
  state.end(fail);
  fail.position = -1;
  must([...state.ledgerKeys].some((x) => checkpointBy(checkpoint, x)), "the last checkpoint is not signed by a ledger key");
}

const [trust, ...bundles] = process.argv.slice(2);
for (const bundle of bundles) {
  const fail = { position: -1 };
  const answer = { bundle, ok: true };
  try {
    judge(JSON.parse(readFileSync(trust, "utf8")), readFileSync(bundle), fail);
  } catch (error) {
    // What is no bundle at all ends otherwise, and holds no more than what breaks a rule.
    Object.assign(answer, { ok: false, position: fail.position, reason: error instanceof Bad ? error.message : `cannot be read: ${error}` });
  }
  console.log(JSON.stringify(answer));
}
