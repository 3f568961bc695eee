/** What needs somebody's attention now, most important first. */
import type {
  ClusterStatus, DiskStatus, Event, NicStatus, PowerStatus, QosFlowStatus, StoreStatus, TeamStatus, UplinkStatus, VmStatus,
} from "../../api/types";
import type { Rates } from "../../live/rates";
import type { Key, Params } from "../../texts/texts";
import { link } from "../../shell/router";
import { count, percent } from "../../units/units";
import { sharesByStore } from "../disks/displacement";

export interface Attention {
  severity: "danger" | "warning" | "info";
  text: Key;
  params: Params;
  /** What the daemon says of it. */
  detail?: string;
  href: string;
}

export interface Observed {
  nics?: NicStatus[];
  uplinks?: UplinkStatus[];
  teams?: TeamStatus[];
  disks?: DiskStatus[];
  stores?: StoreStatus[];
  flows?: QosFlowStatus[];
  vms?: VmStatus[];
  power?: PowerStatus;
  cluster?: ClusterStatus;
  rates?: Rates;
  events?: readonly Event[];
}

const BUSY_PPM = 950_000;
const RANK = { danger: 0, warning: 1, info: 2 };

export function attention(seen: Observed): Attention[] {
  const found = [...ofVms(seen), ...ofStorage(seen), ...ofNetwork(seen), ...ofHost(seen)];
  return found.sort((a, b) => RANK[a.severity] - RANK[b.severity]);
}

function ofVms({ vms = [] }: Observed): Attention[] {
  return vms.flatMap((vm): Attention[] => {
    const params = { name: vm.config.name };
    const href = link("vms", vm.config.name);
    const detail = vm.reason ?? undefined;
    if (vm.state === "panicked" || vm.state === "lost") return [{ severity: "danger", text: `attention.vm.${vm.state}`, params, detail, href }];
    if (vm.state === "handed-over") return [{ severity: "danger", text: "attention.vm.handed-over", params, detail, href }];
    if (vm.state === "stopped" && vm.reason) return [{ severity: "warning", text: "attention.vm.ended", params, detail, href }];
    if (vm.frozen_s != null) return [{ severity: "info", text: "attention.vm.frozen", params, detail, href }];
    if ((vm.waits_for_start?.length ?? 0) > 0 && vm.state === "running") {
      return [{ severity: "info", text: "attention.vm.waits", params: { ...params, keys: (vm.waits_for_start ?? []).join(", ") }, href }];
    }
    return [];
  });
}

function ofStorage({ disks = [], stores = [], flows = [] }: Observed): Attention[] {
  const found: Attention[] = [];
  for (const store of stores) {
    const params = { name: store.config.name };
    if (store.state === "failed" || store.state === "stalled") {
      found.push({ severity: "danger", text: `attention.store.${store.state}`, params, detail: store.reason ?? undefined, href: link("disks") });
    }
    if (store.nearly_full) {
      found.push({ severity: "warning", text: "attention.store.nearly_full", params, href: link("disks") });
    }
    if ((store.reserved_percent ?? 0) > 90) {
      found.push({ severity: "warning", text: "attention.store.reserved", params: { ...params, percent: store.reserved_percent ?? 0 }, href: link("disks") });
    }
    if (store.reserved_iops > 0 && store.capacity_iops == null) {
      found.push({ severity: "warning", text: "attention.store.unknown", params, href: link("disks") });
    }
  }
  for (const disk of disks) {
    if (disk.state !== "failed" && disk.state !== "stalled" && disk.state !== "full" && disk.state !== "faulted") continue;
    const name = disk.config.name;
    found.push({ severity: "danger", text: `attention.disk.${disk.state}`, params: { name }, detail: disk.reason ?? undefined, href: link("disks", name) });
  }
  for (const store of sharesByStore(flows)) {
    for (const one of store.displaced) {
      const who = one.by.slice(0, 3).map((by) => by.disk).join(", ");
      found.push({
        severity: "warning",
        text: who ? "attention.minimum" : "attention.minimum.alone",
        params: { name: one.disk, lacks: count(one.lacks), who },
        href: link("disks", one.disk),
      });
    }
  }
  return found;
}

