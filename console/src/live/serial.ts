/** A VM's serial console: bytes of both directions over a WebSocket of this daemon. */
import type { ErrorBody } from "../api/types";
import { RequestFailed } from "../api/client";
import { sessionSecret } from "../api/secret";

export interface SerialListener {
  onOpen: () => void;
  onBytes: (bytes: Uint8Array) => void;
  /** It has ended: by a failure, or because the daemon does not answer; not after `close`. */
  onEnd: (failure: RequestFailed) => void;
}

/** Half of what the daemon takes at a time. */
const PIECE_BYTES = 32 * 1024;

/** What a WebSocket has of which this makes use. */
export type Socket = Pick<WebSocket, "send" | "close" | "readyState" | "addEventListener" | "binaryType">;

export class SerialLine {
  readonly #socket: Socket;
  #failure?: RequestFailed;
  #isClosed = false;

  constructor(vm: string, listener: SerialListener, open: (path: string) => Socket = (path) => new WebSocket(path)) {
    this.#socket = open(`/console/vms/${encodeURIComponent(vm)}/serial`);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.addEventListener("open", () => {
      // A WebSocket of a page sends no header of the page's choice.
      this.#socket.send(sessionSecret.value ?? "");
      listener.onOpen();
    });
    this.#socket.addEventListener("message", (event) => {
      const { data } = event as MessageEvent<ArrayBuffer | string>;
      if (typeof data === "string") this.#failure = failureOf(data);
      else listener.onBytes(new Uint8Array(data));
    });
    this.#socket.addEventListener("close", () => {
      if (!this.#isClosed) listener.onEnd(this.#failure ?? new RequestFailed(0, []));
    });
  }

  /** Types a text. What is pasted may be long, and goes in pieces that the daemon takes. */
  type(text: string): void {
    if (this.#socket.readyState !== 1) return;
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) this.#socket.send(bytes.slice(at, at + PIECE_BYTES));
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.close();
  }
}

function failureOf(text: string): RequestFailed {
  try {
    const { errors } = JSON.parse(text) as ErrorBody;
    if (Array.isArray(errors)) return new RequestFailed(409, errors);
  } catch {
    // It says no more than that it has ended.
  }
  return new RequestFailed(500, []);
}
