/**
 * Second value of the session. The browser sends the cookie to every port of the host name; this value is kept in
 * `sessionStorage`, which belongs to one tab of one origin, and sent in a header. A new tab requests it from open tabs of
 * the same origin.
 */

const NAME = "suimon.session";
/** Time for other tabs to respond, in milliseconds. A later response is accepted, too. */
const RESPONSE_MS = 300;

type Note = { kind: "request" } | { kind: "secret"; secret: string };

/** Used parts of a `BroadcastChannel`. */
export interface Channel {
  postMessage(note: Note): void;
  close(): void;
  onmessage: ((message: MessageEvent<Note>) => void) | null;
}

export class SessionSecret {
  #value: string | undefined;
  #channel: Channel | undefined;
  #waiting = new Set<() => void>();

  constructor(private readonly storage: Pick<Storage, "getItem" | "setItem" | "removeItem"> | undefined) {
    this.#value = storage?.getItem(NAME) ?? undefined;
  }

  get value(): string | undefined {
    return this.#value;
  }

  /** Exchanges the value with other tabs from now on. `adopted` is called when another tab sent a new one. */
  listen(adopted: () => void, channel: Channel = new BroadcastChannel(NAME)): () => void {
    this.#channel = channel;
    channel.onmessage = ({ data }) => {
      if (data.kind === "request") {
        if (this.#value !== undefined) channel.postMessage({ kind: "secret", secret: this.#value });
        return;
      }
      if (data.secret === this.#value) return;
      this.#store(data.secret);
      if (this.#waiting.size === 0) adopted();
      for (const waiting of this.#waiting) waiting();
    };
    return () => {
      channel.close();
      this.#channel = undefined;
    };
  }

  /** Keeps the value of a new session. Other tabs need it, too: they share the cookie. */
  keep(secret: string): void {
    this.#store(secret);
    this.#channel?.postMessage({ kind: "secret", secret });
  }

  /** Forgets a value that the daemon refused, unless it has been replaced meanwhile. */
  forget(secret: string | undefined): void {
    if (secret !== this.#value) return;
    this.#value = undefined;
    this.storage?.removeItem(NAME);
  }

  /** Requests the value from other tabs. */
  async request(): Promise<string | undefined> {
    if (!this.#channel) return undefined;
    let done: () => void = () => undefined;
    const received = new Promise<void>((resolve) => (done = resolve));
    this.#waiting.add(done);
    const timer = setTimeout(done, RESPONSE_MS);
    this.#channel.postMessage({ kind: "request" });
    await received;
    clearTimeout(timer);
    this.#waiting.delete(done);
    return this.#value;
  }

  #store(secret: string): void {
    this.#value = secret;
    this.storage?.setItem(NAME, secret);
  }
}

export const sessionSecret = new SessionSecret(typeof sessionStorage === "undefined" ? undefined : sessionStorage);
