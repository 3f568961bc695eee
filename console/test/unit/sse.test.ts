import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { sessionSecret } from "../../src/api/secret";
import { EventParser, readEvents } from "../../src/live/sse";

afterEach(() => {
  mock.restoreAll();
  sessionSecret.forget(sessionSecret.value);
});

function parsed(...parts: string[]): string[] {
  const events: string[] = [];
  const parser = new EventParser((name, data) => events.push(`${name}=${data}`));
  for (const part of parts) parser.push(part);
  return events;
}

test("events are found wherever the parts of the stream end", () => {
  const stream = ":\n\nevent: top\ndata: {\"a\": 1}\n\nevent: vms\r\ndata:[1,\r\ndata: 2]\r\n\r\ndata: x\rid: 7\r\r";
  const events = ['top={"a": 1}', "vms=[1,\n2]", "message=x"];
  assert.deepEqual(parsed(`${stream}\n`), events);
  assert.deepEqual(parsed(...`${stream}\n`), events, "byte by byte");
});

test("an event without data or without its end is none", () => {
  assert.deepEqual(parsed("event: top\n\ndata: 1\n", "\nevent: vms\ndata: 2\n"), ["message=1"]);
});

/** A response whose stream the test writes. */
function streaming(status: number): { write: (text: string) => void; end: () => void; headers: () => Record<string, string>; signal: () => AbortSignal } {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let init: RequestInit = {};
  mock.method(globalThis, "fetch", async (_path: string, given: RequestInit) => {
    init = given;
    const body = new ReadableStream<Uint8Array>({ start: (made) => void (controller = made) });
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

test("the stream is requested with the value of the session and read until its end", async () => {
  sessionSecret.keep("abc");
  const stream = streaming(200);
  const heard: string[] = [];
  readEvents("/console/live?topics=top", { onEvent: (name, data) => heard.push(`${name} ${data}`), onEnd: () => heard.push("end") });
  await settle();
  assert.deepEqual([stream.headers()["X-Suimon-Session"], stream.headers()["Accept"]], ["abc", "text/event-stream"]);
  stream.write("event: top\nda");
  await settle();
  stream.write("ta: 1\n\n");
  await settle();
  assert.deepEqual(heard, ["top 1"]);
  stream.end();
  await settle();
  assert.deepEqual(heard, ["top 1", "end"]);
});

test("a refused stream has ended, and a closed one says nothing", async () => {
  const heard: string[] = [];
  const listener = { onEvent: () => heard.push("event"), onEnd: () => heard.push("end") };
  streaming(401);
  readEvents("/console/live?topics=top", listener);
  await settle();
  assert.deepEqual(heard, ["end"]);
  const stream = streaming(200);
  const reader = readEvents("/console/live?topics=top", listener);
  await settle();
  reader.close();
  assert.ok(stream.signal().aborted);
  stream.write("data: 1\n\n");
  stream.end();
  await settle();
  assert.deepEqual(heard, ["end"]);
});
