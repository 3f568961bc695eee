import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { request } from "../../src/api/client";
import { SessionSecret, sessionSecret, type Channel } from "../../src/api/secret";
import { logIn, logOut, readSession } from "../../src/api/session";
import { ticketed } from "../../src/api/ticket";

type Note = Parameters<Channel["postMessage"]>[0];

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

/** Tabs of one origin: each hears what the others post. */
class Origin {
  readonly #channels = new Set<Channel>();

  tab(): Channel {
    const channels = this.#channels;
    const channel: Channel = {
      onmessage: null,
      close: () => void channels.delete(channel),
      postMessage: (note: Note) => {
        for (const other of channels) {
          if (other !== channel) queueMicrotask(() => other.onmessage?.({ data: note } as MessageEvent<Note>));
        }
      },
    };
    channels.add(channel);
    return channel;
  }
}

afterEach(() => {
  mock.restoreAll();
  sessionSecret.forget(sessionSecret.value);
});

test("the value stays in the storage of the tab until it is forgotten", () => {
  const kept = storage();
  const first = new SessionSecret(kept);
  first.keep("one");
  assert.equal(new SessionSecret(kept).value, "one", "after a reload");
  first.forget("another");
  assert.equal(first.value, "one");
  first.forget("one");
  assert.deepEqual([first.value, kept.values.size], [undefined, 0]);
});

test("a new tab gets the value from an open one, and none where there is none", async () => {
  const origin = new Origin();
  const [open, fresh] = [new SessionSecret(storage()), new SessionSecret(storage())];
  open.listen(() => undefined, origin.tab());
  const adopted: string[] = [];
  fresh.listen(() => adopted.push(fresh.value ?? ""), origin.tab());
  assert.equal(await fresh.request(), undefined);
  open.keep("one");
  await Promise.resolve();
  assert.deepEqual(adopted, ["one"], "a login is passed on");
  fresh.forget("one");
  assert.equal(await fresh.request(), "one");
  assert.deepEqual(adopted, ["one"], "who requests it is not told again");
});

test("a tab of another origin gets nothing", async () => {
  const open = new SessionSecret(storage());
  open.listen(() => undefined, new Origin().tab());
  open.keep("one");
  const other = new SessionSecret(storage());
  other.listen(() => undefined, new Origin().tab());
  assert.equal(await other.request(), undefined);
});

/** Answers requests in order, and returns what was sent. */
function answers(...all: [status: number, body?: unknown][]): { path: string; headers: Record<string, string>; body?: string }[] {
  const sent: ReturnType<typeof answers> = [];
  mock.method(globalThis, "fetch", async (path: string, init: RequestInit) => {
    sent.push({ path, headers: init.headers as Record<string, string>, body: init.body as string | undefined });
    const [status, body] = all[sent.length - 1] ?? [500];
    return new Response(body === undefined ? null : JSON.stringify(body), { status });
  });
  return sent;
}

test("requests after a login have the value that it returned, and none after the logout", async () => {
  const sent = answers([200, { secret: "abc" }], [200, []], [204], [200, []]);
  await logIn({ secret: "token" });
  await request("GET", "/1.0/disks");
  await logOut();
  await request("GET", "/1.0/disks");
  assert.deepEqual(sent.map((one) => one.headers["X-Suimon-Session"]), [undefined, "abc", "abc", undefined]);
  assert.equal(sent[0]?.body, '{"secret":"token"}');
});

test("without a value there is no session, and a refused one is forgotten", async () => {
  const sent = answers([401, { errors: [] }]);
  assert.equal(await readSession(), undefined);
  assert.equal(sent.length, 0, "the cookie alone is not tried");
  sessionSecret.keep("old");
  assert.equal(await readSession(), undefined);
  assert.deepEqual([sent.length, sessionSecret.value], [1, undefined]);
});

test("a refused value is replaced by that of another tab", async () => {
  const origin = new Origin();
  sessionSecret.keep("old");
  const end = sessionSecret.listen(() => undefined, origin.tab());
  // The other tab logged in while this one was suspended, and answers when it is asked.
  const other = new SessionSecret(storage());
  other.keep("new");
  other.listen(() => undefined, origin.tab());
  const sent = answers([401, { errors: [] }], [200, { host_name: "h" }]);
  assert.equal((await readSession())?.host_name, "h");
  assert.deepEqual(sent.map((one) => one.headers["X-Suimon-Session"]), ["old", "new"]);
  end();
});

test("what the browser loads by itself has a ticket in its address", async () => {
  const sent = answers([200, { ticket: "t1", valid_s: 30 }]);
  assert.equal(await ticketed("/1.0/lab/runs/a/report"), "/1.0/lab/runs/a/report?ticket=t1");
  assert.deepEqual([sent[0]?.path, sent[0]?.body], ["/console/tickets", '{"path":"/1.0/lab/runs/a/report"}']);
});
