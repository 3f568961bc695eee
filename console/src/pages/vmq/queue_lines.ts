/** Which worker had which queue when, as stretches of time. */
import type { VmqStatus } from "../../api/types";
import type { At } from "../../live/history";

export interface Stretch {
  fromMs: number;
  toMs: number;
  worker: number;
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
      if (last && last.worker === queue.worker) last.toMs = at.timeMs;
      else stretches.push({ fromMs: last?.toMs ?? at.timeMs, toMs: at.timeMs, worker: queue.worker });
      lines.set(queue.queue, stretches);
    }
  }
  return [...lines].map(([queue, stretches]) => ({ queue, stretches }));
}

/** How many queues each worker had, at each moment. */
export function queuesPerWorker(history: readonly At<VmqStatus[]>[], uplink: string): Map<number, (number | undefined)[]> {
  const counts = new Map<number, (number | undefined)[]>();
  history.forEach((at, moment) => {
    const status = at.data.find((one) => one.uplink === uplink);
    for (const worker of status?.workers ?? []) {
      const values = counts.get(worker.worker) ?? [];
      values[moment] = worker.queues;
      counts.set(worker.worker, values);
    }
  });
  // Moments before a worker was known are unknown, not holes.
  for (const [worker, values] of counts) counts.set(worker, Array.from({ length: history.length }, (_, at) => values[at]));
  return counts;
}
