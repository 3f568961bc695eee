import assert from "node:assert/strict";
import { test } from "node:test";
import { sessionSecret } from "../../src/api/secret";
import { SerialConnection, type Socket } from "../../src/live/serial";

/** WebSocket whose remote end is the test. */
class MockSocket extends EventTarget {
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
    this.emit("close");
  }

  emit(name: "open" | "close"): void {
    this.readyState = name === "open" ? 1 : 3;
    this.dispatchEvent(new Event(name));
  }

  receive(data: string | ArrayBuffer): void {
    this.dispatchEvent(new MessageEvent("message", { data }));
  }
}

function connect(vm: string): { socket: MockSocket; connection: SerialConnection; log: string[] } {
  const socket = new MockSocket();
  const log: string[] = [];
  const connection = new SerialConnection(vm, {
    onOpen: () => log.push("open"),
    onBytes: (bytes) => log.push(`bytes ${[...bytes].join(" ")}`),
    onClose: (error) => log.push(`close ${error.status} ${error.errors.map((apiError) => apiError.message).join()}`),
  }, (path) => {
    socket.path = path;
    return socket as unknown as Socket;
  });
  return { socket, connection, log };
}

test("bytes are transferred unchanged in both directions once the socket is open", () => {
  sessionSecret.set("abc");
  const { socket, connection, log } = connect("a/b");
  assert.equal(socket.path, "/console/vms/a%2Fb/serial");
  connection.send("too early");
  socket.emit("open");
  socket.receive(new Uint8Array([27, 91, 255]).buffer);
  connection.send("ls é\r");
  assert.deepEqual(log, ["open", "bytes 27 91 255"]);
  assert.deepEqual(socket.sent, ["text abc", "ls é\r"], "the secret is the first message");
  connection.send("x".repeat(100_000));
  assert.deepEqual(socket.sent.slice(2).map((chunk) => chunk.length), [32768, 32768, 32768, 1696]);
  connection.close();
  assert.ok(socket.isClosed);
  assert.deepEqual(log.length, 2, "close() does not call onClose");
});

test("a rejected connection reports the error of the daemon, a missing response status 0", () => {
  const rejected = connect("web");
  rejected.socket.emit("open");
  rejected.socket.receive(JSON.stringify({ errors: [{ code: "conflict", message: "the console is in use" }] }));
  rejected.socket.emit("close");
  assert.deepEqual(rejected.log, ["open", "close 409 the console is in use"]);
  const unreachable = connect("web");
  unreachable.socket.emit("close");
  assert.deepEqual(unreachable.log, ["close 0 "]);
  const invalid = connect("web");
  invalid.socket.receive("no JSON");
  invalid.socket.emit("close");
  assert.deepEqual(invalid.log, ["close 500 "]);
});
