// Looks at the console in Chromium as a person without a mouse: axe-core finds nothing on any
// page, light and dark; an approval and a changed manifest are done with keys alone.
// It prints one JSON object of what it found. With a directory it leaves a picture of each page.
import chromium from "@sparticuz/chromium";
import axe from "axe-core";
import { chromium as browsers } from "playwright-core";

const { url, key, plan, held, refused, run, waiting, skill, pictures } = JSON.parse(process.argv[2]);
const found = { violations: [], errors: [], pages: 0 };
const browser = await browsers.launch({
  executablePath: await chromium.executablePath(), headless: true,
  args: ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const context = await browser.newContext({ viewport: { width: 1160, height: 720 } });
context.setDefaultTimeout(60_000);
const page = await context.newPage();
page.on("console", (m) => { if (m.type() === "error" && !m.text().includes("status of 4")) found.errors.push(m.text()); });
page.on("pageerror", (e) => found.errors.push(String(e)));

// look has axe judge the page, in both colour schemes.
async function look(name) {
  found.pages++;
  const size = (await page.content()).length;
  if (size > 60 << 10) found.violations.push(`${name}: the page has ${size} characters`);
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    for (const v of violations) found.violations.push(`${name} ${colorScheme}: ${v.id} ${v.nodes.map((n) => n.html).join(" ").slice(0, 300)}`);
  }
  await page.evaluate(() => scrollTo(0, 0));
  if (pictures) await page.screenshot({ path: `${pictures}/${name}.png` });
}

// to moves the focus with the tab key until a selector has it.
async function to(selector) {
  for (let i = 0; i < 200; i++) {
    if (await page.evaluate((s) => document.activeElement?.matches(s), selector)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`the tab key never reaches ${selector} on ${page.url()}`);
}

// press follows a link or sends a form, and waits for the page that comes.
async function press(selector) {
  await to(selector);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
}

const open = (path) => page.goto(url + path);
const said = () => page.textContent(".said");

await open("/console/approvals");
await look("login");
await page.keyboard.type(key);
await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
for (const name of ["now", "plans", "agents", "policies", "record", "health", "stop", "you", "approvals"]) {
  await open(`/console/${name}`);
  await look(name);
}

for (const [name, query] of [["record_narrow", "verdict=allow&type=plan.open"], ["record_empty", "user=nobody"]]) {
  await open(`/console/record?${query}`);
  await look(name);
}

await open("/console/plans/none");
await look("problem");
await open(`/console/plans/${run}`);
await look("run");
for (const step of [1, 2]) {
  await open(`/console/plans/${run}/logs?step=${step}`);
  await look(`log_${step}`);
}
await open(`/console/plans/${waiting}`);
await look("run_waits");
await to("details:has(form[action$=cancel]) > summary");
await page.keyboard.press("Enter");
await press("form[action$=cancel] button");
found.cancelled = await said();

const second = await context.newPage();
await second.goto(`${url}/console/now`);
await second.waitForFunction(() => document.title.startsWith("(1) ") && document.getElementById("state").textContent === "live");
const first = await second.textContent("#live tbody tr");
for (const [name, id] of [["intent_waits", held], ["intent_refused", refused]]) {
  await open(`/console/intents/${id}`);
  await look(name);
}
await open("/console/approvals");
await press(`a[href="/console/approvals/${held}"]`);
await look("approval");
await page.setViewportSize({ width: 390, height: 844 });
await look("approval_phone");
found.phone = await page.evaluate(() => [...document.querySelectorAll("#decide .buttons button")].filter((b) => !b.closest("details")).every((b) => { const r = b.getBoundingClientRect(); return r.bottom <= innerHeight && r.right <= innerWidth && r.height >= 44; }));
await page.setViewportSize({ width: 1160, height: 720 });
await press("button[value=approve]");
found.approved = await said();
await second.waitForFunction((was) => document.querySelector("#live tbody tr").textContent !== was, first);
await second.waitForFunction(() => !document.title.startsWith("("));
found.live = true;
await second.close();
const many = []; // a browser opens six connections to one server
for (let i = 0; i < 8; i++) {
  const p = await context.newPage();
  await p.goto(`${url}/console/plans`);
  await p.waitForFunction(() => document.getElementById("state").textContent === "live");
  many.push(p);
}
for (const p of many) await p.close();
found.many = many.length;

await open("/console/stop");
await to("#agent-sample-agent");
await page.keyboard.press("Space");
await to("#reason");
await page.keyboard.type("It writes to strangers.");
await press("button[value=ask]");
await look("stop_confirm");
const third = await context.newPage();
await third.goto(`${url}/console/plans`);
await third.waitForFunction(() => document.getElementById("state").textContent === "live");
await press("button[value=stop]");
found.stopped = await said();
await third.waitForSelector("#stops .problem");
await third.close();
await look("stopped");
await press("button[value=resume]");
found.alone = await page.textContent("main");
await open("/console/stop");
// A session that is about to end says so, and a link keeps it with what was typed.
await page.clock.install();
await page.reload();
await page.fill("#reason", "typed");
await page.route("**/console/session", (r) => r.fulfill({ json: { seconds: 290, last: false, csrf: "" } }));
await page.clock.runFor(56 * 60_000);
await page.waitForSelector("#ends:not([hidden])");
found.warned = await page.textContent("#ends");
await page.unroute("**/console/session");
await page.click("#ends a");
await page.waitForSelector("#ends", { state: "hidden" });
found.typed = await page.inputValue("#reason");
await page.clock.resume();

await open("/console/agents");
await press(`a[href="/console/skills/${skill}"]`);
await look("skill");
found.diff = await page.textContent("main");
found.diff = found.diff.includes("-") && found.diff.includes("What has changed");
await press("form:not(.me) button.main");
found.manifest = await said();

await open("/console/policies?file=authz%2Fskills.rego");
await look("policies");
found.tree = (await page.textContent("main")).includes("package writ.authz");

await open(`/console/plans/${plan}`);
await to("[data-verify]");
await page.keyboard.press("Enter");
await page.waitForFunction(() => !document.querySelector("[data-verify]").disabled && document.getElementById("verified").textContent !== "");
found.verified = await page.textContent("#verified");
await look("plan");
await open(`/console/intents/${held}`);
await look("intent");
found.chain = await page.$$eval("ol.chain h2", (all) => all.map((h) => h.textContent));
await open(`/console/policies/explain/${held}`);
await look("explain");
await open(`/console/approvals/${held}`);
await look("approval_ended");
found.cookie = await page.evaluate(async () => [document.cookie, (await fetch("/v1/me")).status]);

console.log(JSON.stringify(found));
await browser.close();
