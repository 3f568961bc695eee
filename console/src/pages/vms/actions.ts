/** Actions on VMs: the states in which they are possible, and their requests. */
import type { VmStatus } from "../../api/types";
import { command } from "../../api/commands";
import type { Change } from "../../components/ChangeDialog";

export const VM_ACTIONS = ["start", "stop", "pause", "resume", "reset", "kill"] as const;
export type VmAction = (typeof VM_ACTIONS)[number];

const POSSIBLE_STATES: Record<VmAction, readonly VmStatus["state"][]> = {
  start: ["stopped"],
  stop: ["running", "paused"],
  pause: ["running"],
  resume: ["paused"],
  reset: ["running", "paused", "panicked"],
  kill: ["running", "paused", "stopping", "panicked", "starting", "lost"],
};

/** Actions by which the guest may lose data. */
const DESTRUCTIVE: readonly VmAction[] = ["reset", "kill"];

export function isPossible(action: VmAction, vm: VmStatus): boolean {
  return POSSIBLE_STATES[action].includes(vm.state) && vm.migration == null;
}

export function isDestructive(action: VmAction): boolean {
  return DESTRUCTIVE.includes(action);
}

export interface StopOptions {
  seconds: number;
  force: boolean;
}

export function vmChange(action: VmAction, name: string, stop: StopOptions): Change {
  const path = `/1.0/vms/${encodeURIComponent(name)}/${action}`;
  if (action !== "stop") return { method: "POST", path, command: command("vm", action, name) };
  return {
    method: "POST",
    path,
    body: { seconds: stop.seconds, force: stop.force },
    command: command("vm", "stop", name, "--seconds", String(stop.seconds), stop.force && "--force"),
  };
}
