/** Event log of the host: the latest events before the console was opened, and all events since. */
import { useSyncExternalStore } from "react";
import type { Event } from "../api/types";
import { request } from "../api/client";
import { live } from "./stream";

/** Capacity of the log. The oldest events are discarded. */
const MAX_EVENTS = 1000;
/** Number of events that are requested at the start and after a reconnect. */
const INITIAL_EVENTS = 300;

let events: readonly Event[] | undefined;
const listeners = new Set<() => void>();

function mergeEvents(newEvents: readonly Event[]): void {
  const bySequence = new Map((events ?? []).map((event) => [event.sequence, event]));
  for (const event of newEvents) bySequence.set(event.sequence, event);
  events = [...bySequence.values()].sort((a, b) => a.sequence - b.sequence).slice(-MAX_EVENTS);
  for (const listener of listeners) listener();
}

/**
 * Reads the latest events and adds new ones from the live stream. Reads the latest events again after a reconnect.
 * Returns a function that stops this.
 */
export function followEvents(): () => void {
  const readLog = async () => {
    try {
      mergeEvents(await request<Event[]>("GET", `/1.0/events?limit=${INITIAL_EVENTS}`));
    } catch {
      // The log is read again after a reconnect.
    }
  };
  void readLog();
  let wasDisconnected = false;
  const unsubscribers = [
    live.onEvent((event) => mergeEvents([event])),
    live.onConnectionChange(() => {
      if (live.connection.status === "live" && wasDisconnected) void readLog();
      wasDisconnected = live.connection.status === "lost";
    }),
  ];
  return () => {
    for (const unsubscribe of unsubscribers) unsubscribe();
    events = undefined;
  };
}

/** Returns the events, oldest first; `undefined` before the first response. */
export function useEvents(): readonly Event[] | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => events,
  );
}
