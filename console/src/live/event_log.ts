/** The host's events: those before the page was opened, and those since. */
import { useSyncExternalStore } from "react";
import type { Event } from "../api/types";
import { request } from "../api/client";
import { live } from "./stream";

/** How many are kept, and asked for at the start. */
const KEPT = 1000;
const ASKED = 300;

let events: readonly Event[] | undefined;
const listeners = new Set<() => void>();

function merge(more: readonly Event[]): void {
  const all = new Map((events ?? []).map((event) => [event.sequence, event]));
  for (const event of more) all.set(event.sequence, event);
  events = [...all.values()].sort((a, b) => a.sequence - b.sequence).slice(-KEPT);
  for (const listener of listeners) listener();
}

/** Reads the log's end and follows it; what came while the line was lost is read when it is back. */
export function followEvents(): () => void {
  const read = async () => {
    try {
      merge(await request<Event[]>("GET", `/1.0/events?limit=${ASKED}`));
    } catch {
      // It is read again when the stream is back.
    }
  };
  void read();
  let wasLost = false;
  const ends = [
    live.onEvent((event) => merge([event])),
    live.onLine(() => {
      if (live.state.line === "live" && wasLost) void read();
      wasLost = live.state.line === "lost";
    }),
  ];
  return () => {
    for (const end of ends) end();
    events = undefined;
  };
}

/** All that are kept, oldest first; nothing before they are there. */
export function useEvents(): readonly Event[] | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => events,
  );
}
