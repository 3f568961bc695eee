import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Clock } from "./clock";
import { sessionSecret } from "../../src/api/secret";
import type { EventListener, EventReader } from "../../src/live/sse";
import { LiveStream } from "../../src/live/stream";

/** A stream that a test speaks for. */
class FakeSource implements EventReader {
  static all: FakeSource[] = [];
  isClosed = false;
  constructor(
    readonly url: string,
    readonly listener: EventListener,
  ) {
    FakeSource.all.push(this);
  }
  close() {
    this.isClosed = true;
  }
  say(name: string, data: unknown) {
    this.listener.onEvent(name, JSON.stringify(data));
  }
  end() {
    this.isClosed = true;
    this.listener.onEnd();
  }
}

const last = () => FakeSource.all.at(-1) as FakeSource;
const settle = async () => {
  for (let at = 0; at < 20; at += 1) await Promise.resolve();
};
let stream: LiveStream;
let ended: number;
let session: number;
let clock: Clock;

beforeEach(() => {
  FakeSource.all = [];
  ended = 0;
  session = 200;
  sessionSecret.keep("abc");
  mock.method(globalThis, "fetch", async () => new Response(session === 200 ? "{}" : '{"errors":[]}', { status: session }));
  clock = new Clock();
  stream = new LiveStream((url, listener) => new FakeSource(url, listener));
  stream.start(() => (ended += 1));
});

afterEach(() => {
  stream.stop();
  clock.stop();
  mock.restoreAll();
});

test("what is wanted besides is asked for in one stream, and what was heard stays", () => {
  const heard: unknown[] = [];
  stream.subscribe("disks", () => heard.push(stream.heard("disks").data));
  clock.tick(50);
  assert.match(last().url, /topics=top,qos\/flows,vmq,events,disks$/);
  assert.equal(FakeSource.all.filter((one) => !one.isClosed).length, 1);
  last().say("disks", [{ a: 1 }]);
  stream.subscribe("nics", () => undefined);
  clock.tick(50);
  assert.deepEqual(stream.heard("disks").data, [{ a: 1 }]);
  assert.deepEqual(heard, [[{ a: 1 }]]);
});

test("what another page wants at once is there, though the daemon does not say it again", () => {
  const leave = stream.subscribe("vms", () => undefined);
  clock.tick(50);
  last().say("vms", [1]);
  leave();
  stream.subscribe("vms", () => undefined);
  clock.tick(2000);
  assert.deepEqual(stream.heard("vms").data, [1]);
});

test("what nobody wanted for a while is asked for anew", () => {
  const leave = stream.subscribe("vms", () => undefined);
  clock.tick(50);
  last().say("vms", [1]);
  leave();
  clock.tick(2000);
  stream.subscribe("vms", () => undefined);
  assert.equal(stream.heard("vms").data, undefined);
});

test("a topic that fails keeps its last answer and tells the error", () => {
  stream.subscribe("disks", () => undefined);
  clock.tick(50);
  last().say("disks", [1]);
  last().say("failure", { topic: "disks", status: 500, error: { errors: [{ code: "internal", message: "it broke" }] } });
  assert.deepEqual(stream.heard("disks").data, [1]);
  assert.equal(stream.heard("disks").error?.body?.errors[0]?.message, "it broke");
  last().say("disks", [2]);
  assert.equal(stream.heard("disks").error, undefined);
});

test("a lost line is stale since it was heard last, and live again when it is heard", async () => {
  last().say("top", {});
  const at = Date.now();
  clock.tick(1000);
  const ended = last();
  ended.end();
  assert.deepEqual(stream.state, { line: "lost", sinceMs: at });
  await settle();
  clock.tick(1000);
  ended.say("top", {});
  assert.equal(stream.state.line, "lost", "a stream that was replaced is not heard");
  last().say("top", {});
  assert.deepEqual(stream.state, { line: "live" });
});

test("silence is a lost line, too, and a new stream is opened", () => {
  last().say("top", {});
  const count = FakeSource.all.length;
  clock.tick(8000);
  assert.equal(stream.state.line, "lost");
  assert.equal(FakeSource.all.length, count + 1);
});

test("a stream that is closed is opened again, later and later, while the session lasts", async () => {
  last().say("top", {});
  for (const wait of [1000, 2000, 4000]) {
    const count = FakeSource.all.length;
    last().end();
    await settle();
    clock.tick(wait - 1);
    assert.equal(FakeSource.all.length, count);
    clock.tick(1);
    assert.equal(FakeSource.all.length, count + 1);
  }
  assert.equal(ended, 0);
});

test("a session that is over ends the page's, not the daemon that is away", async () => {
  session = 401;
  last().end();
  await settle();
  assert.equal(ended, 1);
});

test("a stream opened for nobody new stays as it is", () => {
  const end = stream.subscribe("top", () => undefined);
  clock.tick(50);
  end();
  clock.tick(2000);
  assert.equal(FakeSource.all.length, 1);
});
