/** History of live data for charts, recorded from the login on. */
import { useSyncExternalStore } from "react";
import type { QosFlowStatus, TopSnapshot, VmqStatus } from "../api/types";
import { ratesBetween, type Rates } from "./rates";
import { live } from "./stream";

/** Number of samples: ten minutes, one sample per second. */
export const HISTORY_LENGTH = 600;

/** Buffer of the latest items, oldest first, with change notification for React. */
export class RingBuffer<T> {
  #items: readonly T[] = [];
  #listeners = new Set<() => void>();

  constructor(readonly capacity: number = HISTORY_LENGTH) {}

  push(item: T): void {
    const start = Math.max(0, this.#items.length + 1 - this.capacity);
    this.#items = [...this.#items.slice(start), item];
    for (const listener of this.#listeners) listener();
  }

  clear(): void {
    this.#items = [];
    for (const listener of this.#listeners) listener();
  }

  get items(): readonly T[] {
    return this.#items;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

export interface Sample<T> {
  timeMs: number;
  data: T;
}

export const rateHistory = new RingBuffer<Rates>();
export const flowHistory = new RingBuffer<Sample<QosFlowStatus[]>>();
export const vmqHistory = new RingBuffer<Sample<VmqStatus[]>>();

/** Starts to record the history. Returns a function that stops recording and clears the history. */
export function recordHistory(): () => void {
  let previous: TopSnapshot | undefined;
  const unsubscribers = [
    live.subscribe("top", () => {
      const current = live.topicState("top").data;
      if (!current) return;
      const rates = previous && ratesBetween(previous, current);
      previous = current;
      if (!rates) return;
      rateHistory.push(rates);
      // The daemon sends flows and VMQ only when they change; the history has one sample per second nevertheless.
      const flows = live.topicState("qos/flows").data;
      if (flows) flowHistory.push({ timeMs: rates.timeMs, data: flows });
      const vmq = live.topicState("vmq").data;
      if (vmq) vmqHistory.push({ timeMs: rates.timeMs, data: vmq });
    }),
    live.subscribe("qos/flows", () => undefined),
    live.subscribe("vmq", () => undefined),
  ];
  return () => {
    for (const unsubscribe of unsubscribers) unsubscribe();
    for (const buffer of [rateHistory, flowHistory, vmqHistory]) buffer.clear();
  };
}

export function useRingBuffer<T>(buffer: RingBuffer<T>): readonly T[] {
  return useSyncExternalStore(buffer.subscribe, () => buffer.items);
}

/** Returns the rates of the last second. */
export function useRates(): Rates | undefined {
  return useRingBuffer(rateHistory).at(-1);
}
