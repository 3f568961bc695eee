/** What was heard over the last minutes, for charts. It is kept from the page's start on. */
import { useSyncExternalStore } from "react";
import type { QosFlowStatus, TopSnapshot, VmqStatus } from "../api/types";
import { ratesBetween, type Rates } from "./rates";
import { live } from "./stream";

/** How long is kept: ten minutes of one sample a second. */
export const KEPT = 600;

/** The last values of something, oldest first. */
export class Ring<T> {
  #items: readonly T[] = [];
  #listeners = new Set<() => void>();

  constructor(readonly kept: number = KEPT) {}

  push(item: T): void {
    const from = Math.max(0, this.#items.length + 1 - this.kept);
    this.#items = [...this.#items.slice(from), item];
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

export interface At<T> {
  timeMs: number;
  data: T;
}

export const rateHistory = new Ring<Rates>();
export const flowHistory = new Ring<At<QosFlowStatus[]>>();
export const vmqHistory = new Ring<At<VmqStatus[]>>();

/** Begins to keep what is heard; returns what ends that. */
export function keepHistory(): () => void {
  let before: TopSnapshot | undefined;
  const ends = [
    live.subscribe("top", () => {
      const after = live.heard("top").data;
      if (!after) return;
      const rates = before && ratesBetween(before, after);
      before = after;
      if (!rates) return;
      rateHistory.push(rates);
      // Flows and VMQ are sent only when they differ; a sample a second is kept all the same.
      const flows = live.heard("qos/flows").data;
      if (flows) flowHistory.push({ timeMs: rates.timeMs, data: flows });
      const vmq = live.heard("vmq").data;
      if (vmq) vmqHistory.push({ timeMs: rates.timeMs, data: vmq });
    }),
    live.subscribe("qos/flows", () => undefined),
    live.subscribe("vmq", () => undefined),
  ];
  return () => {
    for (const end of ends) end();
    for (const ring of [rateHistory, flowHistory, vmqHistory]) ring.clear();
  };
}

export function useRing<T>(ring: Ring<T>): readonly T[] {
  return useSyncExternalStore(ring.subscribe, () => ring.items);
}

/** Rates of the last second. */
export function useRates(): Rates | undefined {
  return useRing(rateHistory).at(-1);
}
