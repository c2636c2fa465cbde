// Drives the console in Chromium as people do: by mouse, keyboard and touch, on a desktop and on a phone.
// It prints one JSON object of what it found.
import chromium from "@sparticuz/chromium";
import axe from "axe-core";
import { chromium as browsers } from "playwright-core";

const given = JSON.parse(process.argv[2]), { url, pictures } = given;
const browser = await browsers.launch({
  executablePath: await chromium.executablePath(), headless: true,
  args: ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const desktop = { width: 1160, height: 720 }, phone = { width: 390, height: 844 };
const found = { violations: [], errors: [], looks: 0, targets: 0, said: [], order: [], alone: [] };

// visitor opens a page in a browser of its own.
async function visitor(options = {}) {
  const context = await browser.newContext({ viewport: desktop, ...options });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error" && !m.text().includes("status of 4")) found.errors.push(m.text()); });
  page.on("pageerror", (e) => found.errors.push(String(e)));
  return page;
}

// hand is a way to use a page: it presses, and types into, what a locator finds.
function hand(page, way) {
  const reach = async (at) => {
    if (way === "mouse") return at.click();
    if (way === "touch") return at.tap();
    await at.waitFor();
    for (let i = 0; i < 300; i++) {
      if (await at.evaluate((e) => e === document.activeElement)) return;
      await page.keyboard.press("Tab");
    }
    throw new Error(`the tab key never reaches ${at} on ${page.url()}`);
  };
  const press = async (at, key = "Enter") => { await reach(at); if (way === "keyboard") await page.keyboard.press(key); };
  return {
    press,
    tick: (at) => press(at, "Space"),
    type: async (at, text) => { await reach(at); await page.keyboard.press("ControlOrMeta+A"); await page.keyboard.type(text); },
    go: (at) => Promise.all([page.waitForNavigation(), press(at)]),
  };
}

const button = (page, name) => page.getByRole("button", { name, exact: true });
const said = (page) => page.textContent(".said");

async function logIn(page, h, key, path) {
  await page.goto(`${url}/console/${path}`);
  await h.type(page.getByLabel("API key"), key);
  await h.go(button(page, "Log in"));
}

// small lists the targets of a page with less than 44 pixels. Links within sentences may be as high as their
// line, and those of tables where people point with a mouse.
function small(coarse) {
  const out = [];
  let all = 0;
  for (const e of document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")) {
    const tick = ["checkbox", "radio"].includes(e.type), at = tick && e.labels[0] ? e.labels[0] : e;
    const r = at.getBoundingClientRect();
    if (!e.checkVisibility() || r.width === 0 || r.right < 0 || e.closest("svg")) continue;
    if (e.tagName === "A" && (e.closest("p, dd, caption, h1, h2, pre, blockquote, summary, small") || e.closest("td") && !coarse)) continue;
    all++;
    if (r.height < 43.5 || r.width < 43.5) out.push(`${r.width.toFixed()}x${r.height.toFixed()} ${e.outerHTML.slice(0, 120)}`);
  }
  return { all, out };
}

// look has axe judge the state that a page is in, light and dark, and measures its targets.
async function look(page, name, way, judge) {
  const { all, out } = await page.evaluate(small, way === "touch");
  found.targets += all;
  for (const o of out) found.violations.push(`${name} by ${way}: ${o}`);
  if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) found.violations.push(`${name} by ${way}: the page is wider than its window`);
  if (!judge) return;
  found.looks++;
  await page.evaluate(axe.source);
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    for (const v of violations) found.violations.push(`${name} ${colorScheme}: ${v.id} ${v.nodes.map((n) => n.html).join(" ").slice(0, 300)}`);
  }
}

