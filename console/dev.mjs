// A development server: serves dist/ and speaks for a suimond's Unix socket as the daemon's own
// console does, so that the page can be worked on without building the daemon.
//
//   node dev.mjs --socket /run/suimon/suimon.sock [--listen 127.0.0.1:7447] [--token WORD]
//
// It prints an address with a code that logs in. Whoever reaches it and logs in may do all that
// the socket's user may: it listens on loopback only.
import { randomBytes } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    socket: { type: "string", default: "/run/suimon/suimon.sock" },
    listen: { type: "string", default: "127.0.0.1:7447" },
    token: { type: "string" },
  },
});
const dist = path.join(path.dirname(fileURLToPath(import.meta.url)), "dist");
const [address, port] = [values.listen.replace(/:\d+$/, ""), Number(values.listen.split(":").pop())];
if (!["127.0.0.1", "[::1]", "localhost"].includes(address)) throw new Error("--listen must be on loopback");

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; " +
  "connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
const COOKIE = "suimon_console_dev";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2", ".svg": "image/svg+xml" };

const codes = new Set();
/** Secret of each session by its cookie. */
const sessions = new Map();
/** Path of each unused ticket. */
const tickets = new Map();
/** Live streams by session, so that they end with it. */
const streams = new Map();

function newCode() {
  const code = randomBytes(16).toString("hex");
  codes.add(code);
  return code;
}

/** Asks the daemon; `body` is text. */
function ask(method, url, headers = {}, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath: values.socket, method, path: url, headers }, resolve);
    request.on("error", reject);
    request.end(body);
  });
}

async function read(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts).toString();
}

async function getJson(url) {
  const answer = await ask("GET", url);
  return { status: answer.statusCode, text: (await read(answer)).trim() };
}

function answer(response, status, body) {
  const text = body === undefined ? "" : JSON.stringify(body);
  response.writeHead(status, text ? { "Content-Type": "application/json" } : {});
  response.end(text);
}

const refused = (message) => ({ errors: [{ code: "unauthorized", message }] });

/** Returns the session of a request that has its secret, or a ticket for its path. */
function sessionOf(request, url) {
  const cookie = (request.headers.cookie ?? "").split(/;\s*/).find((one) => one.startsWith(`${COOKIE}=`));
  const id = cookie?.slice(COOKIE.length + 1);
  if (!sessions.has(id)) return undefined;
  const ticket = url.searchParams.get("ticket");
  const isPermitted = request.headers["x-suimon-session"] === sessions.get(id) || (ticket !== null && tickets.get(ticket) === url.pathname);
  tickets.delete(ticket);
  return isPermitted ? id : undefined;
}

async function session(request, response, url) {
  const id = sessionOf(request, url);
  if (request.method === "POST") {
    const given = JSON.parse((await read(request)) || "{}");
    const isRight = codes.delete(given.code) || codes.delete(given.secret) || (values.token !== undefined && [given.token, given.secret].includes(values.token));
    if (!isRight) return answer(response, 401, refused("the code or token is not right, or was used before; ask for a new one with `suimon console login`"));
    const [made, secret] = [24, 24].map((bytes) => randomBytes(bytes).toString("hex"));
    sessions.set(made, secret);
    response.setHeader("Set-Cookie", `${COOKIE}=${made}; HttpOnly; SameSite=Strict; Path=/`);
    return answer(response, 200, { secret });
  }
  if (id === undefined) return answer(response, 401, refused("log in first"));
  if (request.method === "DELETE") {
    sessions.delete(id);
    for (const stream of streams.get(id) ?? []) stream.end();
    return answer(response, 204);
  }
  const host = JSON.parse((await getJson("/1.0")).text);
  return answer(response, 200, { host_name: host.name, version: host.version, logins: ["code", "token"] });
}

async function ticket(request, response) {
  const made = randomBytes(24).toString("hex");
  tickets.set(made, JSON.parse(await read(request)).path);
  return answer(response, 200, { ticket: made, valid_s: 30 });
}

