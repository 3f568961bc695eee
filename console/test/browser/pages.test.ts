/** Each page against a live daemon: it is accessible, fits, asks nobody else, and does what it says. */
import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { ask, base, cable, HEIGHT, logIn, look, observe, open, picture, visit, type Console, type Look } from "./browser";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const LOOKS: Look[] = [
  { language: "en", theme: "light", width: 1400 },
  { language: "ja", theme: "dark", width: 1400 },
  { language: "en", theme: "dark", width: 400 },
  { language: "ja", theme: "light", width: 400 },
];
const ALL = process.env["SUIMON_CONSOLE_LOOKS"] === "all";

let console_: Console;
let page: Page;

before(async () => {
  console_ = await open();
  page = console_.page;
});
after(async () => {
  await console_.context.close();
  cable.close();
});

/** Returns the serious accessibility violations that axe finds in a page. */
async function violations(of: Page = page): Promise<string[]> {
  await of.evaluate(axeSource);
  return of.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: (options: object) => Promise<{ violations: { id: string; impact: string; help: string; nodes: { html: string }[] }[] }> } }).axe;
    const found = await axe.run({ resultTypes: ["violations"] });
    return found.violations.map((one) => `${one.impact} ${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
}

async function names(endpoint: string): Promise<string[]> {
  const answer = await ask<{ config?: { name: string } }[]>(page, endpoint);
  return answer.map((one) => one.config?.name ?? "");
}

test("nobody gets in without a login, and it is accessible", async () => {
  await page.goto(`${base}/#/disks`);
  await page.getByLabel(/Code or token/).waitFor();
  assert.deepEqual(await violations(), []);
  await picture(page, "login");
  await page.getByLabel(/Code or token/).fill("not it");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("Login failed").waitFor();
  await logIn(page);
});

test("the cookie alone is not sufficient, and a new tab gets the rest from an open one", async () => {
  const status = (path: string) => page.evaluate(async (path) => (await fetch(path)).status, path);
  for (const path of ["/1.0", "/1.0/config", "/console/session", "/console/live?topics=top"]) assert.equal(await status(path), 401, path);
  const other = await page.context().newPage();
  await visit(other, "events");
  await other.close();
});

const PLAN = process.env["SUIMON_CONSOLE_LAB"] ?? "";

interface Run {
  id: string;
  state: string;
}

const runs = () => ask<Run[]>(page, "/1.0/lab/runs");

/** Waits, beyond what a page may take. */
async function until(what: string, seconds: number, holds: () => Promise<boolean>): Promise<void> {
  for (let left = 2 * seconds; !(await holds()); left -= 1) {
    assert.ok(left > 0, `${what}: not within ${seconds} s`);
    await page.waitForTimeout(500);
  }
}

/** Asks for a run of the plan in the page. */
async function run(): Promise<void> {
  await page.getByRole("button", { name: `Run ${PLAN}` }).click();
  await page.getByLabel("Scale").selectOption("quick");
  await page.getByText(`suimon lab run ${PLAN} --scale quick --results`).first().waitFor();
}

test("an experiment is asked for here, and one sees how far it is", { skip: PLAN === "" }, async () => {
  const before = (await runs()).length;
  await visit(page, "lab");
  await run();
  assert.deepEqual(await violations(), []);
  await picture(page, "lab-run");
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await until("a run is under way", 120, async () => (await runs()).length > before);
  await page.getByRole("progressbar").waitFor({ timeout: 120_000 });
});

/** Pages that are open at a time. */
const TABS = 4;
/** Number of pages that were checked. */
let checked = 0;

/** Checks one page as a subtest: it is accessible and fits its window. */
async function checkPage(t: TestContext, tab: Page, place: string, shown: Look): Promise<void> {
  const name = `${place} ${shown.language} ${shown.theme} ${shown.width}`;
  await t.test(name, async () => {
    await visit(tab, place);
    await picture(tab, `${place.replaceAll("/", "_")}-${shown.language}-${shown.theme}-${shown.width}`);
    const [width, room] = await tab.evaluate(() => {
      const main = document.querySelector("#main") as HTMLElement;
      return [main.scrollWidth, main.clientWidth] as const;
    });
    assert.ok(width <= room, `${width} px wide in ${room} px`);
    assert.deepEqual(await violations(tab), []);
    checked += 1;
  });
}

