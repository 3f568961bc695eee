/** Which processor had which queue when, as stretches of time. */
import type { VmqStatus } from "../../api/types";
import type { At } from "../../live/history";

export interface Stretch {
  fromMs: number;
  toMs: number;
  processor: number;
}

export interface QueueLine {
  queue: string;
  stretches: Stretch[];
}

export function queueLines(history: readonly At<VmqStatus[]>[], uplink: string): QueueLine[] {
  const lines = new Map<string, Stretch[]>();
  for (const at of history) {
    const status = at.data.find((one) => one.uplink === uplink);
    for (const queue of status?.queues ?? []) {
      const stretches = lines.get(queue.queue) ?? [];
      const last = stretches.at(-1);
      if (last && last.processor === queue.processor) last.toMs = at.timeMs;
      else stretches.push({ fromMs: last?.toMs ?? at.timeMs, toMs: at.timeMs, processor: queue.processor });
      lines.set(queue.queue, stretches);
    }
  }
  return [...lines].map(([queue, stretches]) => ({ queue, stretches }));
}

/** How many queues each processor had, at each moment. */
export function queuesPerProcessor(history: readonly At<VmqStatus[]>[], uplink: string): Map<number, (number | undefined)[]> {
  const counts = new Map<number, (number | undefined)[]>();
  history.forEach((at, moment) => {
    const status = at.data.find((one) => one.uplink === uplink);
    for (const processor of status?.processors ?? []) {
      const values = counts.get(processor.processor) ?? [];
      values[moment] = processor.queues;
      counts.set(processor.processor, values);
    }
  });
  // Moments before a processor was known are unknown, not holes.
  for (const [processor, values] of counts) counts.set(processor, Array.from({ length: history.length }, (_, at) => values[at]));
  return counts;
}
