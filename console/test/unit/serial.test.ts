import assert from "node:assert/strict";
import { test } from "node:test";
import { sessionSecret } from "../../src/api/secret";
import { SerialLine, type Socket } from "../../src/live/serial";

/** A socket whose other end is the test. */
class End extends EventTarget {
  readyState = 0;
  binaryType: BinaryType = "blob";
  path = "";
  readonly sent: string[] = [];
  isClosed = false;

  send(bytes: unknown): void {
    this.sent.push(typeof bytes === "string" ? `text ${bytes}` : new TextDecoder().decode(bytes as Uint8Array));
  }

  close(): void {
    this.isClosed = true;
    this.says("close");
  }

  says(name: "open" | "close"): void {
    this.readyState = name === "open" ? 1 : 3;
    this.dispatchEvent(new Event(name));
  }

  brings(data: string | ArrayBuffer): void {
    this.dispatchEvent(new MessageEvent("message", { data }));
  }
}

function line(vm: string): { end: End; line: SerialLine; said: string[] } {
  const end = new End();
  const said: string[] = [];
  const made = new SerialLine(vm, {
    onOpen: () => said.push("open"),
    onBytes: (bytes) => said.push(`bytes ${[...bytes].join(" ")}`),
    onEnd: (failure) => said.push(`end ${failure.status} ${failure.errors.map((one) => one.message).join()}`),
  }, (path) => {
    end.path = path;
    return end as unknown as Socket;
  });
  return { end, line: made, said };
}

test("bytes go both ways as they are, and nothing before it is open", () => {
  sessionSecret.keep("abc");
  const { end, line: serial, said } = line("a/b");
  assert.equal(end.path, "/console/vms/a%2Fb/serial");
  serial.type("too early");
  end.says("open");
  end.brings(new Uint8Array([27, 91, 255]).buffer);
  serial.type("ls é\r");
  assert.deepEqual(said, ["open", "bytes 27 91 255"]);
  assert.deepEqual(end.sent, ["text abc", "ls é\r"], "the value of the session goes first");
  serial.type("x".repeat(100_000));
  assert.deepEqual(end.sent.slice(2).map((piece) => piece.length), [32768, 32768, 32768, 1696]);
  serial.close();
  assert.ok(end.isClosed);
  assert.deepEqual(said.length, 2, "who closes it is not told that it ended");
});

test("what stands against it is told when it ends, and so is a daemon that is gone", () => {
  const refused = line("web");
  refused.end.says("open");
  refused.end.brings(JSON.stringify({ errors: [{ code: "conflict", message: "somebody has it" }] }));
  refused.end.says("close");
  assert.deepEqual(refused.said, ["open", "end 409 somebody has it"]);
  const gone = line("web");
  gone.end.says("close");
  assert.deepEqual(gone.said, ["end 0 "]);
  const odd = line("web");
  odd.end.brings("no JSON");
  odd.end.says("close");
  assert.deepEqual(odd.said, ["end 500 "]);
});
