// The console's one script: it brings a page up to date when something was decided, says on the
// buttons of a decision what they send, and verifies receipts and proofs in the browser. Without
// it every page works as well.
"use strict";

const below = (path) => new URL(`../${path}`, base);
const base = document.currentScript.src;

// Times are shown as they are where the browser is, with UTC when they are pointed at.
function localize(within) {
  for (const t of within.querySelectorAll("time:not([title])")) {
    t.title = t.textContent;
    t.textContent = new Date(t.dateTime).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
  }
}
localize(document);

// What a page shows of the moment stands in #live. It is replaced unless somebody is in it. How many
// approvals wait stands in the title and in the navigation of every page.
const state = document.getElementById("state"), live = document.getElementById("live");
if (state) {
  const title = document.title.replace(/^\(\d+\) /, "");
  let late = false;
  const update = async () => {
    if (!live) return;
    if (live.contains(document.activeElement)) { late = true; return; }
    late = false;
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = page.getElementById("live");
    if (!now) return;
    live.replaceChildren(...now.childNodes);
    localize(live);
  };
  const banner = async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    const now = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("stops");
    if (!now) return;
    document.getElementById("stops").replaceChildren(...now.childNodes);
    localize(document.getElementById("stops"));
  };
  const count = (data) => {
    const { waiting, stops } = JSON.parse(data);
    if (stops !== document.getElementById("stops").childElementCount) banner();
    document.title = waiting ? `(${waiting}) ${title}` : title;
    document.getElementById("waiting").textContent = waiting ? `(${waiting})` : "";
  };
  const hear = ({ type, data }) => {
    if (type === "ask") return;
    state.textContent = type === "error" ? "paused" : "live";
    if (type === "ended") state.replaceChildren("signed out: ", Object.assign(document.createElement("a"), { href: below("login"), textContent: "log in" }));
    if (data) count(data);
    if (type === "changed") update();
  };
  // A browser opens few connections to one server, so one page reads the stream for all of them.
  const pages = new BroadcastChannel(`live ${base}`);
  let stream, now = "error";
  const tell = (type, data) => { now = type; hear({ type, data }); pages.postMessage({ type, data }); };
  const end = () => { stream?.close(); stream = null; };
  const read = (done) => {
    stream = new EventSource(below("live"));
    stream.addEventListener("open", () => tell("open"));
    for (const type of ["began", "changed"]) stream.addEventListener(type, (e) => tell(type, e.data));
    stream.addEventListener("error", async () => {
      tell("error");
      if (stream.readyState !== EventSource.CLOSED) return;
      const answer = await fetch(below("live"), { headers: { Accept: "text/plain" } }).catch(() => null);
      answer?.body?.cancel();
      if (answer?.status !== 401) return;
      tell("ended");
      end();
      done?.(); // the next page may have another session
    });
  };
  pages.addEventListener("message", (e) => { if (!stream) hear(e.data); else if (e.data.type === "ask") pages.postMessage({ type: now === "changed" ? "began" : now }); });
  pages.postMessage({ type: "ask" });
  if (navigator.locks) navigator.locks.request(`live ${base}`, () => new Promise((done) => { read(done); addEventListener("pagehide", done); }));
  else { // over HTTP from another machine: the pages that are looked at
    const look = () => { if (document.hidden) end(); else if (!stream) { read(); update(); } };
    document.addEventListener("visibilitychange", look);
    look();
  }
  live?.addEventListener("focusout", () => { if (late) setTimeout(update, 0); });
  addEventListener("pagehide", end);
}

// A page warns five minutes before its session ends, and keeps it without leaving the page. After
// the same person has logged in again in another window its forms are of that session.
const ends = document.getElementById("ends");
if (ends) {
  const [said, link] = ends.children;
  let timer;
  const wait = ({ seconds, last, csrf, who }) => {
    clearTimeout(timer);
    if (csrf && who === ends.dataset.who) for (const field of document.querySelectorAll("input[name=csrf]")) field.value = csrf;
    ends.hidden = seconds > 300;
    if (!ends.hidden) {
      const minutes = Math.ceil(seconds / 60);
      said.textContent = seconds > 0 ? `Your session ends in ${minutes} ${minutes === 1 ? "minute" : "minutes"}.` : "Your session has ended. What you have typed is still here.";
      const again = last || seconds <= 0;
      link.textContent = again ? "Log in again in another window" : "Keep it";
      link.href = again ? below("login") : location.href;
      link.target = again ? "_blank" : "";
    }
    if (seconds > 0) timer = setTimeout(look, 1000 * (seconds > 300 ? seconds - 300 : Math.min(seconds, 60)));
  };
  const ask = async (method, body) => {
    const answer = await fetch(below("session"), { method, body, headers: { Accept: "application/json" } }).catch(() => null);
    if (answer?.ok) wait(await answer.json());
    else if (answer?.status === 401) wait({ seconds: 0 });
    return answer?.ok;
  };
  const look = () => ask("GET");
  link.addEventListener("click", async (e) => {
    if (link.target) return;
    e.preventDefault();
    if (await look()) await ask("POST", new URLSearchParams({ csrf: document.querySelector("input[name=csrf]").value }));
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !ends.hidden) look(); });
  wait({ seconds: Number(ends.dataset.seconds), last: "last" in ends.dataset });
}

