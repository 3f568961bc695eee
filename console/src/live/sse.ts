/**
 * Server-sent events read by `fetch`, since an `EventSource` cannot send the header of the session (HTML Living Standard,
 * section 9.2). The daemon sends no event ids; after an interruption it sends the present state anew.
 */
import { send } from "../api/client";

export interface EventListener {
  onEvent: (name: string, data: string) => void;
  /** The stream has ended or could not be opened; not after `close`. */
  onEnd: () => void;
}

export interface EventReader {
  close(): void;
}

/** Reads the events of a path until `close` or the end of the stream. */
export function readEvents(path: string, listener: EventListener): EventReader {
  const gone = new AbortController();
  void follow(path, listener, gone.signal);
  return { close: () => gone.abort() };
}

async function follow(path: string, listener: EventListener, gone: AbortSignal): Promise<void> {
  const reader = await opened(path, gone);
  const decoder = new TextDecoder();
  const parser = new EventParser(listener.onEvent);
  for (;;) {
    const part = await reader?.read().catch(() => undefined);
    if (gone.aborted) return;
    if (part?.value === undefined) break;
    parser.push(decoder.decode(part.value, { stream: true }));
  }
  listener.onEnd();
}

async function opened(path: string, gone: AbortSignal): Promise<ReadableStreamDefaultReader<Uint8Array> | undefined> {
  try {
    const response = await send("GET", path, undefined, { accept: "text/event-stream", signal: gone });
    return response.ok ? response.body?.getReader() : undefined;
  } catch {
    return undefined;
  }
}

/** Parser of an event stream (HTML Living Standard, section 9.2.6). */
export class EventParser {
  #rest = "";
  #name = "";
  #data: string[] = [];

  constructor(private readonly onEvent: (name: string, data: string) => void) {}

  /** Takes a part of the stream, which may end anywhere. */
  push(part: string): void {
    const text = this.#rest + part;
    // A carriage return at the end may be the first half of a line break.
    const whole = text.endsWith("\r") ? text.slice(0, -1) : text;
    const lines = whole.split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + text.slice(whole.length);
    for (const line of lines) this.#take(line);
  }

  #take(line: string): void {
    if (line === "") {
      const [name, data] = [this.#name || "message", this.#data];
      this.#name = "";
      this.#data = [];
      if (data.length > 0) this.onEvent(name, data.join("\n"));
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    if (field === "data") this.#data.push(value);
  }
}
