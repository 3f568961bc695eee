import type { VmqStatus } from "../../api/types";

type Worker = VmqStatus["workers"][number];

/** Default of `max_workers`. */
export const MAX_WORKERS_DEFAULT = 4;

/** In the words of the command line: in use, parked, not permitted, draining. */
export function workerState(worker: Worker): string {
  if (!worker.permitted) return worker.queues > 0 ? "to-be-left" : "not-permitted";
  return worker.queues > 0 ? "in-use" : "parked";
}
