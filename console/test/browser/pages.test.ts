/** Browser tests of the console's pages against a running daemon. */
import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import {
  base, HEIGHT, logIn, observe, open, proxy, request, screenshot, setAppearance, visit, type Appearance, type Console,
} from "./browser";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const APPEARANCES: Appearance[] = [
  { language: "en", theme: "light", width: 1400 },
  { language: "ja", theme: "dark", width: 1400 },
  { language: "en", theme: "dark", width: 400 },
  { language: "ja", theme: "light", width: 400 },
];
const CHECKS_ALL = process.env["SUIMON_CONSOLE_LOOKS"] === "all";

let console_: Console;
let page: Page;

before(async () => {
  console_ = await open();
  page = console_.page;
});
after(async () => {
  await console_.context.close();
  proxy.close();
});

/** Returns the serious accessibility violations that axe finds in a page. */
async function violations(tab: Page = page): Promise<string[]> {
  await tab.evaluate(axeSource);
  return tab.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: (options: object) => Promise<{ violations: { id: string; impact: string; help: string; nodes: { html: string }[] }[] }> } }).axe;
    const found = await axe.run({ resultTypes: ["violations"] });
    return found.violations.map(({ impact, id, help, nodes }) => `${impact} ${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
}

async function names(endpoint: string): Promise<string[]> {
  const objects = await request<{ config?: { name: string } }[]>(page, endpoint);
  return objects.map((object) => object.config?.name ?? "");
}

test("the login page is accessible and rejects a wrong token", async () => {
  await page.goto(`${base}/#/disks`);
  await page.getByLabel(/Code or token/).waitFor();
  assert.deepEqual(await violations(), []);
  await screenshot(page, "login");
  await page.getByLabel(/Code or token/).fill("not it");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("Login failed").waitFor();
  await logIn(page);
});

test("the cookie alone is not sufficient; a new tab obtains the second secret from an open one", async () => {
  const status = (path: string) => page.evaluate(async (path) => (await fetch(path)).status, path);
  for (const path of ["/1.0", "/1.0/config", "/console/session", "/console/live?topics=top"]) assert.equal(await status(path), 401, path);
  const newTab = await page.context().newPage();
  await visit(newTab, "events");
  await newTab.close();
});

const PLAN = process.env["SUIMON_CONSOLE_LAB"] ?? "";

interface Run {
  id: string;
  state: string;
}

const runs = () => request<Run[]>(page, "/1.0/lab/runs");

/** Waits until a condition holds, for longer than the default timeout of the browser. */
async function waitUntil(condition: string, seconds: number, holds: () => Promise<boolean>): Promise<void> {
  for (let attempts = 2 * seconds; !(await holds()); attempts -= 1) {
    assert.ok(attempts > 0, `${condition}: not within ${seconds} s`);
    await page.waitForTimeout(500);
  }
}

/** Fills in the dialog that requests a run of the plan. */
async function fillInRun(): Promise<void> {
  await page.getByRole("button", { name: `Run ${PLAN}` }).click();
  await page.getByLabel("Scale").selectOption("quick");
  await page.getByText(`suimon lab run ${PLAN} --scale quick --results`).first().waitFor();
}

test("an experiment is requested, and its progress is shown", { skip: PLAN === "" }, async () => {
  const before = (await runs()).length;
  await visit(page, "lab");
  await fillInRun();
  assert.deepEqual(await violations(), []);
  await screenshot(page, "lab-run");
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await waitUntil("a run is in progress", 120, async () => (await runs()).length > before);
  await page.getByRole("progressbar").waitFor({ timeout: 120_000 });
});

/** Number of pages that are open at the same time. */
const TABS = 4;
/** Number of pages that were checked. */
let checked = 0;

/** Checks one page as a subtest: it is accessible and fits its window. */
async function checkPage(t: TestContext, tab: Page, path: string, appearance: Appearance): Promise<void> {
  const { language, theme, width: windowWidth } = appearance;
  const name = `${path} ${language} ${theme} ${windowWidth}`;
  await t.test(name, async () => {
    await visit(tab, path);
    await screenshot(tab, `${path.replaceAll("/", "_")}-${language}-${theme}-${windowWidth}`);
    const [contentWidth, visibleWidth] = await tab.evaluate(() => {
      const main = document.querySelector("#main") as HTMLElement;
      return [main.scrollWidth, main.clientWidth] as const;
    });
    assert.ok(contentWidth <= visibleWidth, `${contentWidth} px wide in ${visibleWidth} px`);
    assert.deepEqual(await violations(tab), []);
    checked += 1;
  });
}

