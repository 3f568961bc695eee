/** The way of a disk's requests: guest queue, Storage QoS, device, store. */
import type { DiskStatus, QosFlowStatus, StoreStatus } from "../../api/types";
import { command } from "../../api/commands";
import type { DiskRate } from "../../live/rates";
import { link } from "../../shell/router";
import { count, iops, latency } from "../../units/units";
import { waitShares } from "../disks/displacement";
import { byLoad, type Remedy, type Stage, type Verdict, type Way } from "./stage";

export interface DiskSeen {
  disk: DiskStatus;
  flow?: QosFlowStatus;
  store?: StoreStatus;
  rate?: DiskRate;
  /** The VM that runs has it. */
  isPlugged: boolean;
}

/** A wait that is as large a part of a request's time is what to look at. */
const SLOW_PPM = 500_000;
const WATCH_PPM = 200_000;
/** Less is not worth a stage of its own. */
const NOTABLE_NS = 20_000;
/** Nobody notices less. */
const NOTICED_NS = 200_000;

export function diskWay(seen: DiskSeen): Way {
  const { disk, flow } = seen;
  const name = disk.config.name;
  if (disk.state !== "ready" || !flow) {
    return { kind: "disk", name, stages: [{
      title: "stage.disk", now: disk.reason ?? disk.state, verdict: "slow", why: "why.disk.state",
      remedy: { text: "remedy.disk", href: link("disks", name) },
    }] };
  }
  const perS = flow.last_5_s.delivered_iops;
  const total = seen.rate?.latencyNs;
  const waits = waitsPerRequest(flow).filter(({ ns }) => ns >= NOTABLE_NS);
  return { kind: "disk", name, stages: [
    guestQueue(seen, perS),
    ...waits.map((wait) => qosStage(name, flow, wait.cause, wait.ns, total)),
    ...(waits.length === 0 ? [noWait(perS)] : []),
    deviceStage(seen, total, perS),
    storeStage(seen),
  ] };
}

/** How long a request waited in the last 5 s, by cause, longest first. */
export function waitsPerRequest(flow: QosFlowStatus): { cause: string; ns: number }[] {
  const requests = (flow.last_5_s.delivered_iops * flow.last_5_s.window_ns) / 1e9;
  if (requests < 1) return waitShares(flow.last_5_s.waits_ns).map(({ cause, ns }) => ({ cause, ns }));
  return waitShares(flow.last_5_s.waits_ns).map(({ cause, ns }) => ({ cause, ns: ns / requests }));
}

function guestQueue({ disk, flow, rate, isPlugged }: DiskSeen, perS: number): Stage {
  const waiting = flow?.waiting ?? 0;
  const connected = isPlugged || disk.vhost_user?.connected === true || (disk.nbd?.clients ?? 0) > 0;
  return {
    title: "stage.disk.queue",
    now: `${count((rate?.readsPerS ?? 0) + (rate?.writesPerS ?? 0))}/s`,
    verdict: !connected ? "watch" : perS === 0 ? "idle" : "fine",
    why: !connected ? "why.disk.absent" : perS === 0 ? "why.disk.idle" : "why.disk.queue",
    whyParams: { waiting, device: flow?.in_flight ?? 0 },
  };
}

function shareOf(ns: number, total: number | undefined): number | undefined {
  return total === undefined || total <= 0 ? undefined : Math.min(1e6, (1e6 * ns) / total);
}

function byWait(ns: number, share: number | undefined): Verdict {
  if (ns < NOTICED_NS) return "fine";
  return (share ?? 1e6) >= SLOW_PPM ? "slow" : (share ?? 1e6) >= WATCH_PPM ? "watch" : "fine";
}

function qosStage(name: string, flow: QosFlowStatus, cause: string, ns: number, total: number | undefined): Stage {
  const share = shareOf(ns, total);
  return {
    title: "stage.qos",
    now: latency(ns),
    waitNs: ns,
    sharePpm: share,
    verdict: byWait(ns, share),
    why: `why.qos.${known(cause)}`,
    whyParams: { cause, got: iops(flow.last_5_s.delivered_iops), wanted: iops(flow.last_5_s.demanded_iops), max: flow.limits.max_iops == null ? "–" : count(flow.limits.max_iops), holder: flow.holder },
    remedy: remedyOf(name, flow, cause),
  };
}

const CAUSES = ["own-maximum", "own-bandwidth", "shared-policy", "others-minimums", "device-depth"] as const;
type Cause = (typeof CAUSES)[number] | "other";

function known(cause: string): Cause {
  return CAUSES.find((one) => one === cause) ?? "other";
}

function remedyOf(name: string, flow: QosFlowStatus, cause: string): Remedy | undefined {
  const href = link("disks", name);
  const wanted = Math.max(1, flow.last_5_s.demanded_iops);
  switch (known(cause)) {
    case "own-maximum":
      return { text: "remedy.maximum", href, command: command("qos", "set", name, `max_iops=${Math.max(wanted, 2 * (flow.limits.max_iops ?? 0))}`) };
    case "own-bandwidth":
      return { text: "remedy.bandwidth", href, command: command("qos", "set", name, "max_bytes_per_s=default") };
    case "shared-policy":
      return { text: "remedy.policy", params: { holder: flow.holder }, href: link("disks"), command: command("qos", "policy", "set", flow.holder.split("/").at(-1) ?? "", "--max-iops", String(2 * (flow.limits.max_iops ?? wanted))) };
    case "others-minimums":
      return { text: "remedy.minimum", href, command: command("qos", "set", name, `min_iops=${wanted}`) };
    case "device-depth":
      return { text: "remedy.store", params: { store: flow.store }, href: link("disks"), command: command("store", "measure", flow.store) };
    default:
      return undefined;
  }
}

function noWait(perS: number): Stage {
  return { title: "stage.qos", now: latency(0), waitNs: 0, verdict: perS === 0 ? "idle" : "fine", why: "why.qos.none" };
}

function deviceStage({ store }: DiskSeen, total: number | undefined, perS: number): Stage {
  const ns = store?.latency_ns ?? undefined;
  const share = ns === undefined ? undefined : shareOf(ns, total);
  const isLong = ns !== undefined && ns > 20_000_000;
  return {
    title: "stage.device",
    now: ns === undefined ? "–" : latency(ns),
    waitNs: ns,
    sharePpm: share,
    verdict: perS === 0 ? "idle" : isLong ? "slow" : "fine",
    why: isLong ? "why.device.slow" : "why.device",
    whyParams: { store: store?.config.name ?? "–" },
    remedy: isLong ? { text: "remedy.device", href: link("disks") } : undefined,
  };
}

function storeStage({ store }: DiskSeen): Stage {
  const can = store?.capability_iops ?? undefined;
  const ppm = can ? (1e6 * (store?.delivered_iops ?? 0)) / can : undefined;
  const isFull = store !== undefined && store.depth_allowed > 0 && store.depth >= store.depth_allowed;
  return {
    title: "stage.store",
    params: { store: store?.config.name ?? "–" },
    now: iops(store?.delivered_iops ?? 0),
    loadPpm: ppm === undefined ? undefined : Math.min(1e6, ppm),
    verdict: isFull && ppm !== undefined ? byLoad(ppm) : "fine",
    why: can === undefined ? "why.store.unknown" : "why.store",
    whyParams: { can: can === undefined ? "–" : iops(can), depth: store?.depth ?? 0, allowed: store?.depth_allowed ?? 0 },
    remedy: can === undefined && store ? { text: "remedy.measure", href: link("disks"), command: command("store", "measure", store.config.name) } : undefined,
  };
}
