// Development server: serves dist/ and forwards API requests to the Unix socket of a suimond, as the console server of
// the daemon does. The console can be changed without a build of the daemon.
//
//   node dev.mjs [--socket /run/suimon/suimon.sock] [--listen 127.0.0.1:7447] [--token TOKEN]
//
// Prints a login URL with a one-time code, and another one on SIGUSR1. A logged-in client has all permissions of the
// user that runs the server, therefore it listens on loopback only.
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
/** Secrets of the sessions, by the value of the cookie. */
const sessions = new Map();
/** Paths of unused tickets, by ticket. */
const tickets = new Map();
/** Responses of live streams by session, to end them at logout. */
const streams = new Map();

function newCode() {
  const code = randomBytes(16).toString("hex");
  codes.add(code);
  return code;
}

/** Sends a request to the daemon. Resolves to its response. */
function sendToDaemon(method, url, headers = {}, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath: values.socket, method, path: url, headers }, resolve);
    request.on("error", reject);
    request.end(body);
  });
}

async function read(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function getJson(url) {
  const response = await sendToDaemon("GET", url);
  return { status: response.statusCode, text: (await read(response)).trim() };
}

function sendJson(response, status, body) {
  const text = body === undefined ? "" : JSON.stringify(body);
  response.writeHead(status, text ? { "Content-Type": "application/json" } : {});
  response.end(text);
}

const errorBody = (message) => ({ errors: [{ code: "unauthorized", message }] });

/** Returns the session of a request that has its secret or a ticket for the path; otherwise undefined. */
function sessionOf(request, url) {
  const cookie = (request.headers.cookie ?? "").split(/;\s*/).find((cookie) => cookie.startsWith(`${COOKIE}=`));
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
    const credential = JSON.parse((await read(request)) || "{}");
    const isValid = codes.delete(credential.code) || codes.delete(credential.secret) || (values.token !== undefined && [credential.token, credential.secret].includes(values.token));
    if (!isValid) return sendJson(response, 401, errorBody("the code or token is invalid or was used before; get a new code with `suimon console login`"));
    const [newId, secret] = [24, 24].map((bytes) => randomBytes(bytes).toString("hex"));
    sessions.set(newId, secret);
    response.setHeader("Set-Cookie", `${COOKIE}=${newId}; HttpOnly; SameSite=Strict; Path=/`);
    return sendJson(response, 200, { secret });
  }
  if (id === undefined) return sendJson(response, 401, errorBody("log in first"));
  if (request.method === "DELETE") {
    sessions.delete(id);
    for (const stream of streams.get(id) ?? []) stream.end();
    return sendJson(response, 204);
  }
  const host = JSON.parse((await getJson("/1.0")).text);
  return sendJson(response, 200, { host_name: host.name, version: host.version, logins: ["code", "token"] });
}

async function ticket(request, response) {
  const id = randomBytes(24).toString("hex");
  tickets.set(id, JSON.parse(await read(request)).path);
  return sendJson(response, 200, { ticket: id, valid_s: 30 });
}

async function live(request, response, id, topics) {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  const send = (event, data) => response.write(`event: ${event}\ndata: ${data}\n\n`);
  const lastSent = new Map();
  const poll = async () => {
    for (const topic of topics.filter((name) => name !== "events")) {
      const result = await getJson(`/1.0/${topic}`).catch((error) => ({ status: 503, text: JSON.stringify(errorBody(String(error))) }));
      const current = `${result.status} ${result.text}`;
      if (lastSent.get(topic) === current) continue;
      lastSent.set(topic, current);
      if (result.status === 200) send(topic, JSON.stringify(JSON.parse(result.text)));
      else send("failure", JSON.stringify({ topic, status: result.status, error: JSON.parse(result.text || "{}") }));
    }
  };
  let isPolling = false;
  const timers = [
    setInterval(() => {
      if (isPolling) return;
      isPolling = true;
      poll().finally(() => (isPolling = false));
    }, 1000),
    setInterval(() => response.write(": keep-alive\n\n"), 10_000),
  ];
  void poll().catch(() => undefined);
  const events = topics.includes("events") ? await sendToDaemon("GET", "/1.0/events/follow").catch(() => undefined) : undefined;
  let incompleteLine = "";
  events?.on("data", (chunk) => {
    incompleteLine += chunk;
    const lines = incompleteLine.split("\n");
    incompleteLine = lines.pop();
    for (const line of lines.filter(Boolean)) send("events", line);
  });
  const sessionStreams = streams.get(id) ?? new Set();
  streams.set(id, sessionStreams.add(response));
  response.on("close", () => {
    timers.forEach(clearInterval);
    events?.destroy();
    sessionStreams.delete(response);
  });
}

async function forward(request, response) {
  if (request.method !== "GET" && request.headers["x-suimon-console"] !== "1") {
    return sendJson(response, 401, errorBody("the header X-Suimon-Console is missing"));
  }
  const headers = { "Content-Type": request.headers["content-type"] ?? "application/json" };
  const daemonResponse = await sendToDaemon(request.method, request.url, headers, await read(request));
  // Lab reports carry their own content security policy.
  const policy = daemonResponse.headers["content-security-policy"];
  if (policy) response.setHeader("Content-Security-Policy", policy);
  response.writeHead(daemonResponse.statusCode, { "Content-Type": daemonResponse.headers["content-type"] ?? "application/json" });
  daemonResponse.pipe(response);
}

function sendFile(response, name) {
  const full = path.join(dist, name);
  if (!full.startsWith(dist + path.sep) || !existsSync(full)) return sendJson(response, 404, errorBody("no such page"));
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
    if (url.pathname === "/") return sendFile(response, "/index.html");
    if (url.pathname.startsWith("/assets/")) return sendFile(response, url.pathname);
    if (url.pathname === "/console/session") return await session(request, response, url);
    const id = sessionOf(request, url);
    if (id === undefined) return sendJson(response, 401, errorBody("log in first"));
    if (url.pathname === "/console/tickets") return await ticket(request, response);
    if (url.pathname === "/console/live") return await live(request, response, id, (url.searchParams.get("topics") ?? "").split(",").filter(Boolean));
    if (url.pathname === "/1.0" || url.pathname.startsWith("/1.0/")) return await forward(request, response);
    return sendJson(response, 404, errorBody("no such page"));
  } catch (error) {
    if (!response.headersSent) sendJson(response, 502, { errors: [{ code: "host_error", message: `the daemon does not respond: ${error.message}` }] });
    else response.end();
  }
});
function printLoginUrl() {
  console.log(`http://${address}:${server.address().port}/#/login?code=${newCode()}`);
}

server.listen(port, address.replace(/[[\]]/g, ""), () => {
  printLoginUrl();
});
process.on("SIGUSR1", printLoginUrl);