async function ten() {
  const page = await visitor(), knows = ["Acme Ltd", "Nordlicht GmbH"], decided = [];
  const h = hand(page, "mouse");
  await logIn(page, h, given.key, "approvals");
  const seen = new Set();
  for (;;) {
    await page.goto(`${url}/console/approvals`);
    const rows = await page.getByRole("row").filter({ hasText: "may decide" }).all();
    let row;
    for (const r of rows) if (!seen.has(await r.innerText())) { row = r; break; }
    if (!row) break;
    seen.add(await row.innerText());
    await h.go(row.getByRole("link").first());
    const text = await page.locator("main").innerText(), name = (n) => new RegExp(`^${n}\\t(.*)$`, "m").exec(text)?.[1];
    if (["121", "122"].includes(name("amount"))) continue; // for the other attempts
    const note = /^text\t/m.test(text);
    const approve = !text.includes("another version") && (note || knows.includes(name("payee")) && Number(name("amount")) <= 500);
    let actions = 0;
    if (!approve) {
      await h.type(page.getByLabel(/^Why do you reject it/), "This is not what we pay.");
      actions++;
    }
    await h.go(button(page, approve ? "Approve" : "Reject"));
    actions++;
    decided.push({ text: name("payee") ?? "a note", said: approve ? "approve" : "reject", actions, shown: await said(page) });
  }
  const edit = async (p, id) => {
    await p.goto(`${url}/console/approvals/${id}`);
    await p.getByText("Edit the arguments").click();
    const args = p.getByLabel("Arguments, as JSON");
    await args.fill((await args.inputValue()).replace("Acme Ltd", "Nordlicht GmbH"));
    await Promise.all([p.waitForNavigation(), p.locator("#decide button.main").click()]);
  };
  await edit(page, given.trap);
  const trap = await said(page);
  const plain = await visitor({ javaScriptEnabled: false });
  await logIn(plain, hand(plain, "mouse"), given.key, "approvals");
  await edit(plain, given.untouched);
  return { decided, trap, unscripted: await plain.textContent("[role=alert].deny") };
}

// flow does all that people do, one way.
async function flow(way, size, f, judge) {
  const page = await visitor({ viewport: size, hasTouch: way === "touch", colorScheme: way === "mouse" ? "light" : "dark" }), h = hand(page, way), all = [];
  const see = (name) => look(page, `${name}_${size.width}`, way, judge);
  const open = async (id, name) => {
    await page.goto(`${url}/console/approvals`);
    if (name === "approve") await see("approvals");
    await h.go(page.locator(`a[href$="/approvals/${id}"]`));
    await see(name);
  };
  await page.goto(`${url}/console/approvals`);
  await see("login");
  await logIn(page, h, given.key, "approvals");
  await open(f.Approve, "approve");
  await h.go(button(page, "Approve"));
  all.push(await said(page));
  await see("approved");

  await open(f.Reject, "reject");
  await h.press(button(page, "Reject"));
  await page.waitForSelector("#reason[aria-invalid]");
  await see("reject_why");
  await h.type(page.locator("#reason"), "Too much.");
  await h.go(button(page, "Reject"));
  all.push(await said(page));

  await open(f.Edit, "edit");
  await h.press(page.locator("summary", { hasText: "Edit the arguments" }));
  const args = page.locator("#args");
  await h.type(args, (await args.inputValue()).replace(/"amount": *\d+/, '"amount": 1').replace(/\s+/g, " "));
  await see("edited");
  await h.go(page.locator("#decide button.main"));
  all.push(await said(page));

  await open(f.Session, "session");
  await h.press(page.locator("summary", { hasText: "Also for this session" }));
  await h.type(page.getByLabel("How many"), "3");
  await h.tick(page.getByLabel("topic", { exact: true }));
  await see("session_open");
  if (pictures && judge && size === desktop) await page.screenshot({ path: `${pictures}/session.png`, fullPage: true });
  await h.go(button(page, "Approve, also for this session"));
  all.push(await said(page));
  await page.goto(`${url}/console/approvals`);
  await see("standing");
  if (pictures && judge && size === desktop) await page.screenshot({ path: `${pictures}/standing.png`, fullPage: true });
  await h.go(button(page, "Withdraw"));
  all.push(await said(page));

  await page.goto(`${url}/console/stop`);
  await see("stop");
  await h.tick(page.locator("#agent-composer"));
  await h.type(page.locator("#reason"), "It pays strangers.");
  await h.go(button(page, "Stop…"));
  await see("stop_confirm");
  await h.go(button(page, "Stop it now"));
  all.push(await said(page));
  await see("stopped");
  const other = await visitor({ viewport: size, hasTouch: way === "touch" }), o = hand(other, way);
  await logIn(other, o, given.cleo, "stop");
  await o.go(button(other, "Let everything go on"));
  all.push(await said(other));
  await other.context().close();

  await page.goto(`${url}/console/agents`);
  await see("agents");
  await h.go(page.locator(`a[href$="/skills/${f.Skill}"]`).first());
  await see("skill");
  await h.go(page.locator("main button.main"));
  all.push(await said(page));

  await h.type(page.locator("#q"), f.Approve);
  await h.go(button(page, "Find"));
  await see("found");
  for (const path of ["now", "plans", "policies", "record", "health", "you"]) {
    await page.goto(`${url}/console/${path}`);
    await see(path);
  }
  await h.go(button(page, "Log out"));
  await logIn(page, h, f.Key, `plans/${f.Plan}`);
  await h.press(page.locator("summary", { hasText: "Cancel this plan" }));
  await see("cancel");
  await h.go(button(page, "Cancel it"));
  all.push(await said(page));
  await page.context().close();
  return all;
}

