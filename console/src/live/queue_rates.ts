/** What queues carry now, from two answers about them. */
import { useEffect, useRef, useState } from "react";
import type { QueueStatus } from "../api/types";
import { useTopic } from "./hooks";
import type { Heard } from "./stream";

export interface QueueRate {
  id: string;
  port: string;
  worker: number;
  bps: number;
  fps: number;
  /** Frames lost in the last interval because the other side had no room, per second. */
  fullPerS: number;
}

export function queueRates(before: readonly QueueStatus[], after: readonly QueueStatus[], ms: number): QueueRate[] {
  const old = new Map(before.map((queue) => [queue.id, queue]));
  const perS = (from: number | undefined, to: number) => (ms > 0 ? (Math.max(0, to - (from ?? to)) * 1000) / ms : 0);
  return after.map((queue) => {
    const was = old.get(queue.id);
    return {
      id: queue.id,
      port: queue.port,
      worker: queue.worker,
      bps: 8 * perS(was?.bytes, queue.bytes),
      fps: perS(was?.frames, queue.frames),
      fullPerS: perS(was?.full, queue.full),
    };
  });
}

/** Rates of all queues, and whether the daemon has told of queues at all. */
export function useQueueRates(): { heard: Heard<QueueStatus[]>; rates: QueueRate[] } {
  const heard = useTopic("queues");
  const last = useRef<{ atMs: number; data: QueueStatus[] }>();
  const [rates, setRates] = useState<QueueRate[]>([]);
  useEffect(() => {
    if (!heard.data) return;
    const now = { atMs: performance.now(), data: heard.data };
    const before = last.current;
    last.current = now;
    setRates(queueRates(before?.data ?? [], now.data, before ? now.atMs - before.atMs : 0));
  }, [heard.data]);
  return { heard, rates };
}
