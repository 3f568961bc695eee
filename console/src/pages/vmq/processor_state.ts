import type { VmqStatus } from "../../api/types";

type Processor = VmqStatus["processors"][number];

/** In the words of the command line: in use, parked, not permitted, to be left. */
export function processorState(processor: Processor): string {
  if (!processor.permitted) return processor.queues > 0 ? "to-be-left" : "not-permitted";
  return processor.queues > 0 ? "in-use" : "parked";
}
