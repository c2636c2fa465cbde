// A second implementation of docs/spec/envelope.md, for the vectors beside it:
//
//	node verify.mjs TESTDATA
//
// prints a line {name, code, intent_id} for every vector. It does not read what
// a vector expects: the test that runs it compares.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import canonicalize from "canonicalize";
import { compactVerify, flattenedVerify, importJWK } from "jose";
import { MAX_SIZE, Refused, parse } from "./json.mjs";
import { createPublicKey, verify as ed25519 } from "node:crypto";
import { admit, base64url, rawSignature, sha256 } from "./keys.mjs";
import { isEnvelope, isGrant, isTransient } from "./shape.mjs";

const LEEWAY = 5000;
const pinned = { algorithms: ["EdDSA"] };

// kidOf takes the key's name out of the one legal spelling of a protected header.
function kidOf(header, typ, code) {
  const text = base64url(header)?.toString("latin1") ?? "";
  const kid = /^\{"alg":"EdDSA","kid":"([A-Za-z0-9_-]{43})","typ":"([a-z+-]+)"\}$/.exec(text);
  if (kid === null || kid[2] !== typ || base64url(kid[1]) === null) throw new Refused(code, "protected header");
  return kid[1];
}

async function verifySignature(code, verify, key) {
  try {
    return await verify(await importJWK({ kty: key.kty, crv: key.crv, x: key.x }, "EdDSA"));
  } catch {
    throw new Refused(code, "signature");
  }
}

async function openGrant(token, log, now) {
  const no = (why) => new Refused("GRANT_INVALID", why);
  const parts = token.split(".");
  const key = log.keys.get(kidOf(parts[0], "writ-grant+jws", "GRANT_INVALID"));
  if (key === undefined || key.revoked || key.role !== "gateway" || now > key.end) throw no("key");
  const payload = base64url(parts[1]);
  if (payload === null || base64url(parts[2])?.length !== 64) throw no("base64url");
  await verifySignature("GRANT_INVALID", (k) => compactVerify(token, k, pinned), key);
  let g;
  try {
    g = parse(payload);
  } catch {
    throw no("claims");
  }
  if (canonicalize(g) !== payload.toString("utf8") || !isGrant(g)) throw no("claims");
  if (g.iss !== log.origin || g.aud !== log.origin) throw no("log");
  if (!g.sub || !g.tenant || !g.jti) throw no("names nobody");
  const { iat, exp } = g;
  if (g.use !== undefined) throw no("for no intent"); // a grant for reading
  if (iat < 0 || iat > 253402300799 || exp <= iat || exp > iat + 900) throw no("life");
  if (now > exp * 1000 + LEEWAY || now < iat * 1000 - LEEWAY) throw no("time");
  return g;
}

async function checkActor(envelope, key, log, now) {
  const { actor, context = {} } = envelope;
  const forbid = (why) => new Refused("RBAC_FORBIDDEN", why);
  const no = (why) => new Refused("GRANT_INVALID", why);
  if (key.role === "operator") {
    if (actor.grant !== undefined) throw no("an operator has none");
    if (actor.user_id !== key.subject || actor.tenant !== key.tenant) throw forbid("not the operator");
    return;
  }
  if (actor.grant === undefined) throw no("missing");
  const g = await openGrant(actor.grant, log, now);
  if (actor.user_id !== g.sub || actor.tenant !== g.tenant) throw forbid("another actor");
  if (!(actor.roles ?? []).every((role) => (g.roles ?? []).includes(role))) throw forbid("roles");
  if ((context.session_id ?? "") !== (g.session_id ?? "") || (context.turn_id ?? "") !== (g.turn_id ?? "")) throw no("session");
  const work = [context.plan_id && `plan:${context.plan_id}`, context.run_id && `run:${context.run_id}`];
  if (g.for && !work.includes(g.for)) throw no("other work");
}

