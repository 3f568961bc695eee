/** Problems that are listed under "Needs attention". */
import type {
  ClusterStatus, DiskStatus, Event, NicStatus, PowerStatus, QosFlowStatus, StoreStatus, TeamStatus, UplinkStatus, VmStatus,
} from "../../api/types";
import type { Rates } from "../../live/rates";
import type { Key, Params } from "../../texts/texts";
import { link } from "../../shell/router";
import { count, percent } from "../../units/units";
import { deliveryByStore } from "../disks/delivery";

export interface AttentionItem {
  severity: "danger" | "warning" | "info";
  text: Key;
  params: Params;
  /** Reason from the daemon. */
  detail?: string;
  href: string;
}

/** Objects that are checked; undefined before their first update. */
export interface HostObjects {
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

const OVERLOAD_PPM = 950_000;
const RANK = { danger: 0, warning: 1, info: 2 };

/** Returns the problems of all objects, highest severity first. */
export function attentionItems(objects: HostObjects): AttentionItem[] {
  const items = [...vmItems(objects), ...storageItems(objects), ...networkItems(objects), ...hostItems(objects)];
  return items.sort((a, b) => RANK[a.severity] - RANK[b.severity]);
}

function vmItems({ vms = [] }: HostObjects): AttentionItem[] {
  return vms.flatMap((vm): AttentionItem[] => {
    const params = { name: vm.config.name };
    const href = link("vms", vm.config.name);
    const detail = vm.reason ?? undefined;
    if (vm.state === "panicked" || vm.state === "lost") return [{ severity: "danger", text: `attention.vm.${vm.state}`, params, detail, href }];
    if (vm.state === "handed-over") return [{ severity: "danger", text: "attention.vm.handed-over", params, detail, href }];
    if (vm.state === "stopped" && vm.reason) return [{ severity: "warning", text: "attention.vm.ended", params, detail, href }];
    if (vm.frozen_s != null) return [{ severity: "info", text: "attention.vm.frozen", params, detail, href }];
    if ((vm.waits_for_start?.length ?? 0) > 0 && vm.state === "running") {
      return [{ severity: "info", text: "attention.vm.pending", params: { ...params, keys: (vm.waits_for_start ?? []).join(", ") }, href }];
    }
    return [];
  });
}

function storageItems({ disks = [], stores = [], flows = [] }: HostObjects): AttentionItem[] {
  const items: AttentionItem[] = [];
  for (const store of stores) {
    const params = { name: store.config.name };
    if (store.state === "failed" || store.state === "stalled") {
      items.push({ severity: "danger", text: `attention.store.${store.state}`, params, detail: store.reason ?? undefined, href: link("disks") });
    }
    if (store.nearly_full) {
      items.push({ severity: "warning", text: "attention.store.nearly_full", params, href: link("disks") });
    }
    if ((store.reserved_percent ?? 0) > 90) {
      items.push({ severity: "warning", text: "attention.store.reserved", params: { ...params, percent: store.reserved_percent ?? 0 }, href: link("disks") });
    }
    if (store.reserved_iops > 0 && store.capacity_iops == null) {
      items.push({ severity: "warning", text: "attention.store.unknown", params, href: link("disks") });
    }
  }
  for (const disk of disks) {
    if (disk.state !== "failed" && disk.state !== "stalled" && disk.state !== "full" && disk.state !== "faulted") continue;
    const name = disk.config.name;
    items.push({ severity: "danger", text: `attention.disk.${disk.state}`, params: { name }, detail: disk.reason ?? undefined, href: link("disks", name) });
  }
  for (const store of deliveryByStore(flows)) {
    for (const disk of store.unmet) {
      const others = disk.excessDisks.slice(0, 3).map((other) => other.disk).join(", ");
      items.push({
        severity: "warning",
        text: others ? "attention.minimum" : "attention.minimum.alone",
        params: { name: disk.disk, lacks: count(disk.shortfall), who: others },
        href: link("disks", disk.disk),
      });
    }
  }
  return items;
}

function networkItems({ nics = [], uplinks = [], teams = [], vms, rates }: HostObjects): AttentionItem[] {
  const items: AttentionItem[] = [];
  const vmByNic = new Map(vms?.flatMap((vm) => vm.config.nics?.map((nic): [string, VmStatus] => [nic, vm]) ?? []));
  for (const nic of nics) {
    const { health, reason } = nic.condition;
    const params = { name: nic.config.name };
    if (health === "failed") items.push({ severity: "danger", text: "attention.nic.failed", params, detail: reason ?? undefined, href: link("network") });
    // The NIC of a VM that is not running is expected to be down.
    else if (health === "down" && (vmByNic.get(nic.config.name)?.state ?? "running") === "running") {
      items.push({ severity: "warning", text: "attention.nic.down", params, detail: reason ?? undefined, href: link("network") });
    }
  }
  for (const uplink of uplinks) {
    const { health, reason } = uplink.condition;
    if (health === "up" || uplink.switch == null) continue;
    items.push({ severity: health === "failed" ? "danger" : "warning", text: `attention.uplink.${health}`, params: { name: uplink.config.name }, detail: reason ?? undefined, href: link("network") });
  }
  for (const team of teams) {
    const name = team.config.name;
    const failed = team.members.filter((member) => member.state === "failed");
    if (team.condition.health !== "up" && team.switch != null) {
      items.push({ severity: "danger", text: "attention.team.down", params: { name }, detail: team.condition.reason ?? undefined, href: link("teams", name) });
    } else if (failed.length > 0) {
      const detail = failed.map((member) => `${member.uplink}: ${member.reason}`).join("; ");
      items.push({ severity: "warning", text: "attention.team.member", params: { name, count: failed.length }, detail, href: link("teams", name) });
    }
  }
  for (const nic of rates?.nics ?? []) {
    if (nic.dropsPerS < 1) continue;
    items.push({ severity: "info", text: "attention.drops", params: { name: nic.name, rate: count(nic.dropsPerS) }, href: link("network") });
  }
  return items;
}

function hostItems({ power, cluster, rates, events = [] }: HostObjects): AttentionItem[] {
  const items: AttentionItem[] = [];
  for (const worker of rates?.workers ?? []) {
    if (worker.busyPpm < OVERLOAD_PPM) continue;
    items.push({ severity: "warning", text: "attention.worker", params: { id: worker.id, busy: percent(worker.busyPpm) }, href: link("vmq") });
  }
  if (power?.config && (power.effect === "partial" || power.effect === "none")) {
    const ineffective = power.settings.find((setting) => !setting.in_effect);
    items.push({ severity: "info", text: `attention.power.${power.effect}`, params: { plan: power.config.plan }, detail: ineffective?.reason ?? undefined, href: link("power") });
  }
  if (cluster?.config && cluster.condition.health !== "up") {
    items.push({ severity: "danger", text: "attention.cluster", params: { name: cluster.config.name }, detail: cluster.condition.reason ?? undefined, href: link("cluster") });
  }
  for (const member of cluster?.config ? cluster.members : []) {
    if (!member.is_alive) items.push({ severity: "warning", text: "attention.node", params: { name: member.name }, href: link("cluster") });
  }
  const last = events.at(-1)?.time_unix_ms ?? 0;
  for (const event of recentErrors(events, (rates?.timeMs ?? last) - 600_000)) {
    items.push({ severity: "danger", text: "attention.event", params: { id: event.id, subject: event.subject }, detail: event.text, href: `${link("events")}?severity=error` });
  }
  return items;
}

/** Returns the latest error of each event id and subject since a time, at most three. */
function recentErrors(events: readonly Event[], sinceMs: number): Event[] {
  const latest = new Map<string, Event>();
  for (const event of events) {
    if (event.severity === "error" && event.time_unix_ms >= sinceMs) latest.set(`${event.id} ${event.subject}`, event);
  }
  return [...latest.values()].slice(-3);
}