test("every page is accessible, fits its window and shows live data", { concurrency: TABS }, async (t) => {
  const [vm] = await names("/1.0/vms");
  const [disk] = await names("/1.0/disks");
  const [team] = await names("/1.0/teams");
  const paths = [
    "overview", "disks", disk && `disks/${disk}`, "vmq", "network", team && `teams/${team}`, "events", "vms", vm && `vms/${vm}`,
    vm && `why/${vm}`, "offload", "power", "sriov", "cluster", "lab",
  ].filter((path): path is string => Boolean(path));
  for (const appearance of CHECKS_ALL ? APPEARANCES : APPEARANCES.slice(0, 1)) {
    await setAppearance(page, appearance);
    const queue = [...paths];
    // Live data takes seconds to arrive in each page, so that several are open at a time.
    const tabs = await Promise.all(Array.from({ length: TABS }, () => page.context().newPage()));
    await Promise.all(tabs.map(async (tab) => {
      observe(tab, console_.problems);
      await tab.setViewportSize({ width: appearance.width, height: HEIGHT });
      for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
        await checkPage(t, tab, path, appearance);
      }
      await tab.close();
    }));
  }
  await setAppearance(page, APPEARANCES[0] as Appearance);
  assert.ok(checked > 10, `${checked} pages`);
});

test("the report of an experiment is shown, and compared with another run", { skip: PLAN === "" }, async () => {
  await waitUntil("the run is complete", 600, async () => (await runs()).every((run) => run.state === "whole"));
  const [last, first] = await runs();
  assert.ok(last && first);
  await visit(page, `lab/${last.id}`);
  const report = page.frameLocator("iframe.report");
  await report.getByRole("heading", { level: 1 }).waitFor();
  assert.equal(await report.locator("html").getAttribute("data-language"), "en");
  await report.getByRole("button", { name: "日本語" }).click();
  assert.equal(await report.locator("html").getAttribute("data-language"), "ja");
  assert.deepEqual(await violations(), []);
  await screenshot(page, "lab-report");

  await visit(page, "lab");
  for (const id of [last.id, first.id]) await page.getByRole("checkbox", { name: `Select ${id} for comparison` }).check();
  await page.getByRole("button", { name: "Compare two" }).click();
  await page.getByRole("grid", { name: "Comparison of two runs" }).waitFor();
  await page.getByText(`suimon lab compare ${first.id} ${last.id} --all`).first().waitFor();
  assert.deepEqual(await violations(), []);
  await screenshot(page, "lab-compared");
});

test("a running experiment is stopped after a confirmation", { skip: PLAN === "" }, async () => {
  await visit(page, "lab");
  await fillInRun();
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
  await waitUntil("the run is in progress", 120, async () => (await runs()).some((run) => run.state === "under-way"));
  await page.getByRole("button", { name: `Stop ${PLAN}` }).click();
  await page.getByText("The measurement in progress is lost").waitFor();
  await screenshot(page, "lab-stop");
  await page.getByRole("dialog").getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await waitUntil("the run has ended", 120, async () => (await runs())[0]?.state === "interrupted");
  await page.getByText("did not complete").waitFor();
});

/** Waits until a factor is the first limit of a disk, in the table of all disks and on the disk's page. */
async function isLimitedBy(disk: string, factor: string): Promise<void> {
  await visit(page, "disks");
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: disk, exact: true }) });
  await row.getByText(new RegExp(`^${factor} \\d+\\.\\d %$`)).first().waitFor();
  await visit(page, `disks/${disk}`);
  const shares = page.getByRole("group", { name: "Limiting factors" }).locator("dt");
  await waitUntil(`${factor} is the first factor`, 120, async () => (await shares.first().textContent())?.trim() === factor);
}

