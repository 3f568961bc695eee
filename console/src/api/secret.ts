/**
 * Second value of the session. The browser sends the cookie to every port of the host name; this value is kept in
 * `sessionStorage`, which belongs to one tab of one origin, and sent in a header. A new tab requests it from open tabs of
 * the same origin.
 */

const STORAGE_KEY = "suimon.session";
/** Time for other tabs to respond, in milliseconds. A later response is accepted, too. */
const RESPONSE_MS = 300;

type ChannelMessage = { kind: "request" } | { kind: "secret"; secret: string };

/** Used parts of a `BroadcastChannel`. */
export interface Channel {
  postMessage(message: ChannelMessage): void;
  close(): void;
  onmessage: ((event: MessageEvent<ChannelMessage>) => void) | null;
}

export class SessionSecret {
  #value: string | undefined;
  #channel: Channel | undefined;
  #pendingRequests = new Set<() => void>();

  constructor(private readonly storage: Pick<Storage, "getItem" | "setItem" | "removeItem"> | undefined) {
    this.#value = storage?.getItem(STORAGE_KEY) ?? undefined;
  }

  get value(): string | undefined {
    return this.#value;
  }

  /**
   * Starts to exchange the value with other tabs. Calls `onReplaced` when another tab sends a new value without a
   * request. Returns a function that stops the exchange.
   */
  listen(onReplaced: () => void, channel: Channel = new BroadcastChannel(STORAGE_KEY)): () => void {
    this.#channel = channel;
    channel.onmessage = ({ data }) => {
      if (data.kind === "request") {
        if (this.#value !== undefined) channel.postMessage({ kind: "secret", secret: this.#value });
        return;
      }
      if (data.secret === this.#value) return;
      this.#store(data.secret);
      if (this.#pendingRequests.size === 0) onReplaced();
      for (const resolveRequest of this.#pendingRequests) resolveRequest();
    };
    return () => {
      channel.close();
      this.#channel = undefined;
    };
  }

  /** Stores the value of a new session and sends it to other tabs, which share the cookie. */
  set(secret: string): void {
    this.#store(secret);
    this.#channel?.postMessage({ kind: "secret", secret });
  }

  /** Removes a value that the daemon rejected, unless it has been replaced since. */
  discard(secret: string | undefined): void {
    if (secret !== this.#value) return;
    this.#value = undefined;
    this.storage?.removeItem(STORAGE_KEY);
  }

  /** Requests the value from other tabs. Returns the stored value after a response or `RESPONSE_MS`. */
  async request(): Promise<string | undefined> {
    if (!this.#channel) return undefined;
    let resolveRequest: () => void = () => undefined;
    const received = new Promise<void>((resolve) => (resolveRequest = resolve));
    this.#pendingRequests.add(resolveRequest);
    const timer = setTimeout(resolveRequest, RESPONSE_MS);
    this.#channel.postMessage({ kind: "request" });
    await received;
    clearTimeout(timer);
    this.#pendingRequests.delete(resolveRequest);
    return this.#value;
  }

  #store(secret: string): void {
    this.#value = secret;
    this.storage?.setItem(STORAGE_KEY, secret);
  }
}

export const sessionSecret = new SessionSecret(typeof sessionStorage === "undefined" ? undefined : sessionStorage);
