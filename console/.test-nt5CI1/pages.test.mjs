// test/browser/pages.test.ts
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// test/browser/browser.ts
import { chromium } from "playwright-core";
import { mkdirSync } from "node:fs";
import net from "node:net";
import path from "node:path";
var FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync"
];
var HEIGHT = 900;
var Cable = class {
  #sockets = /* @__PURE__ */ new Set();
  #isCut = false;
  #server;
  constructor(to) {
    this.#server = net.createServer((near) => {
      if (this.#isCut) return void near.destroy();
      const far = net.connect(Number(to.port || 80), to.hostname);
      for (const [from, into] of [[near, far], [far, near]]) {
        this.#sockets.add(from);
        from.pipe(into);
        from.on("error", () => into.destroy());
        from.on("close", () => {
          into.destroy();
          this.#sockets.delete(from);
        });
      }
    });
  }
  async open() {
    await new Promise((done) => this.#server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${this.#server.address().port}`;
  }
  cut() {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }
  mend() {
    this.#isCut = false;
  }
  close() {
    this.cut();
    this.#server.close();
  }
};
var out = process.env["SUIMON_CONSOLE_OUT"] ?? "";
var given = new URL(process.env["SUIMON_CONSOLE_URL"] ?? "http://127.0.0.1:7446");
var cable = new Cable(given);
var base = await cable.open();
async function open() {
  const context = await chromium.launchPersistentContext(process.env["SUIMON_CONSOLE_PROFILE"] ?? "", {
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: FLAGS,
    viewport: { width: 1400, height: HEIGHT }
  });
  context.setDefaultTimeout(12e4);
  const page2 = context.pages()[0] ?? await context.newPage();
  const complaints = [];
  observe(page2, complaints);
  return { context, page: page2, complaints };
}
function observe(page2, complaints) {
  page2.on("console", (message) => {
    if (message.type() === "error" && !/401/.test(message.text())) complaints.push(message.text());
  });
  page2.on("pageerror", (error) => complaints.push(String(error)));
  page2.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== base && protocol !== "data:") complaints.push(`a request went to ${request.url()}`);
  });
}
async function logIn(page2) {
  const token = process.env["SUIMON_CONSOLE_TOKEN"];
  if (given.hash.includes("code=")) {
    await page2.goto(`${base}/${given.hash}`);
  } else {
    await page2.goto(`${base}/#/disks`);
    await page2.getByLabel(/Code or token/).fill(token ?? "");
    await page2.getByRole("button", { name: "Log in" }).click();
  }
  await page2.locator("h1").first().waitFor();
}
async function look(page2, { language, theme, width }) {
  await page2.evaluate((kept) => localStorage.setItem("suimon.console", kept), JSON.stringify({ language, theme }));
  await page2.setViewportSize({ width, height: HEIGHT });
  await page2.reload();
}
async function visit(page2, place) {
  await page2.goto(`${base}/#/${place}`);
  await page2.locator("#main h1").waitFor();
  await page2.waitForFunction(() => document.querySelector(".loading") === null);
  await page2.waitForTimeout(2500);
}
async function picture(page2, name) {
  if (out === "") return;
  mkdirSync(out, { recursive: true });
  const size = page2.viewportSize() ?? { width: 1400, height: HEIGHT };
  const height = await page2.evaluate(() => {
    const main = document.querySelector("#main");
    return main ? main.scrollHeight + main.getBoundingClientRect().top + 24 : document.documentElement.scrollHeight;
  });
  await page2.setViewportSize({ width: size.width, height: Math.min(6e3, Math.max(HEIGHT, Math.ceil(height))) });
  await page2.waitForTimeout(300);
  await page2.screenshot({ path: path.join(out, `${name}.png`) });
  await page2.setViewportSize(size);
}