test("a maximum set in the page limits the disk, and the equivalent command is shown", { skip: !process.env["SUIMON_CONSOLE_DISK"] }, async () => {
  const disk = process.env["SUIMON_CONSOLE_DISK"] ?? "";
  await visit(page, `disks/${disk}`);
  const before = (await request<{ config: { qos?: { max_iops?: number } } }>(page, `/1.0/disks/${disk}`)).config.qos?.max_iops;
  const set = async (maximum: string) => {
    await page.getByRole("button", { name: "Change limits" }).click();
    await page.getByLabel("Maximum (normalised IOPS)").fill(maximum);
    await page.getByText(`suimon qos set ${disk} max_iops=${maximum || "default"}`).first().waitFor();
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByText("Steps of the change").waitFor();
    assert.deepEqual(await violations(), []);
    await screenshot(page, "change-limits");
    await page.getByRole("button", { name: "Set limits" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  };
  const deliveredIops = async () => {
    const flows = await request<{ disk: string; last_5_s: { delivered_iops: number } }[]>(page, "/1.0/qos/flows");
    return flows.find((flow) => flow.disk === disk)?.last_5_s.delivered_iops ?? 0;
  };
  const maximum = 200;
  await set(String(maximum));
  // The rate is a mean of 5 s, of which the first includes the time before. Load on this machine
  // makes it lower, never higher.
  let delivered = 0;
  await waitUntil(`at most ${maximum} IOPS`, 60, async () => {
    delivered = await deliveredIops();
    return delivered > 0 && delivered < 1.05 * maximum;
  }).catch((error: unknown) => assert.fail(`${String(error)}: ${delivered} IOPS are delivered`));
  await screenshot(page, "disk-capped");
  await isLimitedBy(disk, "its own maximum");
  const idle = process.env["SUIMON_CONSOLE_IDLE_DISK"] ?? "";
  if (idle !== "") await isLimitedBy(idle, "the client is idle");
  await visit(page, `disks/${disk}`);
  await set(before === undefined ? "" : String(before));
});

test("a refused change is shown with its remedy, and the form keeps its values", async () => {
  const [disk] = await names("/1.0/disks");
  if (!disk) return;
  await visit(page, `disks/${disk}`);
  await page.getByRole("button", { name: "Change limits" }).click();
  await page.getByLabel("Minimum (normalised IOPS)").fill("900000000");
  await page.getByRole("button", { name: "Set limits" }).click();
  await page.getByText("Set the minimums anyway").waitFor();
  await screenshot(page, "refused");
  assert.deepEqual(await violations(), []);
  assert.equal(await page.getByLabel("Minimum (normalised IOPS)").inputValue(), "900000000");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("the serial console of a guest accepts input from one client at a time", { skip: !process.env["SUIMON_CONSOLE_VM"] }, async () => {
  const vm = process.env["SUIMON_CONSOLE_VM"] ?? "";
  const screen = page.locator(".serial-screen");
  await visit(page, `vms/${vm}`);
  await page.getByRole("button", { name: "Open the console" }).click();
  await page.locator(".serial-screen[data-state=open]").waitFor();
  await page.keyboard.type(process.env["SUIMON_CONSOLE_VM_TYPED"] ?? "");
  await page.keyboard.press("Enter");
  // A guest whose terminal does not convert carriage returns expects a line feed.
  await page.keyboard.press("Control+J");
  await screen.getByText(process.env["SUIMON_CONSOLE_VM_ANSWERS"] ?? "").first().waitFor({ timeout: 120_000 });
  assert.deepEqual(await violations(), []);
  await screenshot(page, "serial");

  const secondTab = await page.context().newPage();
  await visit(secondTab, `vms/${vm}`);
  await secondTab.getByRole("button", { name: "Open the console" }).click();
  await secondTab.getByText("The console was closed").waitFor();
  await screenshot(secondTab, "serial-taken");
  await secondTab.close();
  // The browser sends keys to the tab in front.
  await page.bringToFront();

  // Tab is sent to the guest; Control+] moves the focus out of the terminal.
  await page.keyboard.press("Control+]");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Close the console");
  // The last output remains visible after the VM has ended.
  await page.getByRole("button", { name: "Kill" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Kill" }).click();
  await page.locator(".serial-screen[data-state=ended]").waitFor();
  await screen.getByText(process.env["SUIMON_CONSOLE_VM_ANSWERS"] ?? "").first().waitFor();
  await screenshot(page, "serial-ended");
  await page.getByRole("button", { name: "Close the console" }).click();
  await screen.waitFor({ state: "detached" });
});

test("pages and dialogs can be used with the keyboard alone", async () => {
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
  // The dialog receives the focus after it is shown.
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
  await setAppearance(page, APPEARANCES[0] as Appearance);
});

test("a lost connection is reported with its time and restored automatically", async () => {
  await visit(page, "disks");
  proxy.interrupt();
  await page.getByText(/No update since/).waitFor({ timeout: 120_000 });
  await screenshot(page, "stale");
  proxy.restore();
  await page.getByText(/No update since/).waitFor({ state: "detached", timeout: 120_000 });
});

test("after the end of a session, a login leads back to the same page", async () => {
  await visit(page, "vmq");
  await request(page, "/console/session", "DELETE");
  await page.getByText("The session has ended").waitFor({ timeout: 120_000 });
  const token = process.env["SUIMON_CONSOLE_TOKEN"];
  if (!token) return;
  await page.getByLabel(/Code or token/).fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { level: 1, name: "VMQ" }).waitFor();
});

test("the pages had no error and sent no request to another server", () => {
  // The browser logs the requests that were refused or interrupted above.
  const expected = /Failed to load resource: (net::ERR_|the server responded with a status of 4)|net::ERR_/;
  assert.deepEqual(console_.problems.filter((problem) => !expected.test(problem)), []);
});
