/** Assignments of queues to workers over time. */
import type { VmqStatus } from "../../api/types";
import type { Sample } from "../../live/history";

/** Period in which a worker serviced a queue. */
export interface Assignment {
  fromMs: number;
  toMs: number;
  worker: number;
}

export interface QueueAssignments {
  queue: string;
  assignments: Assignment[];
}

/** Returns the assignments of each queue of an uplink, oldest first. */
export function queueAssignments(history: readonly Sample<VmqStatus[]>[], uplink: string): QueueAssignments[] {
  const assignmentsByQueue = new Map<string, Assignment[]>();
  for (const sample of history) {
    const status = sample.data.find((status) => status.uplink === uplink);
    for (const queue of status?.queues ?? []) {
      const assignments = assignmentsByQueue.get(queue.queue) ?? [];
      const last = assignments.at(-1);
      if (last && last.worker === queue.worker) last.toMs = sample.timeMs;
      else assignments.push({ fromMs: last?.toMs ?? sample.timeMs, toMs: sample.timeMs, worker: queue.worker });
      assignmentsByQueue.set(queue.queue, assignments);
    }
  }
  return [...assignmentsByQueue].map(([queue, assignments]) => ({ queue, assignments }));
}

/** Returns the number of queues of each worker at each sample; `undefined` where the worker is not in the sample. */
export function queuesPerWorker(history: readonly Sample<VmqStatus[]>[], uplink: string): Map<number, (number | undefined)[]> {
  const counts = new Map<number, (number | undefined)[]>();
  history.forEach((sample, index) => {
    const status = sample.data.find((status) => status.uplink === uplink);
    for (const worker of status?.workers ?? []) {
      const values = counts.get(worker.worker) ?? [];
      values[index] = worker.queues;
      counts.set(worker.worker, values);
    }
  });
  // Replaces array holes, of samples before the first one with the worker, by `undefined`.
  for (const [worker, values] of counts) counts.set(worker, Array.from({ length: history.length }, (_, index) => values[index]));
  return counts;
}
