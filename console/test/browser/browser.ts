/** Browser in which the tests use the console. */
import { chromium, type BrowserContext, type Page } from "playwright-core";
import { mkdirSync } from "node:fs";
import net from "node:net";
import nodePath from "node:path";

export interface Appearance {
  language: "en" | "ja";
  theme: "light" | "dark";
  width: number;
}

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
/** Height of the window, in pixels. */
export const HEIGHT = 900;

/** TCP proxy in front of the daemon, whose connections a test can interrupt. */
export class Proxy {
  #sockets = new Set<net.Socket>();
  #isInterrupted = false;
  #server: net.Server;

  constructor(daemon: URL) {
    this.#server = net.createServer((browserSide) => {
      if (this.#isInterrupted) return void browserSide.destroy();
      const daemonSide = net.connect(Number(daemon.port || 80), daemon.hostname);
      for (const [from, to] of [[browserSide, daemonSide], [daemonSide, browserSide]] as const) {
        this.#sockets.add(from);
        from.pipe(to);
        from.on("error", () => to.destroy());
        from.on("close", () => {
          to.destroy();
          this.#sockets.delete(from);
        });
      }
    });
  }

  /** Starts to listen. Returns the URL of the proxy. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as net.AddressInfo).port}`;
  }

  /** Closes all connections and refuses new ones. */
  interrupt(): void {
    this.#isInterrupted = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Accepts connections again. */
  restore(): void {
    this.#isInterrupted = false;
  }

  close(): void {
    this.interrupt();
    this.#server.close();
  }
}

const screenshots = process.env["SUIMON_CONSOLE_OUT"] ?? "";
const daemonUrl = new URL(process.env["SUIMON_CONSOLE_URL"] ?? "http://127.0.0.1:7446");
export const proxy = new Proxy(daemonUrl);
/** URL of the console behind the proxy. */
export const base = await proxy.listen();

export interface Console {
  context: BrowserContext;
  page: Page;
  /** Errors of the observed pages, and requests to other servers. */
  problems: string[];
}

export async function open(): Promise<Console> {
  const context = await chromium.launchPersistentContext(process.env["SUIMON_CONSOLE_PROFILE"] ?? "", {
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: FLAGS,
    viewport: { width: 1400, height: HEIGHT },
    // During a transition of colours axe measures a lower contrast.
    reducedMotion: "reduce",
  });
  // Only a hanging page takes so long, however loaded the machine is.
  context.setDefaultTimeout(120_000);
  const page = context.pages()[0] ?? (await context.newPage());
  const problems: string[] = [];
  observe(page, problems);
  return { context, page, problems };
}

/** Adds the errors of a page and its requests to other servers to a list. */
export function observe(page: Page, problems: string[]): void {
  page.on("console", (message) => {
    // Without a session the first request is answered by 401.
    if (message.type() === "error" && !/401/.test(message.text())) problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== base && protocol !== "data:") problems.push(`request to another server: ${request.url()}`);
  });
}

/** Logs in as a user does: by the address with its code, or by the token. */
export async function logIn(page: Page): Promise<void> {
  const token = process.env["SUIMON_CONSOLE_TOKEN"];
  if (daemonUrl.hash.includes("code=")) {
    await page.goto(`${base}/${daemonUrl.hash}`);
  } else {
    await page.goto(`${base}/#/disks`);
    await page.getByLabel(/Code or token/).fill(token ?? "");
    await page.getByRole("button", { name: "Log in" }).click();
  }
  await waitForTitle(page);
}

/** Sends a request as the page does, and reads its JSON response. */
export async function request<T>(page: Page, path: string, method = "GET"): Promise<T> {
  return page.evaluate(async ([path, method]) => {
    const headers = { "X-Suimon-Console": "1", "X-Suimon-Session": sessionStorage.getItem("suimon.session") ?? "" };
    const response = await fetch(path, { method, headers });
    return (response.status === 204 ? undefined : await response.json()) as T;
  }, [path, method] as const);
}

/** Waits for the title of a page behind the login. The login page has an h1 too, outside of #main. */
async function waitForTitle(page: Page): Promise<void> {
  await page.locator("#main h1").waitFor();
}

/** Sets language, theme and width of the window, and reloads the page. */
export async function setAppearance(page: Page, { language, theme, width }: Appearance): Promise<void> {
  await page.evaluate((settings) => localStorage.setItem("suimon.console", settings), JSON.stringify({ language, theme }));
  await page.setViewportSize({ width, height: HEIGHT });
  await page.reload();
}

/** Opens a page of the console and waits until it shows live data. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.goto(`${base}/#/${path}`);
  await waitForTitle(page);
  await page.waitForFunction(() => document.querySelector(".loading") === null);
  // Rates and charts need two answers, a second apart.
  await page.waitForTimeout(2500);
}

/** Takes a screenshot of the whole page if there is a folder for screenshots. */
export async function screenshot(page: Page, name: string): Promise<void> {
  if (screenshots === "") return;
  mkdirSync(screenshots, { recursive: true });
  const size = page.viewportSize() ?? { width: 1400, height: HEIGHT };
  const height = await page.evaluate(() => {
    const main = document.querySelector("#main");
    return main ? main.scrollHeight + main.getBoundingClientRect().top + 24 : document.documentElement.scrollHeight;
  });
  await page.setViewportSize({ width: size.width, height: Math.min(6000, Math.max(HEIGHT, Math.ceil(height))) });
  await page.waitForTimeout(300);
  await page.screenshot({ path: nodePath.join(screenshots, `${name}.png`) });
  await page.setViewportSize(size);
}