test("every page is accessible, fits its window and shows the host", { concurrency: TABS }, async (t) => {
  const [vm] = await names("/1.0/vms");
  const [disk] = await names("/1.0/disks");
  const [team] = await names("/1.0/teams");
  const places = [
    "overview", "disks", disk && `disks/${disk}`, "vmq", "network", team && `teams/${team}`, "events", "vms", vm && `vms/${vm}`,
    vm && `why/${vm}`, "offload", "power", "sriov", "cluster", "lab",
  ].filter((place): place is string => Boolean(place));
  for (const shown of ALL ? LOOKS : LOOKS.slice(0, 1)) {
    await look(page, shown);
    const queue = [...places];
    // Live data takes seconds to arrive in each page, so that several are open at a time.
    const tabs = await Promise.all(Array.from({ length: TABS }, () => page.context().newPage()));
    await Promise.all(tabs.map(async (tab) => {
      observe(tab, console_.complaints);
      await tab.setViewportSize({ width: shown.width, height: HEIGHT });
      for (let place = queue.shift(); place !== undefined; place = queue.shift()) {
        await checkPage(t, tab, place, shown);
      }
      await tab.close();
    }));
  }
  await look(page, LOOKS[0] as Look);
  assert.ok(checked > 10, `${checked} pages`);
});

test("what came out of an experiment is read here, and compared with another run", { skip: PLAN === "" }, async () => {
  await until("the run comes to its end", 600, async () => (await runs()).every((one) => one.state === "whole"));
  const [last, first] = await runs();
  assert.ok(last && first);
  await visit(page, `lab/${last.id}`);
  const report = page.frameLocator("iframe.report");
  await report.getByRole("heading", { level: 1 }).waitFor();
  assert.equal(await report.locator("html").getAttribute("data-language"), "en");
  await report.getByRole("button", { name: "日本語" }).click();
  assert.equal(await report.locator("html").getAttribute("data-language"), "ja");
  assert.deepEqual(await violations(), []);
  await picture(page, "lab-report");

  await visit(page, "lab");
  for (const id of [last.id, first.id]) await page.getByRole("checkbox", { name: `Select ${id} for comparison` }).check();
  await page.getByRole("button", { name: "Compare two" }).click();
  await page.getByRole("grid", { name: "Comparison of two runs" }).waitFor();
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
  await page.getByText("The measurement in progress is lost").waitFor();
  await picture(page, "lab-stop");
  await page.getByRole("dialog").getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await until("it has ended", 120, async () => (await runs())[0]?.state === "interrupted");
  await page.getByText("did not complete").waitFor();
});

/** Waits until a factor is the first limit of a disk, in the table of all disks and on the disk's page. */
async function isLimitedBy(disk: string, factor: string): Promise<void> {
  await visit(page, "disks");
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: disk, exact: true }) });
  await row.getByText(new RegExp(`^${factor} \\d+\\.\\d %$`)).first().waitFor();
  await visit(page, `disks/${disk}`);
  const shares = page.getByRole("group", { name: "Limiting factors" }).locator("dt");
  await until(`${factor} is the first`, 120, async () => (await shares.first().textContent())?.trim() === factor);
}

