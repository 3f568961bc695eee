/** Rates of queues, calculated from two samples of their counters. */
import { useEffect, useRef, useState } from "react";
import type { QueueStatus } from "../api/types";
import { useTopic } from "./hooks";
import type { TopicState } from "./stream";

export interface QueueRate {
  id: string;
  port: string;
  worker: number;
  bps: number;
  fps: number;
  /** Frames per second that were dropped because the receive queue was full. */
  overflowsPerS: number;
}

export function queueRates(previous: readonly QueueStatus[], current: readonly QueueStatus[], elapsedMs: number): QueueRate[] {
  const previousById = new Map(previous.map((queue) => [queue.id, queue]));
  const perS = (start: number | undefined, end: number) => (elapsedMs > 0 ? (Math.max(0, end - (start ?? end)) * 1000) / elapsedMs : 0);
  return current.map((queue) => {
    const previousQueue = previousById.get(queue.id);
    return {
      id: queue.id,
      port: queue.port,
      worker: queue.worker,
      bps: 8 * perS(previousQueue?.bytes, queue.bytes),
      fps: perS(previousQueue?.frames, queue.frames),
      overflowsPerS: perS(previousQueue?.full, queue.full),
    };
  });
}

/** Returns the rates of all queues and the state of the topic `queues`. */
export function useQueueRates(): { topic: TopicState<QueueStatus[]>; rates: QueueRate[] } {
  const topic = useTopic("queues");
  const latest = useRef<{ timeMs: number; data: QueueStatus[] }>();
  const [rates, setRates] = useState<QueueRate[]>([]);
  useEffect(() => {
    if (!topic.data) return;
    const current = { timeMs: performance.now(), data: topic.data };
    const previous = latest.current;
    latest.current = current;
    setRates(queueRates(previous?.data ?? [], current.data, previous ? current.timeMs - previous.timeMs : 0));
  }, [topic.data]);
  return { topic, rates };
}
