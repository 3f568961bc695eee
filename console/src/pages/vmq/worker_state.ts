import type { VmqStatus } from "../../api/types";

type Worker = VmqStatus["workers"][number];

/** Default of `max_workers`. */
export const MAX_WORKERS_DEFAULT = 4;

/** Returns the state of a worker, the same as in the CLI: in use, parked, not permitted or draining. */
export function workerState(worker: Worker): string {
  if (!worker.permitted) return worker.queues > 0 ? "to-be-left" : "not-permitted";
  return worker.queues > 0 ? "in-use" : "parked";
}
