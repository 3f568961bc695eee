import type { VmqStatus } from "../../api/types";

type Worker = VmqStatus["workers"][number];

/** In the words of the command line: in use, parked, not permitted, to be left. */
export function workerState(worker: Worker): string {
  if (!worker.permitted) return worker.queues > 0 ? "to-be-left" : "not-permitted";
  return worker.queues > 0 ? "in-use" : "parked";
}
