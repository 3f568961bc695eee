/** Serial console of a VM: a byte stream in both directions over a WebSocket. */
import type { ErrorBody } from "../api/types";
import { RequestError } from "../api/client";
import { sessionSecret } from "../api/secret";

export interface SerialConnectionListener {
  onOpen: () => void;
  onBytes: (bytes: Uint8Array) => void;
  /** Called when the daemon closes the connection or does not respond; not after `close()`. */
  onClose: (error: RequestError) => void;
}

/** Maximum size of a message; the daemon accepts 64 KiB. */
const CHUNK_BYTES = 32 * 1024;

/** Used members of a `WebSocket`. */
export type Socket = Pick<WebSocket, "send" | "close" | "readyState" | "addEventListener" | "binaryType">;

export class SerialConnection {
  readonly #socket: Socket;
  #error?: RequestError;
  #isClosed = false;

  constructor(vm: string, listener: SerialConnectionListener, open: (path: string) => Socket = (path) => new WebSocket(path)) {
    this.#socket = open(`/console/vms/${encodeURIComponent(vm)}/serial`);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.addEventListener("open", () => {
      // A script cannot set headers of a WebSocket request, therefore the first message carries the secret.
      this.#socket.send(sessionSecret.value ?? "");
      listener.onOpen();
    });
    this.#socket.addEventListener("message", (event) => {
      const { data } = event as MessageEvent<ArrayBuffer | string>;
      if (typeof data === "string") this.#error = parseError(data);
      else listener.onBytes(new Uint8Array(data));
    });
    this.#socket.addEventListener("close", () => {
      if (!this.#isClosed) listener.onClose(this.#error ?? new RequestError(0, []));
    });
  }

  /** Sends input. Long input, for example from the clipboard, is split into several messages. */
  send(text: string): void {
    if (this.#socket.readyState !== 1) return;
    const bytes = new TextEncoder().encode(text);
    for (let offset = 0; offset < bytes.length; offset += CHUNK_BYTES) this.#socket.send(bytes.slice(offset, offset + CHUNK_BYTES));
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.close();
  }
}

function parseError(text: string): RequestError {
  try {
    const { errors } = JSON.parse(text) as ErrorBody;
    if (Array.isArray(errors)) return new RequestError(409, errors);
  } catch {
    // The message is not an error body of the API.
  }
  return new RequestError(500, []);
}