// verify answers with the intent_id, or throws a Refused.
async function verify(bytes, log, now) {
  const received = parse(bytes);
  if (typeof received !== "object" || received === null || Array.isArray(received)) throw new Refused("SCHEMA_INVALID", "no object");
  const { sig, transient, ...envelope } = received;
  const raw = typeof sig === "string" && sig.startsWith("ed25519:");
  const [header, signature, ...more] = typeof sig === "string" && !raw ? sig.split("..") : [];
  if (!raw && (signature === undefined || more.length > 0)) throw new Refused("SIGNATURE_INVALID", "sig");
  if (transient !== undefined && !isTransient(transient)) throw new Refused("SCHEMA_INVALID", "transient");
  if (Buffer.byteLength(canonicalize({ ...envelope, sig })) > MAX_SIZE) throw new Refused("PAYLOAD_TOO_LARGE", "canonical size");
  if (!isEnvelope(envelope)) throw new Refused("SCHEMA_INVALID", "shape");
  const { kid: named } = envelope.actor;
  const kid = raw ? named : kidOf(header, "writ-intent+jws", "SIGNATURE_INVALID");
  if (base64url(kid) === null || (named !== undefined && named !== kid)) throw new Refused("SIGNATURE_INVALID", "actor.kid");
  if ((raw ? rawSignature(sig) : base64url(signature))?.length !== 64) throw new Refused("SIGNATURE_INVALID", "signature");

  const key = log.keys.get(kid);
  if (key === undefined) throw new Refused("KEY_UNKNOWN", "key");
  if (key.revoked) throw new Refused("KEY_REVOKED", "key");
  const payload = Buffer.from(canonicalize(envelope)).toString("base64url");
  if (raw !== Boolean(key.raw)) throw new Refused("SIGNATURE_INVALID", "form");
  if (raw) {
    const x = createPublicKey({ key: { kty: key.kty, crv: key.crv, x: key.x }, format: "jwk" });
    if (!ed25519(null, Buffer.from(canonicalize(envelope)), x, rawSignature(sig))) throw new Refused("SIGNATURE_INVALID", "signature");
  } else await verifySignature("SIGNATURE_INVALID", (k) => flattenedVerify({ protected: header, payload, signature }, k, pinned), key);
  if (now > key.end) throw new Refused("KEY_REVOKED", "not_after");
  if (envelope.constraints.audience !== log.origin) throw new Refused("SIGNATURE_INVALID", "audience");
  await checkActor(envelope, key, log, now);

  const issued = Date.parse(envelope.constraints.issued_at);
  if (issued > now + LEEWAY) throw new Refused("NOT_YET_VALID", "issued_at");
  if (now > issued + envelope.constraints.ttl_sec * 1000 + LEEWAY) throw new Refused("EXPIRED_TTL", "ttl_sec");
  return "sha256:" + sha256(raw ? canonicalize(envelope) : `${header}.${payload}`, "hex");
}

// received gives the bytes of a vector. An intent as JSON may be written anyhow.
function received(vector) {
  if (vector.envelope !== undefined) return Buffer.from(canonicalize(vector.envelope));
  if (vector.raw_base64 !== undefined) return Buffer.from(vector.raw_base64, "base64");
  return Buffer.from(vector.raw ?? "");
}

const folder = process.argv[2];
const jwks = JSON.parse(readFileSync(join(folder, "keys.json"), "utf8"));
const admitted = (list) => list.map(admit).filter((key) => key !== null).map((key) => [key.kid, key]);
const known = admitted(jwks.keys);
for (const file of readdirSync(join(folder, "vectors")).sort()) {
  const vector = JSON.parse(readFileSync(join(folder, "vectors", file), "utf8"));
  const log = { origin: jwks.origin, keys: new Map([...known, ...admitted(vector.refused_keys ?? [])]) };
  const answer = { name: vector.name };
  try {
    answer.intent_id = await verify(received(vector), log, Date.parse(vector.now));
    answer.code = "OK";
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    answer.code = error.code;
  }
  console.log(JSON.stringify(answer));
}
