/**
 * Live stream: one stream of server-sent events for the whole console. Components subscribe to topics. After a change
 * of the subscriptions the stream is reopened with all subscribed topics. The latest data of each topic is kept.
 */
import type { ErrorBody, Event as HostEvent, Topic, Topics } from "../api/types";
import { readSession } from "../api/session";
import { readEvents, type EventStreamListener, type EventStreamReader } from "./sse";

/** Latest data of a topic, and the error if the latest update failed. */
export interface TopicState<T> {
  data?: T;
  error?: { status: number; body?: ErrorBody };
}

export type ConnectionStatus = "connecting" | "live" | "lost";

/** State of the stream. `sinceMs` is the time of the last update before the connection was lost. */
export interface ConnectionState {
  status: ConnectionStatus;
  sinceMs?: number;
}

/** Maximum number of topics of one stream (limit of the API). */
const MAX_TOPICS = 16;
/** Time without an update after which the connection counts as lost. The topic `top` changes every second. */
const TIMEOUT_MS = 6000;
/** Delays before reconnect attempts. */
const RETRY_MS = [1000, 2000, 4000, 8000];
/** Topics that are always subscribed, because the history for charts needs them. */
const PERMANENT_TOPICS: readonly Topic[] = ["top", "qos/flows", "vmq"];

type Listener = () => void;

export class LiveStream {
  #subscriberCounts = new Map<string, number>();
  #topicStates = new Map<string, TopicState<unknown>>();
  #listeners = new Map<string, Set<Listener>>();
  #connectionListeners = new Set<Listener>();
  #eventListeners = new Set<(event: HostEvent) => void>();
  #reader?: EventStreamReader;
  #openTopics = "";
  #connection: ConnectionState = { status: "connecting" };
  #lastUpdateMs = 0;
  #attempts = 0;
  #openTimer?: ReturnType<typeof setTimeout>;
  #timeoutCheck?: ReturnType<typeof setInterval>;
  #onSessionEnd: () => void = () => undefined;

  constructor(private readonly read: (path: string, listener: EventStreamListener) => EventStreamReader = readEvents) {}

  /** Opens the stream and keeps it open until `stop`. Calls `onSessionEnd` if the session has ended. */
  start(onSessionEnd: () => void): void {
    this.stop();
    this.#onSessionEnd = onSessionEnd;
    this.#open();
    this.#timeoutCheck = setInterval(() => this.#checkTimeout(), 1000);
  }

