// Bundles as docs/spec/ledger.md says them: lines, leaves, proofs, checkpoints and
// the papers in them. What a record means is state.mjs's.

import { createHash, createPublicKey, verify } from "node:crypto";
import { base64url, sha256 } from "./keys.mjs";

export class Bad extends Error {}

export const must = (holds, why) => {
  if (!holds) throw new Bad(why);
};

// jcs writes RFC 8785, which ECMAScript's own numbers and strings are.
export function jcs(v) {
  if (Array.isArray(v)) return `[${v.map(jcs).join(",")}]`;
  if (typeof v !== "object" || v === null) return JSON.stringify(v);
  return `{${Object.keys(v).sort().map((name) => `${JSON.stringify(name)}:${jcs(v[name])}`).join(",")}}`;
}

export const digest = (bytes) => "sha256:" + sha256(bytes, "hex");

const keys = new Map();

// signed says whether an Ed25519 key, given as a JWK's x, has signed bytes.
export function signed(x, bytes, signature) {
  if (signature?.length !== 64) return false;
  if (!keys.has(x)) keys.set(x, createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" }));
  return verify(null, Buffer.from(bytes), keys.get(x), signature);
}

// kidOf takes the key's name out of the one legal spelling of a protected header.
export function kidOf(header, typ) {
  const found = /^\{"alg":"EdDSA","kid":"([A-Za-z0-9_-]{43})","typ":"([a-z+-]+)"\}$/.exec(base64url(header)?.toString("latin1") ?? "");
  must(found !== null && found[2] === typ, `not the header of a ${typ}`);
  return found[1];
}

// open verifies a compact JWS and gives its claims. keyOf names the key of a kid, or nothing.
export function open(token, typ, keyOf) {
  const [header, payload, signature, ...more] = token.split(".");
  const key = keyOf(kidOf(header, typ));
  must(more.length === 0 && key && !key.raw && signed(key.x, `${header}.${payload}`, base64url(signature)), `the signature of a ${typ}`);
  const text = base64url(payload).toString();
  const claims = JSON.parse(text);
  must(jcs(claims) === text, `a ${typ} that is not canonical`);
  return claims;
}

const hash = (...parts) => parts.reduce((h, part) => h.update(part), createHash("sha256")).digest();
const LEAF = Buffer.of(0);
const NODE = Buffer.of(1);

const WIDTH = 256;

const hashesOf = (text) => {
  const all = Buffer.from(text, "base64");
  must(all.length % 32 === 0, "hashes of another length");
  return Array.from({ length: all.length / 32 }, (_, i) => all.subarray(32 * i, 32 * i + 32));
};

// readTile gives the leaf hashes of a tile: with the whole subtrees around it, in order, they make
// the root (RFC 9162 §2.1.1).
function readTile({ index, hashes, around }, size, root) {
  const first = index * WIDTH;
  const [leaves, rest, last] = [hashesOf(hashes), hashesOf(around), Math.min(first + WIDTH, size)];
  const tree = (from, to) => {
    let half = 1;
    while (half * 2 < to - from) half *= 2;
    const whole = to - from === 1 || half * 2 === to - from;
    if (whole && (to <= first || from >= last)) return rest.shift();
    if (to - from === 1) return leaves[from - first];
    return hash(NODE, tree(from, from + half), tree(from + half, to));
  };
  must(leaves.length === last - first && tree(0, size)?.equals(root) && rest.length === 0, "a tile that is not the log's");
  return { first, leaves };
}

// readCheckpoint takes a signed note apart; checkpointBy says whether a key has signed it.
export function readCheckpoint(note) {
  const [text, lines] = note.split(/(?<=\n)\n/);
  const [origin, size, root] = text.split("\n");
  const [, name, signature] = /^— (\S+) (\S+)\n$/.exec(lines) ?? [];
  must(name === origin, "a checkpoint that its log has not signed");
  return { text, origin, size: Number(size), root: Buffer.from(root, "base64"), signature: Buffer.from(signature, "base64") };
}

export function checkpointBy(checkpoint, x) {
  const id = hash(checkpoint.origin, "\n", Buffer.of(1), base64url(x)).subarray(0, 4);
  return checkpoint.signature.subarray(0, 4).equals(id) && signed(x, checkpoint.text, checkpoint.signature.subarray(4));
}

// parts gives the bytes of a record's parts, the names of those that are withheld, and its digest.
function parts(record) {
  const [sums, bodies, withheld] = [{}, {}, []];
  for (const [name, part] of Object.entries(record.parts)) {
    if (part.digest !== undefined) {
      must(Object.keys(part).length === 1, `part ${name} is both there and withheld`);
      sums[name] = part.digest;
      withheld.push(name);
      continue;
    }
    const body = part.text === undefined ? Buffer.from(part.base64 ?? "", "base64") : Buffer.from(part.text);
    const salt = Buffer.from(part.salt ?? "", "base64");
    must(salt.length === 32, `part ${name} has no salt`);
    sums[name] = hash(salt, body).toString("hex");
    bodies[name] = body;
  }
  return { bodies, withheld, digest: digest(jcs(sums)) };
}

// lines gives {header, blobs, records} of a whole log. Records are in order, and in
// the tree of the last checkpoint.
export function read(bytes, fail) {
  const all = bytes.toString("utf8").split("\n");
  must(all.pop() === "", "the last line has no end");
  const lines = all.map((line) => JSON.parse(line));
  const last = lines.pop().end;
  must(last && last.lines === lines.length, "the last line is missing");
  must(last.sha256 === sha256(bytes.subarray(0, bytes.lastIndexOf("\n", bytes.length - 2) + 1), "hex"), "other bytes than were written");
  const header = lines.shift()?.bundle;
  must(header?.v === 1 && header.from === 0 && header.complete && !header.tenant, "not the bundle of a whole log");
  const checkpoint = readCheckpoint(header.last);
  must(checkpoint.origin === header.origin && checkpoint.size === header.size, "another checkpoint than the header's");
  const [blobs, records] = [new Map(), []];
  let tile;
  for (const line of lines) {
    if (line.tile) {
      fail.position = records.length;
      tile = readTile(line.tile, header.size, checkpoint.root);
      continue;
    }
    if (line.blob) {
      const data = Buffer.from(line.blob.data, "base64");
      must(digest(data) === line.blob.digest, "a blob that is not what its digest says");
      blobs.set(line.blob.digest, data);
      continue;
    }
    fail.position = records.length;
    const r = line.record;
    must(r && r.position === records.length, "a record is left out");
    const { bodies, withheld, digest: record_digest } = parts(r);
    const leaf = hash(LEAF, jcs({ at: r.at, kind: r.kind, position: r.position, record_digest, tenant_tag: r.tag, v: 1 }));
    must(tile?.leaves[r.position - tile.first]?.equals(leaf), "not in the log");
    records.push({ ...r, bodies, withheld, digest: record_digest });
  }
  fail.position = -1;
  must(records.length === header.size, "records are left out");
  return { header, checkpoint, blobs, records };
}