function ofNetwork({ nics = [], uplinks = [], teams = [], vms, rates }: Observed): Attention[] {
  const found: Attention[] = [];
  const ofVm = new Map(vms?.flatMap((vm) => vm.config.nics?.map((nic): [string, VmStatus] => [nic, vm]) ?? []));
  for (const nic of nics) {
    const { health, reason } = nic.condition;
    const params = { name: nic.config.name };
    if (health === "failed") found.push({ severity: "danger", text: "attention.nic.failed", params, detail: reason ?? undefined, href: link("network") });
    // Nobody is expected at the NIC of a VM that does not run.
    else if (health === "down" && (ofVm.get(nic.config.name)?.state ?? "running") === "running") {
      found.push({ severity: "warning", text: "attention.nic.down", params, detail: reason ?? undefined, href: link("network") });
    }
  }
  for (const uplink of uplinks) {
    const { health, reason } = uplink.condition;
    if (health === "up" || uplink.switch == null) continue;
    found.push({ severity: health === "failed" ? "danger" : "warning", text: `attention.uplink.${health}`, params: { name: uplink.config.name }, detail: reason ?? undefined, href: link("network") });
  }
  for (const team of teams) {
    const name = team.config.name;
    const failed = team.members.filter((member) => member.state === "failed");
    if (team.condition.health !== "up" && team.switch != null) {
      found.push({ severity: "danger", text: "attention.team.down", params: { name }, detail: team.condition.reason ?? undefined, href: link("teams", name) });
    } else if (failed.length > 0) {
      const detail = failed.map((member) => `${member.uplink}: ${member.reason}`).join("; ");
      found.push({ severity: "warning", text: "attention.team.member", params: { name, count: failed.length }, detail, href: link("teams", name) });
    }
  }
  for (const nic of rates?.nics ?? []) {
    if (nic.dropsPerS < 1) continue;
    found.push({ severity: "info", text: "attention.drops", params: { name: nic.name, rate: count(nic.dropsPerS) }, href: link("network") });
  }
  return found;
}

function ofHost({ power, cluster, rates, events = [] }: Observed): Attention[] {
  const found: Attention[] = [];
  for (const worker of rates?.workers ?? []) {
    if (worker.busyPpm < BUSY_PPM) continue;
    found.push({ severity: "warning", text: "attention.worker", params: { id: worker.id, busy: percent(worker.busyPpm) }, href: link("vmq") });
  }
  if (power?.config && (power.effect === "partial" || power.effect === "none")) {
    const lacking = power.settings.find((setting) => !setting.in_effect);
    found.push({ severity: "info", text: `attention.power.${power.effect}`, params: { plan: power.config.plan }, detail: lacking?.reason ?? undefined, href: link("power") });
  }
  if (cluster?.config && cluster.condition.health !== "up") {
    found.push({ severity: "danger", text: "attention.cluster", params: { name: cluster.config.name }, detail: cluster.condition.reason ?? undefined, href: link("cluster") });
  }
  for (const member of cluster?.config ? cluster.members : []) {
    if (!member.is_alive) found.push({ severity: "warning", text: "attention.node", params: { name: member.name }, href: link("cluster") });
  }
  const last = events.at(-1)?.time_unix_ms ?? 0;
  for (const event of recentErrors(events, (rates?.timeMs ?? last) - 600_000)) {
    found.push({ severity: "danger", text: "attention.event", params: { id: event.id, subject: event.subject }, detail: event.text, href: `${link("events")}?severity=error` });
  }
  return found;
}

/** The last error of each subject and kind since then, three at most. */
function recentErrors(events: readonly Event[], sinceMs: number): Event[] {
  const latest = new Map<string, Event>();
  for (const event of events) {
    if (event.severity === "error" && event.time_unix_ms >= sinceMs) latest.set(`${event.id} ${event.subject}`, event);
  }
  return [...latest.values()].slice(-3);
}