// live has one approver see what is asked and what another one decides, and then only open pages.
async function live() {
  const cleo = await visitor(), ben = await visitor();
  for (const [p, key] of [[cleo, given.cleo], [ben, given.key]]) {
    await logIn(p, hand(p, "mouse"), key, "approvals");
    await p.waitForFunction(() => document.getElementById("state").textContent === "live");
  }
  const answer = await fetch(`${url}/agent/run`, {
    method: "POST", headers: { "Content-Type": "application/json", "X-Api-Key": given.ana },
    body: JSON.stringify({ agent: "general", message: 'CALL till.pay {"payee":"A new one","amount":7} NOW' }),
  });
  const asked = performance.now(), { approval } = await answer.json();
  found.order.push("asked");
  await cleo.waitForFunction((id) => document.querySelector(`#live a[href$="${id}"]`), approval.intent_id, { polling: "raf" });
  found.shownMS = performance.now() - asked;
  found.order.push("shown");
  await ben.goto(`${url}/console/approvals/${approval.intent_id}`);
  await Promise.all([ben.waitForNavigation(), button(ben, "Approve").click()]);
  await cleo.waitForFunction((id) => !document.querySelector(`#live a[href$="${id}"]`), approval.intent_id);
  found.order.push("gone");

  // A browser has six connections, and each page takes one.
  for (const [who, names] of [[ben, ["now", "plans", "agents", "policies"]], [cleo, ["record", "health", "stop", "you"]]]) {
    for (const name of names) {
      const p = await who.context().newPage();
      await p.goto(`${url}/console/${name}`);
      await p.waitForFunction(() => document.getElementById("state").textContent === "live");
    }
  }
  const position = async () => (await (await fetch(`${url}/v1/me`, { headers: { "X-Api-Key": given.key } })).json()).position;
  // A stream of a page of its own says every two seconds that it is there.
  const alive = (n) => ben.evaluate(async (n) => {
    const reader = (await fetch("/console/live", { headers: { Accept: "text/event-stream" } })).body.getReader();
    for (let seen = 0; seen < n;) seen += new TextDecoder().decode((await reader.read()).value).split(": nothing").length - 1;
    await reader.cancel();
  }, n);
  for (let i = 0; i < 10 && found.idle !== 0; i++) {
    const before = await position();
    await alive(4);
    found.idle = await position() - before;
  }
}

async function alone({ url, key, person, held }) {
  for (const k of [key, person]) {
    const page = await visitor();
    await page.goto(`${url}/console/approvals/${held}`);
    await page.getByLabel("API key").fill(k);
    await Promise.all([page.waitForNavigation(), button(page, "Log in").click()]);
    await look(page, k === key ? "alone" : "in_person", "mouse", true);
    if (pictures && k === key) await page.screenshot({ path: `${pictures}/alone.png` });
    if (k === person) await Promise.all([page.waitForNavigation(), button(page, "Approve").click()]);
    found.alone.push(await page.textContent("main"));
    await page.context().close();
  }
}

if (given.what === "ten") {
  console.log(JSON.stringify(await ten()));
} else {
  let i = 0;
  for (const size of [desktop, phone]) {
    for (const way of ["mouse", "keyboard", "touch"]) found.said.push(await flow(way, size, given.flows[i++], way === "touch"));
  }
  await live();
  if (given.alone) await alone(given.alone);
  console.log(JSON.stringify(found));
}
await browser.close();
