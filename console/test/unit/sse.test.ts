import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { sessionSecret } from "../../src/api/secret";
import { EventStreamParser, readEvents } from "../../src/live/sse";

afterEach(() => {
  mock.restoreAll();
  sessionSecret.discard(sessionSecret.value);
});

function parse(...chunks: string[]): string[] {
  const events: string[] = [];
  const parser = new EventStreamParser((name, data) => events.push(`${name}=${data}`));
  for (const chunk of chunks) parser.push(chunk);
  return events;
}

test("events are parsed independently of chunk boundaries", () => {
  const stream = ":\n\nevent: top\ndata: {\"a\": 1}\n\nevent: vms\r\ndata:[1,\r\ndata: 2]\r\n\r\ndata: x\rid: 7\r\r";
  const events = ['top={"a": 1}', "vms=[1,\n2]", "message=x"];
  assert.deepEqual(parse(`${stream}\n`), events);
  assert.deepEqual(parse(...`${stream}\n`), events, "byte by byte");
});

test("an event without data or without a final blank line is ignored", () => {
  assert.deepEqual(parse("event: top\n\ndata: 1\n", "\nevent: vms\ndata: 2\n"), ["message=1"]);
});

/** Responds to requests with a stream that the test writes. */
function mockStream(status: number): { write: (text: string) => void; end: () => void; headers: () => Record<string, string>; signal: () => AbortSignal } {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let init: RequestInit = {};
  mock.method(globalThis, "fetch", async (_path: string, options: RequestInit) => {
    init = options;
    const body = new ReadableStream<Uint8Array>({ start: (streamController) => void (controller = streamController) });
    return new Response(body, { status });
  });
  return {
    write: (text) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
    headers: () => init.headers as Record<string, string>,
    signal: () => init.signal as AbortSignal,
  };
}

const settle = () => new Promise((resolve) => setTimeout(resolve, 5));

test("the stream is requested with the session secret and read until its end", async () => {
  sessionSecret.set("abc");
  const stream = mockStream(200);
  const received: string[] = [];
  readEvents("/console/live?topics=top", { onEvent: (name, data) => received.push(`${name} ${data}`), onEnd: () => received.push("end") });
  await settle();
  assert.deepEqual([stream.headers()["X-Suimon-Session"], stream.headers()["Accept"]], ["abc", "text/event-stream"]);
  stream.write("event: top\nda");
  await settle();
  stream.write("ta: 1\n\n");
  await settle();
  assert.deepEqual(received, ["top 1"]);
  stream.end();
  await settle();
  assert.deepEqual(received, ["top 1", "end"]);
});

test("a rejected stream reports its end, and a closed stream reports nothing", async () => {
  const received: string[] = [];
  const listener = { onEvent: () => received.push("event"), onEnd: () => received.push("end") };
  mockStream(401);
  readEvents("/console/live?topics=top", listener);
  await settle();
  assert.deepEqual(received, ["end"]);
  const stream = mockStream(200);
  const reader = readEvents("/console/live?topics=top", listener);
  await settle();
  reader.close();
  assert.ok(stream.signal().aborted);
  stream.write("data: 1\n\n");
  stream.end();
  await settle();
  assert.deepEqual(received, ["end"]);
});
