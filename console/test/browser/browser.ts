/** A browser with the console in it. */
import { chromium, type BrowserContext, type Page } from "playwright-core";
import { mkdirSync } from "node:fs";
import net from "node:net";
import path from "node:path";

export interface Look {
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

/** A line to the daemon that a test can cut. */
export class Cable {
  #sockets = new Set<net.Socket>();
  #isCut = false;
  #server: net.Server;

  constructor(to: URL) {
    this.#server = net.createServer((near) => {
      if (this.#isCut) return void near.destroy();
      const far = net.connect(Number(to.port || 80), to.hostname);
      for (const [from, into] of [[near, far], [far, near]] as const) {
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

  async open(): Promise<string> {
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${(this.#server.address() as net.AddressInfo).port}`;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#isCut = false;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}

const out = process.env["SUIMON_CONSOLE_OUT"] ?? "";
const given = new URL(process.env["SUIMON_CONSOLE_URL"] ?? "http://127.0.0.1:7446");
export const cable = new Cable(given);
/** The console by way of the cable. */
export const base = await cable.open();

export interface Console {
  context: BrowserContext;
  page: Page;
  /** Errors of the observed pages, and requests to other servers. */
  complaints: string[];
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
  const complaints: string[] = [];
  observe(page, complaints);
  return { context, page, complaints };
}

/** Adds the errors of a page and its requests to other servers to a list. */
export function observe(page: Page, complaints: string[]): void {
  page.on("console", (message) => {
    // Without a session the first request is answered by 401.
    if (message.type() === "error" && !/401/.test(message.text())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== base && protocol !== "data:") complaints.push(`a request went to ${request.url()}`);
  });
}

/** Logs in as a user does: by the address with its code, or by the token. */
export async function logIn(page: Page): Promise<void> {
  const token = process.env["SUIMON_CONSOLE_TOKEN"];
  if (given.hash.includes("code=")) {
    await page.goto(`${base}/${given.hash}`);
  } else {
    await page.goto(`${base}/#/disks`);
    await page.getByLabel(/Code or token/).fill(token ?? "");
    await page.getByRole("button", { name: "Log in" }).click();
  }
  await inPage(page);
}

/** Sends a request as the page does, and reads its JSON response. */
export async function ask<T>(page: Page, path: string, method = "GET"): Promise<T> {
  return page.evaluate(async ([path, method]) => {
    const headers = { "X-Suimon-Console": "1", "X-Suimon-Session": sessionStorage.getItem("suimon.session") ?? "" };
    const response = await fetch(path, { method, headers });
    return (response.status === 204 ? undefined : await response.json()) as T;
  }, [path, method] as const);
}

/** Waits for the title of a page behind the login. The login page has an h1 too, outside of #main. */
async function inPage(page: Page): Promise<void> {
  await page.locator("#main h1").waitFor();
}

export async function look(page: Page, { language, theme, width }: Look): Promise<void> {
  await page.evaluate((kept) => localStorage.setItem("suimon.console", kept), JSON.stringify({ language, theme }));
  await page.setViewportSize({ width, height: HEIGHT });
  await page.reload();
}

/** Goes to a page and waits until live data is there. */
export async function visit(page: Page, place: string): Promise<void> {
  await page.goto(`${base}/#/${place}`);
  await inPage(page);
  await page.waitForFunction(() => document.querySelector(".loading") === null);
  // Rates and charts need two answers, a second apart.
  await page.waitForTimeout(2500);
}

/** Takes a picture of the whole page, however long it is, if there is a folder for pictures. */
export async function picture(page: Page, name: string): Promise<void> {
  if (out === "") return;
  mkdirSync(out, { recursive: true });
  const size = page.viewportSize() ?? { width: 1400, height: HEIGHT };
  const height = await page.evaluate(() => {
    const main = document.querySelector("#main");
    return main ? main.scrollHeight + main.getBoundingClientRect().top + 24 : document.documentElement.scrollHeight;
  });
  await page.setViewportSize({ width: size.width, height: Math.min(6000, Math.max(HEIGHT, Math.ceil(height))) });
  await page.waitForTimeout(300);
  await page.screenshot({ path: path.join(out, `${name}.png`) });
  await page.setViewportSize(size);
}