// test/browser/pages.test.ts
var axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
var LOOKS = [
  { language: "en", theme: "light", width: 1400 },
  { language: "ja", theme: "dark", width: 1400 },
  { language: "en", theme: "dark", width: 400 },
  { language: "ja", theme: "light", width: 400 }
];
var ALL = process.env["SUIMON_CONSOLE_LOOKS"] === "all";
var console_;
var page;
before(async () => {
  console_ = await open();
  page = console_.page;
});
after(async () => {
  await console_.context.close();
  cable.close();
});
async function violations(of = page) {
  await of.evaluate(axeSource);
  return of.evaluate(async () => {
    const axe = window.axe;
    const found = await axe.run({ resultTypes: ["violations"] });
    return found.violations.map((one) => `${one.impact} ${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
}
async function names(endpoint) {
  return page.evaluate(async (path2) => {
    const answer = await (await fetch(path2)).json();
    return answer.map((one) => one.config?.name ?? "");
  }, endpoint);
}
test("nobody gets in without a login, and it is accessible", async () => {
  await page.goto(`${base}/#/disks`);
  await page.getByLabel(/Code or token/).waitFor();
  assert.deepEqual(await violations(), []);
  await picture(page, "login");
  await page.getByLabel(/Code or token/).fill("not it");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("Not let in").waitFor();
  await logIn(page);
});
var PLAN = process.env["SUIMON_CONSOLE_LAB"] ?? "";
var runs = () => page.evaluate(async () => await (await fetch("/1.0/lab/runs")).json());
async function until(what, seconds, holds) {
  for (let left = 2 * seconds; !await holds(); left -= 1) {
    assert.ok(left > 0, `${what}: not within ${seconds} s`);
    await page.waitForTimeout(500);
  }
}
async function run() {
  await page.getByRole("button", { name: `Run ${PLAN}` }).click();
  await page.getByLabel("Scale").selectOption("quick");
  await page.getByText(`suimon lab run ${PLAN} --scale quick --results`).first().waitFor();
}
test("an experiment is asked for here, and one sees how far it is", { skip: PLAN === "" }, async () => {
  const before2 = (await runs()).length;
  await visit(page, "lab");
  await run();
  assert.deepEqual(await violations(), []);
  await picture(page, "lab-run");
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await until("a run is under way", 120, async () => (await runs()).length > before2);
  await page.getByRole("progressbar").waitFor({ timeout: 12e4 });
});
var TABS = 4;
async function checkPage(t, tab, place, shown) {
  const name = `${place} ${shown.language} ${shown.theme} ${shown.width}`;
  await t.test(name, async () => {
    await visit(tab, place);
    await picture(tab, `${place.replaceAll("/", "_")}-${shown.language}-${shown.theme}-${shown.width}`);
    const [width, room] = await tab.evaluate(() => {
      const main = document.querySelector("#main");
      return [main.scrollWidth, main.clientWidth];
    });
    assert.ok(width <= room, `${width} px wide in ${room} px`);
    assert.deepEqual(await violations(tab), []);
  });
}
test("every page is accessible, fits its window and shows the host", { concurrency: TABS }, async (t) => {
  const [vm] = await names("/1.0/vms");
  const [disk] = await names("/1.0/disks");
  const [team] = await names("/1.0/teams");
  const places = [
    "overview",
    "disks",
    disk && `disks/${disk}`,
    "vmq",
    "network",
    team && `teams/${team}`,
    "events",
    "vms",
    vm && `vms/${vm}`,
    vm && `why/${vm}`,
    "offload",
    "power",
    "sriov",
    "cluster",
    "lab"
  ].filter((place) => Boolean(place));
  for (const shown of ALL ? LOOKS : LOOKS.slice(0, 1)) {
    await look(page, shown);
    const queue = [...places];
    const tabs = await Promise.all(Array.from({ length: TABS }, () => page.context().newPage()));
    await Promise.all(tabs.map(async (tab) => {
      observe(tab, console_.complaints);
      await tab.setViewportSize({ width: shown.width, height: HEIGHT });
      for (let place = queue.shift(); place !== void 0; place = queue.shift()) {
        await checkPage(t, tab, place, shown);
      }
      await tab.close();
    }));
  }
  await look(page, LOOKS[0]);
});
test("what came out of an experiment is read here, and compared with another run", { skip: PLAN === "" }, async () => {
  await until("the run comes to its end", 600, async () => (await runs()).every((one) => one.state === "whole"));
  const [last, first] = await runs();
  assert.ok(last && first);
  await visit(page, `lab/${last.id}`);
  const report = page.frameLocator("iframe.report");
  await report.getByRole("heading", { level: 1 }).waitFor();
  assert.equal(await report.locator("html").getAttribute("data-language"), "en");
  await report.getByRole("button", { name: "\u65E5\u672C\u8A9E" }).click();
  assert.equal(await report.locator("html").getAttribute("data-language"), "ja");
  assert.deepEqual(await violations(), []);
  await picture(page, "lab-report");
  await visit(page, "lab");
  for (const id of [last.id, first.id]) await page.getByRole("checkbox", { name: `Compare ${id}` }).check();
  await page.getByRole("button", { name: "Compare two" }).click();
  await page.getByRole("grid", { name: "Two runs compared" }).waitFor();
  await page.getByText(`suimon lab compare ${first.id} ${last.id} --all`).first().waitFor();
  assert.deepEqual(await violations(), []);
  await picture(page, "lab-compared");
});
test("an experiment that is under way is stopped here, after a question", { skip: PLAN === "" }, async () => {
  await visit(page, "lab");
  await run();
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
  await until("it is under way", 120, async () => (await runs()).some((one) => one.state === "under-way"));
  await page.getByRole("button", { name: `Stop ${PLAN}` }).click();
  await page.getByText("The part that is being measured is lost").waitFor();
  await picture(page, "lab-stop");
  await page.getByRole("dialog").getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await until("it has ended", 120, async () => (await runs())[0]?.state === "interrupted");
  await page.getByText("did not come to its end").waitFor();
});
test("a disk's maximum that is set here is what it gets, and the command says so", { skip: !process.env["SUIMON_CONSOLE_DISK"] }, async () => {
  const disk = process.env["SUIMON_CONSOLE_DISK"] ?? "";
  await visit(page, `disks/${disk}`);
  const before2 = await page.evaluate(async (path2) => (await (await fetch(path2)).json()).config.qos?.max_iops, `/1.0/disks/${disk}`);
  const set = async (maximum) => {
    await page.getByRole("button", { name: "Change limits" }).click();
    await page.getByLabel("Maximum (IOPS)").fill(maximum);
    await page.getByText(`suimon qos set ${disk} max_iops=${maximum || "default"}`).first().waitFor();
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByText("What the daemon would do").waitFor();
    assert.deepEqual(await violations(), []);
    await picture(page, "change-limits");
    await page.getByRole("button", { name: "Set limits" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  };
  const got = () => page.evaluate(async (name) => {
    const flows = await (await fetch("/1.0/qos/flows")).json();
    return flows.find((flow) => flow.disk === name)?.last_5_s.delivered_iops ?? 0;
  }, disk);
  const most = 200;
  await set(String(most));
  let capped = 0;
  await until(`at most ${most} IOPS`, 60, async () => {
    capped = await got();
    return capped > 0 && capped < 1.05 * most;
  }).catch((error) => assert.fail(`${String(error)}: it gets ${capped} IOPS`));
  await picture(page, "disk-capped");
  await set(before2 === void 0 ? "" : String(before2));
});
test("what the daemon refuses is told with what to do, and the form stays", async () => {
  const [disk] = await names("/1.0/disks");
  if (!disk) return;
  await visit(page, `disks/${disk}`);
  await page.getByRole("button", { name: "Change limits" }).click();
  await page.getByLabel("Minimum (IOPS)").fill("900000000");
  await page.getByRole("button", { name: "Set limits" }).click();
  await page.getByText("Promise it all the same").waitFor();
  await picture(page, "refused");
  assert.deepEqual(await violations(), []);
  assert.equal(await page.getByLabel("Minimum (IOPS)").inputValue(), "900000000");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});
test("a guest is typed to in its serial console, which is one client's at a time", { skip: !process.env["SUIMON_CONSOLE_VM"] }, async () => {
  const vm = process.env["SUIMON_CONSOLE_VM"] ?? "";
  const screen = page.locator(".serial-screen");
  await visit(page, `vms/${vm}`);
  await page.getByRole("button", { name: "Open the console" }).click();
  await page.locator(".serial-screen[data-state=open]").waitFor();
  await page.keyboard.type(process.env["SUIMON_CONSOLE_VM_TYPED"] ?? "");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Control+J");
  await screen.getByText(process.env["SUIMON_CONSOLE_VM_ANSWERS"] ?? "").first().waitFor({ timeout: 12e4 });
  assert.deepEqual(await violations(), []);
  await picture(page, "serial");
  const other = await page.context().newPage();
  await visit(other, `vms/${vm}`);
  await other.getByRole("button", { name: "Open the console" }).click();
  await other.getByText("The console ended").waitFor();
  await picture(other, "serial-taken");
  await other.close();
  await page.bringToFront();
  await page.keyboard.press("Control+]");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Close the console");
  await page.getByRole("button", { name: "Turn off" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Turn off" }).click();
  await page.locator(".serial-screen[data-state=ended]").waitFor();
  await screen.getByText(process.env["SUIMON_CONSOLE_VM_ANSWERS"] ?? "").first().waitFor();
  await picture(page, "serial-ended");
  await page.getByRole("button", { name: "Close the console" }).click();
  await screen.waitFor({ state: "detached" });
});
test("the keyboard alone reaches a page and a dialog", async () => {
  await visit(page, "overview");
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to the content");
  await page.getByRole("link", { name: "Disks and QoS" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Disks and QoS" }).waitFor();
  await page.getByRole("button", { name: /^Change the limits of disk/ }).first().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.waitForFunction(() => Boolean(document.activeElement?.closest("[role=dialog]")));
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});
test("the language and the theme are switched in the page", async () => {
  await visit(page, "overview");
  await page.getByRole("button", { name: "Language, theme and session" }).click();
  await page.getByRole("menuitem", { name: "\u65E5\u672C\u8A9E" }).click();
  await page.getByRole("heading", { level: 1, name: "\u6982\u8981" }).waitFor();
  await page.getByRole("button", { name: "\u8A00\u8A9E\u30FB\u30C6\u30FC\u30DE\u30FB\u30BB\u30C3\u30B7\u30E7\u30F3" }).click();
  await page.getByRole("menuitem", { name: "\u30C0\u30FC\u30AF" }).click();
  assert.ok(await page.evaluate(() => document.documentElement.classList.contains("pf-v6-theme-dark")));
  await look(page, LOOKS[0]);
});
test("a line that is lost is said, with since when, and comes back by itself", async () => {
  await visit(page, "disks");
  cable.cut();
  await page.getByText(/Stale since/).waitFor({ timeout: 12e4 });
  await picture(page, "stale");
  cable.mend();
  await page.getByText(/Stale since/).waitFor({ state: "detached", timeout: 12e4 });
});
test("a session that ends leads to the login and back to where one was", async () => {
  await visit(page, "vmq");
  await page.evaluate(() => fetch("/console/session", { method: "DELETE", headers: { "X-Suimon-Console": "1" } }));
  await page.getByText("The session has ended").waitFor({ timeout: 12e4 });
  const token = process.env["SUIMON_CONSOLE_TOKEN"];
  if (!token) return;
  await page.getByLabel(/Code or token/).fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { level: 1, name: "VMQ" }).waitFor();
});
test("nothing was asked of anybody else, and nothing went wrong in the page", () => {
  const meant = /Failed to load resource: (net::ERR_|the server responded with a status of 4)|net::ERR_/;
  assert.deepEqual(console_.complaints.filter((one) => !meant.test(one)), []);
});
