import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { FakeClock } from "./fake_clock";
import { sessionSecret } from "../../src/api/secret";
import type { EventStreamListener, EventStreamReader } from "../../src/live/sse";
import { LiveStream } from "../../src/live/stream";

/** Event stream whose events the test emits. */
class MockReader implements EventStreamReader {
  static instances: MockReader[] = [];
  isClosed = false;
  constructor(
    readonly url: string,
    readonly listener: EventStreamListener,
  ) {
    MockReader.instances.push(this);
  }
  close() {
    this.isClosed = true;
  }
  emit(name: string, data: unknown) {
    this.listener.onEvent(name, JSON.stringify(data));
  }
  end() {
    this.isClosed = true;
    this.listener.onEnd();
  }
}

const last = () => MockReader.instances.at(-1) as MockReader;
const settle = async () => {
  for (let index = 0; index < 20; index += 1) await Promise.resolve();
};
let stream: LiveStream;
let sessionEnds: number;
let sessionStatus: number;
let clock: FakeClock;

beforeEach(() => {
  MockReader.instances = [];
  sessionEnds = 0;
  sessionStatus = 200;
  sessionSecret.set("abc");
  mock.method(globalThis, "fetch", async () => new Response(sessionStatus === 200 ? "{}" : '{"errors":[]}', { status: sessionStatus }));
  clock = new FakeClock();
  stream = new LiveStream((url, listener) => new MockReader(url, listener));
  stream.start(() => (sessionEnds += 1));
});

afterEach(() => {
  stream.stop();
  clock.stop();
  mock.restoreAll();
});

test("all topics are requested in one stream, and their data is kept when it is reopened", () => {
  const received: unknown[] = [];
  stream.subscribe("disks", () => received.push(stream.topicState("disks").data));
  clock.tick(50);
  assert.match(last().url, /topics=top,qos\/flows,vmq,events,disks$/);
  assert.equal(MockReader.instances.filter((reader) => !reader.isClosed).length, 1);
  last().emit("disks", [{ a: 1 }]);
  stream.subscribe("nics", () => undefined);
  clock.tick(50);
  assert.deepEqual(stream.topicState("disks").data, [{ a: 1 }]);
  assert.deepEqual(received, [[{ a: 1 }]]);
});

test("data of a topic is kept if it is subscribed again at once", () => {
  const unsubscribe = stream.subscribe("vms", () => undefined);
  clock.tick(50);
  last().emit("vms", [1]);
  unsubscribe();
  stream.subscribe("vms", () => undefined);
  clock.tick(2000);
  assert.deepEqual(stream.topicState("vms").data, [1]);
});

test("data of a topic without subscribers is removed", () => {
  const unsubscribe = stream.subscribe("vms", () => undefined);
  clock.tick(50);
  last().emit("vms", [1]);
  unsubscribe();
  clock.tick(2000);
  stream.subscribe("vms", () => undefined);
  assert.equal(stream.topicState("vms").data, undefined);
});

test("a failed topic keeps its data and has an error", () => {
  stream.subscribe("disks", () => undefined);
  clock.tick(50);
  last().emit("disks", [1]);
  last().emit("failure", { topic: "disks", status: 500, error: { errors: [{ code: "internal", message: "it broke" }] } });
  assert.deepEqual(stream.topicState("disks").data, [1]);
  assert.equal(stream.topicState("disks").error?.body?.errors[0]?.message, "it broke");
  last().emit("disks", [2]);
  assert.equal(stream.topicState("disks").error, undefined);
});

test("a lost connection has the time of the last update, and is live again after an update", async () => {
  last().emit("top", {});
  const lastUpdateMs = Date.now();
  clock.tick(1000);
  const replaced = last();
  replaced.end();
  assert.deepEqual(stream.connection, { status: "lost", sinceMs: lastUpdateMs });
  await settle();
  clock.tick(1000);
  replaced.emit("top", {});
  assert.equal(stream.connection.status, "lost", "events of a replaced stream are ignored");
  last().emit("top", {});
  assert.deepEqual(stream.connection, { status: "live" });
});

test("a timeout counts as a lost connection, and the stream is reopened", () => {
  last().emit("top", {});
  const count = MockReader.instances.length;
  clock.tick(8000);
  assert.equal(stream.connection.status, "lost");
  assert.equal(MockReader.instances.length, count + 1);
});

test("a closed stream is reopened with increasing delays while the session is valid", async () => {
  last().emit("top", {});
  for (const delayMs of [1000, 2000, 4000]) {
    const count = MockReader.instances.length;
    last().end();
    await settle();
    clock.tick(delayMs - 1);
    assert.equal(MockReader.instances.length, count);
    clock.tick(1);
    assert.equal(MockReader.instances.length, count + 1);
  }
  assert.equal(sessionEnds, 0);
});

test("the end of the session is reported if the daemon rejects it", async () => {
  sessionStatus = 401;
  last().end();
  await settle();
  assert.equal(sessionEnds, 1);
});

test("the stream is not reopened if its topics stay the same", () => {
  const unsubscribe = stream.subscribe("top", () => undefined);
  clock.tick(50);
  unsubscribe();
  clock.tick(2000);
  assert.equal(MockReader.instances.length, 1);
});
