/** The VM itself: whether its CPUs run, and how. */
import type { VmStatus } from "../../api/types";
import { command } from "../../api/commands";
import { link } from "../../shell/router";
import type { Way } from "./stage";

export function hostWay(vm: VmStatus): Way {
  const name = vm.config.name;
  const href = link("vms", name);
  const runs = vm.state === "running";
  const isEmulated = vm.accelerator === "tcg";
  return { kind: "host", name, stages: [{
    title: "stage.cpu",
    now: String(vm.cpus ?? vm.config.cpus ?? 1),
    verdict: !runs || vm.frozen_s != null ? "slow" : isEmulated ? "watch" : "fine",
    why: !runs ? "why.cpu.stands" : vm.frozen_s != null ? "why.cpu.frozen" : isEmulated ? "why.cpu.tcg" : "why.cpu",
    whyParams: { state: vm.state, reason: vm.reason ?? "" },
    remedy: vm.state === "paused"
      ? { text: "remedy.resume", href, command: command("vm", "resume", name) }
      : vm.state === "stopped"
        ? { text: "remedy.start", href, command: command("vm", "start", name) }
        : vm.frozen_s != null
          ? { text: "remedy.thaw", href, command: command("vm", "thaw", name) }
          : isEmulated ? { text: "remedy.kvm", href } : undefined,
  }] };
}
