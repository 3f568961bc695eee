/**
 * One stream of server-sent events for the whole page. Who wants a topic subscribes to it; the
 * stream is opened anew, soon after, with all topics that are wanted. What was heard last stays.
 */
import type { ErrorBody, Event as HostEvent, Topic, Topics } from "../api/types";
import { readSession } from "../api/session";
import { readEvents, type EventListener, type EventReader } from "./sse";

/** A topic as it was heard last. */
export interface Heard<T> {
  data?: T;
  error?: { status: number; body?: ErrorBody };
}

export type Line = "connecting" | "live" | "lost";

/** How the stream is, and since when nothing is heard. */
export interface LineState {
  line: Line;
  sinceMs?: number;
}

/** Most topics of one stream, by the contract. */
const TOPICS_MAX = 16;
/** `top` differs every second; a silence as long as this is a lost connection. */
const SILENCE_MS = 6000;
const RETRY_MS = [1000, 2000, 4000, 8000];
/** Topics that charts need from the page's start on, whatever is shown. */
const ALWAYS: readonly Topic[] = ["top", "qos/flows", "vmq"];

type Listener = () => void;

export class LiveStream {
  #wanted = new Map<string, number>();
  #heard = new Map<string, Heard<unknown>>();
  #listeners = new Map<string, Set<Listener>>();
  #lineListeners = new Set<Listener>();
  #eventListeners = new Set<(event: HostEvent) => void>();
  #source?: EventReader;
  #opened = "";
  #state: LineState = { line: "connecting" };
  #lastMs = 0;
  #attempts = 0;
  #timer?: ReturnType<typeof setTimeout>;
  #watch?: ReturnType<typeof setInterval>;
  #sessionEnds: () => void = () => undefined;

  constructor(private readonly read: (path: string, listener: EventListener) => EventReader = readEvents) {}

  start(sessionEnds: () => void): void {
    this.stop();
    this.#sessionEnds = sessionEnds;
    this.#open();
    this.#watch = setInterval(() => this.#lookForSilence(), 1000);
  }

  stop(): void {
    this.#source?.close();
    this.#source = undefined;
    this.#opened = "";
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    if (this.#watch !== undefined) clearInterval(this.#watch);
    this.#timer = this.#watch = undefined;
    this.#heard.clear();
    this.#state = { line: "connecting" };
  }

  get state(): LineState {
    return this.#state;
  }

  heard<K extends Topic>(topic: K): Heard<Topics[K]> {
    return (this.#heard.get(topic) as Heard<Topics[K]> | undefined) ?? NOTHING;
  }

  subscribe(topic: Topic, listener: Listener): () => void {
    const count = this.#wanted.get(topic) ?? 0;
    this.#wanted.set(topic, count + 1);
    const listeners = this.#listeners.get(topic) ?? new Set();
    listeners.add(listener);
    this.#listeners.set(topic, listeners);
    if (count === 0) this.#openSoon(30);
    return () => {
      listeners.delete(listener);
      const left = (this.#wanted.get(topic) ?? 1) - 1;
      if (left > 0) {
        this.#wanted.set(topic, left);
      } else {
        this.#wanted.delete(topic);
        this.#openSoon(1000);
      }
    };
  }

  onLine(listener: Listener): () => void {
    this.#lineListeners.add(listener);
    return () => this.#lineListeners.delete(listener);
  }

  onEvent(listener: (event: HostEvent) => void): () => void {
    this.#eventListeners.add(listener);
    return () => this.#eventListeners.delete(listener);
  }

  #topics(): string[] {
    const all = new Set<string>([...ALWAYS, "events", ...this.#wanted.keys()]);
    return [...all].slice(0, TOPICS_MAX);
  }

  #openSoon(inMs: number): void {
    if (this.#watch === undefined) return;
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#open(), inMs);
  }

  #open(): void {
    this.#timer = undefined;
    const topics = this.#topics();
    const name = [...topics].sort().join(",");
    if (name === this.#opened && this.#source) return;
    this.#source?.close();
    this.#opened = name;
    // An old answer must not be taken for the present one later on. While the stream has its topic it is
    // the present one: the daemon does not say again what has not changed.
    for (const topic of this.#heard.keys()) if (!topics.includes(topic)) this.#heard.delete(topic);
    const source: EventReader = this.read(`/console/live?topics=${topics.map(encodeTopic).join(",")}`, {
      onEvent: (name, data) => {
        if (this.#source === source) this.#hear(name, data);
      },
      onEnd: () => {
        if (this.#source !== source) return;
        this.#source = undefined;
        this.#lost();
        void this.#again();
      },
    });
    this.#source = source;
  }

  #hear(name: string, data: string): void {
    if (name === "events") {
      const event = JSON.parse(data) as HostEvent;
      for (const listener of this.#eventListeners) listener(event);
    } else if (name === "failure") {
      const failure = JSON.parse(data) as { topic: string; status: number; error?: ErrorBody };
      const before = this.#heard.get(failure.topic);
      this.#take(failure.topic, { data: before?.data, error: { status: failure.status, body: failure.error } });
    } else {
      this.#take(name, { data: JSON.parse(data) });
    }
  }

  #take(topic: string, heard: Heard<unknown>): void {
    this.#lastMs = Date.now();
    this.#attempts = 0;
    this.#heard.set(topic, heard);
    if (this.#state.line !== "live") this.#set({ line: "live" });
    for (const listener of this.#listeners.get(topic) ?? []) listener();
  }

  #lost(): void {
    if (this.#state.line === "lost") return;
    this.#set({ line: "lost", sinceMs: this.#lastMs || Date.now() });
  }

  #set(state: LineState): void {
    this.#state = state;
    for (const listener of this.#lineListeners) listener();
  }

  #lookForSilence(): void {
    if (this.#state.line !== "live" || Date.now() - this.#lastMs < SILENCE_MS) return;
    this.#lost();
    this.#opened = "";
    this.#open();
  }

  /** The stream has ended: the session may be over, or the daemon is not there. */
  async #again(): Promise<void> {
    const wait = RETRY_MS[Math.min(this.#attempts, RETRY_MS.length - 1)] ?? 8000;
    this.#attempts += 1;
    try {
      if ((await readSession()) === undefined) {
        this.#sessionEnds();
        return;
      }
    } catch {
      // The daemon is not there; it is asked again.
    }
    this.#openSoon(wait);
  }
}

const NOTHING: Heard<never> = {};

/** A topic's slashes may stand in a query as they are. */
function encodeTopic(topic: string): string {
  return encodeURIComponent(topic).replaceAll("%2F", "/");
}

export const live = new LiveStream();