async function live(request, response, id, topics) {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  const send = (event, data) => response.write(`event: ${event}\ndata: ${data}\n\n`);
  const sent = new Map();
  const tick = async () => {
    for (const topic of topics.filter((one) => one !== "events")) {
      const got = await getJson(`/1.0/${topic}`).catch((error) => ({ status: 503, text: JSON.stringify(refused(String(error))) }));
      const known = `${got.status} ${got.text}`;
      if (sent.get(topic) === known) continue;
      sent.set(topic, known);
      if (got.status === 200) send(topic, JSON.stringify(JSON.parse(got.text)));
      else send("failure", JSON.stringify({ topic, status: got.status, error: JSON.parse(got.text || "{}") }));
    }
  };
  let busy = false;
  const timers = [
    setInterval(() => {
      if (busy) return;
      busy = true;
      tick().finally(() => (busy = false));
    }, 1000),
    setInterval(() => response.write(": still here\n\n"), 10_000),
  ];
  void tick().catch(() => undefined);
  const followed = topics.includes("events") ? await ask("GET", "/1.0/events/follow").catch(() => undefined) : undefined;
  let rest = "";
  followed?.on("data", (part) => {
    rest += part;
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines.filter(Boolean)) send("events", line);
  });
  const mine = streams.get(id) ?? new Set();
  streams.set(id, mine.add(response));
  response.on("close", () => {
    timers.forEach(clearInterval);
    followed?.destroy();
    mine.delete(response);
  });
}

async function forward(request, response) {
  if (request.method !== "GET" && request.headers["x-suimon-console"] !== "1") {
    return answer(response, 401, refused("the header X-Suimon-Console is missing"));
  }
  const headers = { "Content-Type": request.headers["content-type"] ?? "application/json" };
  const got = await ask(request.method, request.url, headers, await read(request));
  // Reports of the lab have a policy of their own.
  const policy = got.headers["content-security-policy"];
  if (policy) response.setHeader("Content-Security-Policy", policy);
  response.writeHead(got.statusCode, { "Content-Type": got.headers["content-type"] ?? "application/json" });
  got.pipe(response);
}

function file(response, name) {
  const full = path.join(dist, name);
  if (!full.startsWith(dist + path.sep) || !existsSync(full)) return answer(response, 404, refused("no such page"));
  const isAsset = name.startsWith("/assets/");
  response.writeHead(200, {
    "Content-Type": TYPES[path.extname(full)] ?? "application/octet-stream",
    "Cache-Control": isAsset ? "public, max-age=31536000, immutable" : "no-store",
  });
  createReadStream(full).pipe(response);
}

const server = http.createServer(async (request, response) => {
  response.setHeader("Content-Security-Policy", CSP);
  response.setHeader("X-Content-Type-Options", "nosniff");
  try {
    const url = new URL(request.url, "http://console");
    if (url.pathname === "/") return file(response, "/index.html");
    if (url.pathname.startsWith("/assets/")) return file(response, url.pathname);
    if (url.pathname === "/console/session") return await session(request, response, url);
    const id = sessionOf(request, url);
    if (id === undefined) return answer(response, 401, refused("log in first"));
    if (url.pathname === "/console/tickets") return await ticket(request, response);
    if (url.pathname === "/console/live") return await live(request, response, id, (url.searchParams.get("topics") ?? "").split(",").filter(Boolean));
    if (url.pathname === "/1.0" || url.pathname.startsWith("/1.0/")) return await forward(request, response);
    return answer(response, 404, refused("no such page"));
  } catch (error) {
    if (!response.headersSent) answer(response, 502, { errors: [{ code: "host_error", message: `the daemon does not answer: ${error.message}` }] });
    else response.end();
  }
});
server.listen(port, address.replace(/[[\]]/g, ""), () => {
  const at = server.address();
  console.log(`http://${address}:${at.port}/#/login?code=${newCode()}`);
});
process.on("SIGUSR1", () => console.log(`http://${address}:${server.address().port}/#/login?code=${newCode()}`));
