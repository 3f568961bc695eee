import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { request } from "../../src/api/client";
import { SessionSecret, sessionSecret, type Channel } from "../../src/api/secret";
import { logIn, logOut, readSession } from "../../src/api/session";
import { urlWithTicket } from "../../src/api/ticket";

type Message = Parameters<Channel["postMessage"]>[0];

/** Storage of one tab. */
function storage(): Pick<Storage, "getItem" | "setItem" | "removeItem"> & { values: Map<string, string> } {
  const values = new Map<string, string>();
  return {
    values,
    getItem: (name) => values.get(name) ?? null,
    setItem: (name, value) => void values.set(name, value),
    removeItem: (name) => void values.delete(name),
  };
}

/** Broadcast channel between tabs of one origin. */
class MockOrigin {
  readonly #channels = new Set<Channel>();

  tab(): Channel {
    const channels = this.#channels;
    const channel: Channel = {
      onmessage: null,
      close: () => void channels.delete(channel),
      postMessage: (message: Message) => {
        for (const other of channels) {
          if (other !== channel) queueMicrotask(() => other.onmessage?.({ data: message } as MessageEvent<Message>));
        }
      },
    };
    channels.add(channel);
    return channel;
  }
}

afterEach(() => {
  mock.restoreAll();
  sessionSecret.discard(sessionSecret.value);
});

test("the secret stays in the storage of the tab until it is discarded", () => {
  const tabStorage = storage();
  const secret = new SessionSecret(tabStorage);
  secret.set("one");
  assert.equal(new SessionSecret(tabStorage).value, "one", "after a reload");
  secret.discard("another");
  assert.equal(secret.value, "one");
  secret.discard("one");
  assert.deepEqual([secret.value, tabStorage.values.size], [undefined, 0]);
});

test("a new tab receives the secret from an open tab, if there is one", async () => {
  const origin = new MockOrigin();
  const [openTab, newTab] = [new SessionSecret(storage()), new SessionSecret(storage())];
  openTab.listen(() => undefined, origin.tab());
  const replaced: string[] = [];
  newTab.listen(() => replaced.push(newTab.value ?? ""), origin.tab());
  assert.equal(await newTab.request(), undefined);
  openTab.set("one");
  await Promise.resolve();
  assert.deepEqual(replaced, ["one"], "after a login in another tab");
  newTab.discard("one");
  assert.equal(await newTab.request(), "one");
  assert.deepEqual(replaced, ["one"], "a requested secret does not call onReplaced");
});

test("a tab of another origin receives no secret", async () => {
  const openTab = new SessionSecret(storage());
  openTab.listen(() => undefined, new MockOrigin().tab());
  openTab.set("one");
  const other = new SessionSecret(storage());
  other.listen(() => undefined, new MockOrigin().tab());
  assert.equal(await other.request(), undefined);
});

/** Responds to requests in order. Returns the list of received requests. */
function mockResponses(...responses: [status: number, body?: unknown][]): { path: string; headers: Record<string, string>; body?: string }[] {
  const requests: ReturnType<typeof mockResponses> = [];
  mock.method(globalThis, "fetch", async (path: string, init: RequestInit) => {
    requests.push({ path, headers: init.headers as Record<string, string>, body: init.body as string | undefined });
    const [status, body] = responses[requests.length - 1] ?? [500];
    return new Response(body === undefined ? null : JSON.stringify(body), { status });
  });
  return requests;
}

test("requests carry the secret after a login, and none after the logout", async () => {
  const requests = mockResponses([200, { secret: "abc" }], [200, []], [204], [200, []]);
  await logIn({ secret: "token" });
  await request("GET", "/1.0/disks");
  await logOut();
  await request("GET", "/1.0/disks");
  assert.deepEqual(requests.map((received) => received.headers["X-Suimon-Session"]), [undefined, "abc", "abc", undefined]);
  assert.equal(requests[0]?.body, '{"secret":"token"}');
});

test("there is no session without a secret, and a rejected secret is discarded", async () => {
  const requests = mockResponses([401, { errors: [] }]);
  assert.equal(await readSession(), undefined);
  assert.equal(requests.length, 0, "no request with the cookie alone");
  sessionSecret.set("old");
  assert.equal(await readSession(), undefined);
  assert.deepEqual([requests.length, sessionSecret.value], [1, undefined]);
});

test("a rejected secret is replaced with that of another tab", async () => {
  const origin = new MockOrigin();
  sessionSecret.set("old");
  const stopListening = sessionSecret.listen(() => undefined, origin.tab());
  // The other tab logged in while this one was suspended, and responds to its request.
  const other = new SessionSecret(storage());
  other.set("new");
  other.listen(() => undefined, origin.tab());
  const requests = mockResponses([401, { errors: [] }], [200, { host_name: "h" }]);
  assert.equal((await readSession())?.host_name, "h");
  assert.deepEqual(requests.map((received) => received.headers["X-Suimon-Session"]), ["old", "new"]);
  stopListening();
});

test("URLs that the browser loads contain a ticket", async () => {
  const requests = mockResponses([200, { ticket: "t1", valid_s: 30 }]);
  assert.equal(await urlWithTicket("/1.0/lab/runs/a/report"), "/1.0/lab/runs/a/report?ticket=t1");
  assert.deepEqual([requests[0]?.path, requests[0]?.body], ["/console/tickets", '{"path":"/1.0/lab/runs/a/report"}']);
});
