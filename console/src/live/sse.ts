/**
 * Client for server-sent events on top of `fetch`, because an `EventSource` cannot send the session header (HTML Living
 * Standard, section 9.2). The daemon sends no event ids; after a reconnect it sends the complete current state.
 */
import { send } from "../api/client";

export interface EventStreamListener {
  onEvent: (name: string, data: string) => void;
  /** Called when the stream ends or cannot be opened; not after `close()`. */
  onEnd: () => void;
}

export interface EventStreamReader {
  close(): void;
}

/** Reads the events of a path until `close` or the end of the stream. */
export function readEvents(path: string, listener: EventStreamListener): EventStreamReader {
  const controller = new AbortController();
  void readStream(path, listener, controller.signal);
  return { close: () => controller.abort() };
}

async function readStream(path: string, listener: EventStreamListener, signal: AbortSignal): Promise<void> {
  const reader = await openStream(path, signal);
  const decoder = new TextDecoder();
  const parser = new EventStreamParser(listener.onEvent);
  for (;;) {
    const chunk = await reader?.read().catch(() => undefined);
    if (signal.aborted) return;
    if (chunk?.value === undefined) break;
    parser.push(decoder.decode(chunk.value, { stream: true }));
  }
  listener.onEnd();
}

async function openStream(path: string, signal: AbortSignal): Promise<ReadableStreamDefaultReader<Uint8Array> | undefined> {
  try {
    const response = await send("GET", path, undefined, { accept: "text/event-stream", signal });
    return response.ok ? response.body?.getReader() : undefined;
  } catch {
    return undefined;
  }
}

/** Parser of an event stream (HTML Living Standard, section 9.2.6). */
export class EventStreamParser {
  #incompleteLine = "";
  #name = "";
  #data: string[] = [];

  constructor(private readonly onEvent: (name: string, data: string) => void) {}

  /** Parses a chunk of the stream, which may end within a line. */
  push(chunk: string): void {
    const text = this.#incompleteLine + chunk;
    // A carriage return at the end may be the first half of a line break.
    const complete = text.endsWith("\r") ? text.slice(0, -1) : text;
    const lines = complete.split(/\r\n|\n|\r/);
    this.#incompleteLine = (lines.pop() ?? "") + text.slice(complete.length);
    for (const line of lines) this.#processLine(line);
  }

  #processLine(line: string): void {
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