  stop(): void {
    this.#reader?.close();
    this.#reader = undefined;
    this.#openTopics = "";
    if (this.#openTimer !== undefined) clearTimeout(this.#openTimer);
    if (this.#timeoutCheck !== undefined) clearInterval(this.#timeoutCheck);
    this.#openTimer = this.#timeoutCheck = undefined;
    this.#topicStates.clear();
    this.#connection = { status: "connecting" };
  }

  get connection(): ConnectionState {
    return this.#connection;
  }

  topicState<K extends Topic>(topic: K): TopicState<Topics[K]> {
    return (this.#topicStates.get(topic) as TopicState<Topics[K]> | undefined) ?? NO_DATA;
  }

  /** Subscribes to a topic. Calls `listener` on each update. Returns a function that unsubscribes. */
  subscribe(topic: Topic, listener: Listener): () => void {
    const count = this.#subscriberCounts.get(topic) ?? 0;
    this.#subscriberCounts.set(topic, count + 1);
    const listeners = this.#listeners.get(topic) ?? new Set();
    listeners.add(listener);
    this.#listeners.set(topic, listeners);
    if (count === 0) this.#scheduleOpen(30);
    return () => {
      listeners.delete(listener);
      const remaining = (this.#subscriberCounts.get(topic) ?? 1) - 1;
      if (remaining > 0) {
        this.#subscriberCounts.set(topic, remaining);
      } else {
        this.#subscriberCounts.delete(topic);
        this.#scheduleOpen(1000);
      }
    };
  }

  onConnectionChange(listener: Listener): () => void {
    this.#connectionListeners.add(listener);
    return () => this.#connectionListeners.delete(listener);
  }

  onEvent(listener: (event: HostEvent) => void): () => void {
    this.#eventListeners.add(listener);
    return () => this.#eventListeners.delete(listener);
  }

  #topics(): string[] {
    const topics = new Set<string>([...PERMANENT_TOPICS, "events", ...this.#subscriberCounts.keys()]);
    return [...topics].slice(0, MAX_TOPICS);
  }

  #scheduleOpen(delayMs: number): void {
    if (this.#timeoutCheck === undefined) return;
    if (this.#openTimer !== undefined) clearTimeout(this.#openTimer);
    this.#openTimer = setTimeout(() => this.#open(), delayMs);
  }

  #open(): void {
    this.#openTimer = undefined;
    const topics = this.#topics();
    const sortedTopics = [...topics].sort().join(",");
    if (sortedTopics === this.#openTopics && this.#reader) return;
    this.#reader?.close();
    this.#openTopics = sortedTopics;
    // Data of topics without a subscription becomes stale and is removed. Data of the others stays valid, because the
    // daemon sends a topic again only after a change.
    for (const topic of this.#topicStates.keys()) if (!topics.includes(topic)) this.#topicStates.delete(topic);
    const reader: EventStreamReader = this.read(`/console/live?topics=${topics.map(encodeTopic).join(",")}`, {
      onEvent: (name, data) => {
        if (this.#reader === reader) this.#handleEvent(name, data);
      },
      onEnd: () => {
        if (this.#reader !== reader) return;
        this.#reader = undefined;
        this.#setDisconnected();
        void this.#retry();
      },
    });
    this.#reader = reader;
  }

  #handleEvent(name: string, data: string): void {
    if (name === "events") {
      const event = JSON.parse(data) as HostEvent;
      for (const listener of this.#eventListeners) listener(event);
    } else if (name === "failure") {
      const message = JSON.parse(data) as { topic: string; status: number; error?: ErrorBody };
      const previous = this.#topicStates.get(message.topic);
      this.#updateTopic(message.topic, { data: previous?.data, error: { status: message.status, body: message.error } });
    } else {
      this.#updateTopic(name, { data: JSON.parse(data) });
    }
  }

  #updateTopic(topic: string, state: TopicState<unknown>): void {
    this.#lastUpdateMs = Date.now();
    this.#attempts = 0;
    this.#topicStates.set(topic, state);
    if (this.#connection.status !== "live") this.#setConnection({ status: "live" });
    for (const listener of this.#listeners.get(topic) ?? []) listener();
  }

  #setDisconnected(): void {
    if (this.#connection.status === "lost") return;
    this.#setConnection({ status: "lost", sinceMs: this.#lastUpdateMs || Date.now() });
  }

  #setConnection(state: ConnectionState): void {
    this.#connection = state;
    for (const listener of this.#connectionListeners) listener();
  }

  #checkTimeout(): void {
    if (this.#connection.status !== "live" || Date.now() - this.#lastUpdateMs < TIMEOUT_MS) return;
    this.#setDisconnected();
    this.#openTopics = "";
    this.#open();
  }

  /** Schedules a reconnect after the end of the stream, unless the session has ended. */
  async #retry(): Promise<void> {
    const delayMs = RETRY_MS[Math.min(this.#attempts, RETRY_MS.length - 1)] ?? 8000;
    this.#attempts += 1;
    try {
      if ((await readSession()) === undefined) {
        this.#onSessionEnd();
        return;
      }
    } catch {
      // The daemon does not respond; the next attempt follows.
    }
    this.#scheduleOpen(delayMs);
  }
}

const NO_DATA: TopicState<never> = {};

/** Encodes a topic for the query; slashes are permitted there and stay readable. */
function encodeTopic(topic: string): string {
  return encodeURIComponent(topic).replaceAll("%2F", "/");
}

export const live = new LiveStream();