// The form of a decision: an edit turns Approve into sending it, items are counted, and a refusal
// asks for its reason before it is sent.
const form = document.getElementById("decide");
if (form) {
  const approve = form.querySelector("button.main"), [args, reason] = [form.elements.args, form.elements.reason];
  const items = [...form.querySelectorAll("[name=item]")];
  const update = () => {
    const count = items.filter((i) => i.checked).length, edited = args && ("edited" in args.dataset || args.value !== args.defaultValue);
    approve.value = edited ? "edit" : "approve";
    approve.textContent = edited ? "Send the edited version for approval" : items.length ? `Approve selected (${count})` : "Approve";
    approve.disabled = items.length > 0 && count === 0;
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (e) => {
    if (!["reject", "request_changes"].includes(e.submitter?.value) || reason.value.trim()) return;
    e.preventDefault();
    reason.setAttribute("aria-invalid", "true");
    reason.focus();
  });
  update();
}

// The page of an open plan shows how far its calls are, in the words of their servers.
const progress = document.getElementById("progress");
if (progress) {
  const stream = new EventSource(`${location.pathname}/events`);
  stream.addEventListener("status", (e) => {
    const { intent_id: id, progress: n, total, message } = JSON.parse(e.data).data;
    if (id) progress.textContent = [total ? `${n || 0} of ${total}` : n, message].filter(Boolean).join(": ");
  });
  stream.addEventListener("done", () => { progress.textContent = ""; stream.close(); });
  addEventListener("pagehide", () => stream.close());
}

const bytes = (base64) => Uint8Array.from(atob(base64.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const text = (s) => new TextEncoder().encode(s);
const hash = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer()));
const same = (a, b) => a.length === b.length && a.every((v, i) => v === b[i]);

async function signed(key, signature, message) {
  const k = await crypto.subtle.importKey("raw", bytes(key.x), "Ed25519", false, ["verify"]);
  return crypto.subtle.verify("Ed25519", k, signature, message);
}

// root of a tree of size leaves that has the leaf at index (RFC 9162, section 2.1.3.2).
async function root(index, size, leaf, path) {
  let fn = BigInt(index), sn = BigInt(size) - 1n, r = leaf;
  for (const p of path) {
    if (sn === 0n) return new Uint8Array();
    if (fn & 1n || fn === sn) {
      r = await hash(Uint8Array.of(1), p, r);
      while (!(fn & 1n) && fn !== 0n) { fn >>= 1n; sn >>= 1n; }
    } else {
      r = await hash(Uint8Array.of(1), r, p);
    }
    fn >>= 1n; sn >>= 1n;
  }
  return sn === 0n ? r : new Uint8Array();
}

// verify says what does not hold of an intent's receipt and proof; nothing: all holds.
async function verify(id) {
  const answer = await fetch(below(`intents/${encodeURIComponent(id)}/proof`));
  const doc = await answer.json();
  if (!answer.ok) return `${doc.code}: ${doc.detail || doc.title}`;
  const keys = doc.keys.keys, at = doc.inclusion;
  const [head, body, signature] = doc.receipt.split(".");
  const kid = JSON.parse(new TextDecoder().decode(bytes(head))).kid;
  const router = keys.find((k) => k.kid === kid && k.role === "router" && !k.revoked);
  if (!router || !await signed(router, bytes(signature), text(`${head}.${body}`))) return "the receipt's signature does not hold";
  const receipt = JSON.parse(new TextDecoder().decode(bytes(body))), leaf = JSON.parse(at.leaf);
  if (receipt.intent_id !== id || receipt.position !== at.position || leaf.position !== at.position || leaf.record_digest !== receipt.record_digest) return "receipt and leaf are of different records";
  const end = at.checkpoint.indexOf("\n\n") + 1, note = at.checkpoint.slice(0, end);
  const [origin, size, top] = note.split("\n");
  if (origin !== receipt.iss) return "the checkpoint is of another log";
  let holds = false;
  for (const line of at.checkpoint.slice(end + 1).trim().split("\n")) {
    const [, name, sig] = line.split(" ");
    if (name !== origin) continue;
    for (const k of keys.filter((k) => k.role === "ledger")) holds ||= await signed(k, bytes(sig).slice(4), text(note));
  }
  if (!holds) return "the checkpoint's signature does not hold";
  const leafHash = await hash(Uint8Array.of(0), text(at.leaf));
  if (!same(await root(at.position, size, leafHash, (at.hashes || []).map(bytes)), bytes(top))) return "the leaf is not in the checkpoint";
  return "";
}

// A button with data-verify verifies all intents of its page, one after the other.
document.addEventListener("click", async (e) => {
  const button = e.target.closest("[data-verify]");
  if (!button) return;
  button.disabled = true;
  const said = document.getElementById("verified");
  let good = 0, bad = 0;
  for (const place of document.querySelectorAll("[data-intent]")) {
    let wrong;
    try { wrong = await verify(place.dataset.intent); } catch (err) { wrong = `it could not be verified: ${err.message}`; }
    place.textContent = wrong ? `✗ ${wrong}` : "✓ holds";
    place.className = wrong ? "gone" : "done";
    if (wrong) bad++; else good++;
    said.textContent = `${good} hold, ${bad} do not.`;
  }
  button.disabled = false;
});
