/** State of the CPUs of the VM. */
import type { VmStatus } from "../../api/types";
import { command } from "../../api/commands";
import { link } from "../../shell/router";
import type { RequestPath } from "./stage";

export function cpuPath(vm: VmStatus): RequestPath {
  const name = vm.config.name;
  const href = link("vms", name);
  const isRunning = vm.state === "running";
  const isEmulated = vm.accelerator === "tcg";
  return { kind: "vm", name, stages: [{
    title: "stage.cpu",
    value: String(vm.cpus ?? vm.config.cpus ?? 1),
    verdict: !isRunning || vm.frozen_s != null ? "slow" : isEmulated ? "watch" : "fine",
    explanation: !isRunning ? "why.cpu.stopped" : vm.frozen_s != null ? "why.cpu.frozen" : isEmulated ? "why.cpu.tcg" : "why.cpu",
    explanationParams: { state: vm.state, reason: vm.reason ?? "" },
    remedy: vm.state === "paused"
      ? { text: "remedy.resume", href, command: command("vm", "resume", name) }
      : vm.state === "stopped"
        ? { text: "remedy.start", href, command: command("vm", "start", name) }
        : vm.frozen_s != null
          ? { text: "remedy.thaw", href, command: command("vm", "thaw", name) }
          : isEmulated ? { text: "remedy.kvm", href } : undefined,
  }] };
}