test("a disk's maximum that is set here is what it gets, and the command says so", { skip: !process.env["SUIMON_CONSOLE_DISK"] }, async () => {
  const disk = process.env["SUIMON_CONSOLE_DISK"] ?? "";
  await visit(page, `disks/${disk}`);
  const before = (await ask<{ config: { qos?: { max_iops?: number } } }>(page, `/1.0/disks/${disk}`)).config.qos?.max_iops;
  const set = async (maximum: string) => {
    await page.getByRole("button", { name: "Change limits" }).click();
    await page.getByLabel("Maximum (normalised IOPS)").fill(maximum);
    await page.getByText(`suimon qos set ${disk} max_iops=${maximum || "default"}`).first().waitFor();
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByText("Steps of the change").waitFor();
    assert.deepEqual(await violations(), []);
    await picture(page, "change-limits");
    await page.getByRole("button", { name: "Set limits" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  };
  const got = async () => {
    const flows = await ask<{ disk: string; last_5_s: { delivered_iops: number } }[]>(page, "/1.0/qos/flows");
    return flows.find((flow) => flow.disk === disk)?.last_5_s.delivered_iops ?? 0;
  };
  const most = 200;
  await set(String(most));
  // The rate is a mean of 5 s, of which the first includes the time before. Load on this machine
  // makes it lower, never higher.
  let capped = 0;
  await until(`at most ${most} IOPS`, 60, async () => {
    capped = await got();
    return capped > 0 && capped < 1.05 * most;
  }).catch((error: unknown) => assert.fail(`${String(error)}: it gets ${capped} IOPS`));
  await picture(page, "disk-capped");
  await isLimitedBy(disk, "its own maximum");
  const idle = process.env["SUIMON_CONSOLE_IDLE_DISK"] ?? "";
  if (idle !== "") await isLimitedBy(idle, "the client is idle");
  await visit(page, `disks/${disk}`);
  await set(before === undefined ? "" : String(before));
});

test("what the daemon refuses is told with what to do, and the form stays", async () => {
  const [disk] = await names("/1.0/disks");
  if (!disk) return;
  await visit(page, `disks/${disk}`);
  await page.getByRole("button", { name: "Change limits" }).click();
  await page.getByLabel("Minimum (normalised IOPS)").fill("900000000");
  await page.getByRole("button", { name: "Set limits" }).click();
  await page.getByText("Set the minimums anyway").waitFor();
  await picture(page, "refused");
  assert.deepEqual(await violations(), []);
  assert.equal(await page.getByLabel("Minimum (normalised IOPS)").inputValue(), "900000000");
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
  // For a guest that reads lines as they are.
  await page.keyboard.press("Control+J");
  await screen.getByText(process.env["SUIMON_CONSOLE_VM_ANSWERS"] ?? "").first().waitFor({ timeout: 120_000 });
  assert.deepEqual(await violations(), []);
  await picture(page, "serial");

  const other = await page.context().newPage();
  await visit(other, `vms/${vm}`);
  await other.getByRole("button", { name: "Open the console" }).click();
  await other.getByText("The console was closed").waitFor();
  await picture(other, "serial-taken");
  await other.close();
  // Keys go to the page in front.
  await page.bringToFront();

  // The keyboard gets out of the terminal, where Tab is the guest's.
  await page.keyboard.press("Control+]");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Close the console");
  // What it said last stays when it ends.
  await page.getByRole("button", { name: "Kill" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Kill" }).click();
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
  // The focus goes there a moment after the dialog is shown.
  await page.waitForFunction(() => Boolean(document.activeElement?.closest("[role=dialog]")));
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("the language and the theme are switched in the page", async () => {
  await visit(page, "overview");
  await page.getByRole("button", { name: "Language, theme and session" }).click();
  await page.getByRole("menuitem", { name: "日本語" }).click();
  await page.getByRole("heading", { level: 1, name: "概要" }).waitFor();
  await page.getByRole("button", { name: "言語・テーマ・セッション" }).click();
  await page.getByRole("menuitem", { name: "ダーク" }).click();
  assert.ok(await page.evaluate(() => document.documentElement.classList.contains("pf-v6-theme-dark")));
  await look(page, LOOKS[0] as Look);
});

test("a line that is lost is said, with since when, and comes back by itself", async () => {
  await visit(page, "disks");
  cable.cut();
  await page.getByText(/No update since/).waitFor({ timeout: 120_000 });
  await picture(page, "stale");
  cable.mend();
  await page.getByText(/No update since/).waitFor({ state: "detached", timeout: 120_000 });
});

test("a session that ends leads to the login and back to where one was", async () => {
  await visit(page, "vmq");
  await ask(page, "/console/session", "DELETE");
  await page.getByText("The session has ended").waitFor({ timeout: 120_000 });
  const token = process.env["SUIMON_CONSOLE_TOKEN"];
  if (!token) return;
  await page.getByLabel(/Code or token/).fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { level: 1, name: "VMQ" }).waitFor();
});

test("nothing was asked of anybody else, and nothing went wrong in the page", () => {
  // The browser tells of what was refused above, and of the line that was cut.
  const meant = /Failed to load resource: (net::ERR_|the server responded with a status of 4)|net::ERR_/;
  assert.deepEqual(console_.complaints.filter((one) => !meant.test(one)), []);
});
