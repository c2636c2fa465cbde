// The closed shape of an intent, without a schema library.

const all = (...checks) => (v) => checks.every((check) => check(v));
const text = (pattern) => (v) => typeof v === "string" && pattern.test(v);
const characters = (least, most) => (v) => typeof v === "string" && [...v].length >= least && [...v].length <= most;
const whole = (least, most) => (v) => Number.isInteger(v) && v >= least && v <= most;
const list = (most, each) => (v) => Array.isArray(v) && v.length <= most && new Set(v).size === v.length && v.every(each);
const isObject = (v) => typeof v === "object" && v !== null && !Array.isArray(v);

// closed: members as named, those with a ! must be there.
function closed(members) {
  const checks = new Map(Object.entries(members).map(([name, check]) => [name.replace("!", ""), check]));
  const required = Object.keys(members).filter((name) => name.endsWith("!")).map((name) => name.slice(0, -1));
  return (v) => isObject(v) && required.every((name) => Object.hasOwn(v, name)) && Object.keys(v).every((name) => checks.has(name) && checks.get(name)(v[name]));
}

const id = text(/^[A-Za-z0-9_.-]{1,64}$/);
const digest = text(/^sha256:[0-9a-f]{64}$/);
const count = whole(1, 1000000);
const path = text(/^[1-9][0-9]{0,5}\.(0|[1-9][0-9]{0,2})$/);

// seen: a text without control characters and invisible ones.
const seen = text(/^[^\u{0}-\u{1f}\u{7f}-\u{a0}\u{ad}\u{34f}\u{61c}\u{115f}-\u{1160}\u{1680}\u{17b4}-\u{17b5}\u{180b}-\u{180f}\u{2000}-\u{200f}\u{2028}-\u{202f}\u{205f}-\u{206f}\u{2800}\u{3000}\u{3164}\u{fe00}-\u{fe0f}\u{feff}\u{ffa0}\u{fff0}-\u{fffc}\u{13430}-\u{1343f}\u{13441}-\u{13442}\u{16fe4}\u{1bca0}-\u{1bca3}\u{1d159}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]*$/u);

// time: a day and time of the calendar, in the one spelling of ISO 8601 that
// ECMAScript writes itself.
function time(v) {
  if (typeof v !== "string" || !/^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$/.test(v)) return false;
  const at = new Date(v);
  return !Number.isNaN(at.getTime()) && at.toISOString() === v;
}

export const isEnvelope = closed({
  "version!": (v) => v === "1.0",
  "intent!": closed({ "type!": id, "args!": isObject }),
  "actor!": closed({
    "user_id!": id,
    "tenant!": id,
    roles: list(64, id),
    kid: text(/^[A-Za-z0-9_-]{43}$/),
    grant: all(characters(1, 16384), text(/^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/)),
  }),
  "constraints!": closed({
    "issued_at!": time,
    "ttl_sec!": whole(1, 300),
    "audience!": characters(1, 256),
    "idempotency_key!": all(characters(1, 256), seen),
    capabilities: list(32, text(/^[a-z0-9_.-]{1,64}:[a-z0-9_.-]{1,64}(:[A-Za-z0-9_.-]{1,64})?$/)),
  }),
  context: closed({
    session_id: id,
    turn_id: id,
    plan_id: id,
    revision: count,
    step: count,
    task_id: id,
    run_id: id,
    node_id: id,
    occurrence: count,
    ask: path,
    call: path,
    tool: text(/^[A-Za-z0-9_.-]{1,128}$/),
    agent: closed({ "name!": id, "digest!": digest }),
    cause: digest,
    labels: (v) => isObject(v) && Object.keys(v).length <= 32 && Object.entries(v).every(([name, label]) => id(name) && characters(0, 256)(label)),
  }),
  trace_id: all(characters(1, 128), seen),
});

const string = (v) => typeof v === "string";
const seconds = (v) => Number.isInteger(v);
// An empty list may be null.
const strings = (v) => v === null || (Array.isArray(v) && v.every(string));

export const isGrant = closed({
  "iss!": string,
  "aud!": string,
  "sub!": string,
  "tenant!": string,
  "roles!": strings,
  "act!": closed({ "client!": string, "amr!": strings }),
  session_id: string,
  turn_id: string,
  "iat!": seconds,
  "exp!": seconds,
  use: string,
  "jti!": string,
  for: string,
});

const beside = (most) => closed({ "salt!": text(/^[A-Za-z0-9+/]{43}=$/), "text!": characters(1, most) });
const besides = closed({ added_instruction: beside(4096), user_email: beside(320), user_name: beside(256) });

export const isTransient = (v) => besides(v) && Object.keys(v).length > 0 && Object.values(v).every(({ salt }) => Buffer.from(salt, "base64").toString("base64") === salt);
