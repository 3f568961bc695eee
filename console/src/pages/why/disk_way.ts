/** The way of a disk's requests: guest queue, Storage QoS, device, store. */
import type { DiskStatus, QosFlowStatus, QosTimeShare, StoreStatus } from "../../api/types";
import { command } from "../../api/commands";
import type { DiskRate } from "../../live/rates";
import { link } from "../../shell/router";
import { count, iops, latency, percent } from "../../units/units";
import type { Remedy, Stage, Verdict, Way } from "./stage";

export interface DiskSeen {
  disk: DiskStatus;
  flow?: QosFlowStatus;
  store?: StoreStatus;
  rate?: DiskRate;
  /** The VM that runs has it. */
  isPlugged: boolean;
}

/** A factor with as large a share of the time is what to look at. */
const SLOW_PPM = 500_000;
const WATCH_PPM = 200_000;
/** A smaller share is not worth a stage of its own, unless it is the first. */
const NOTABLE_PPM = 50_000;

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
  const shares = flow.last_5_s.limited_by ?? [];
  const notable = shares.filter(({ share_ppm }, at) => at === 0 || share_ppm >= NOTABLE_PPM);
  return { kind: "disk", name, stages: [
    guestQueue(seen, perS),
    ...notable.map((share) => limitStage(name, flow, share)),
    deviceStage(seen, flow, perS),
    storeStage(seen),
  ] };
}

function guestQueue({ disk, flow, rate, isPlugged }: DiskSeen, perS: number): Stage {
  const waiting = flow?.queued ?? 0;
  const connected = isPlugged || disk.vhost_user?.connected === true || (disk.nbd?.clients ?? 0) > 0;
  return {
    title: "stage.disk.queue",
    now: `${count((rate?.readsPerS ?? 0) + (rate?.writesPerS ?? 0))}/s`,
    verdict: !connected ? "watch" : perS === 0 ? "idle" : "fine",
    why: !connected ? "why.disk.absent" : perS === 0 ? "why.disk.idle" : "why.disk.queue",
    whyParams: { waiting, device: flow?.in_flight ?? 0 },
  };
}

type Factor = QosTimeShare["factor"];

/** Factors that are no fault of the host: the client's own, and service itself. */
const NOT_OF_HOST: readonly Factor[] = ["client-idle", "device"];

function byShare(factor: Factor, ppm: number): Verdict {
  if (factor === "client-idle") return "idle";
  if (NOT_OF_HOST.includes(factor)) return "fine";
  if (ppm < WATCH_PPM) return "fine";
  return ppm >= SLOW_PPM && factor !== "queue-depth" ? "slow" : "watch";
}

function limitStage(name: string, flow: QosFlowStatus, { factor, share_ppm }: QosTimeShare): Stage {
  const { last_5_s: seen, limits } = flow;
  return {
    title: "stage.limited",
    now: percent(share_ppm),
    sharePpm: share_ppm,
    verdict: byShare(factor, share_ppm),
    why: `why.limit.${factor}`,
    whyParams: {
      got: iops(seen.delivered_iops),
      max: limits.max_iops == null ? "–" : iops(limits.max_iops),
      holder: flow.holder,
      store: flow.store,
      depth: ((seen.queue_depth_milli ?? 0) / 1000).toFixed(1),
      latency: seen.device_latency_ns == null ? "–" : latency(seen.device_latency_ns),
      own: seen.device_baseline_latency_ns == null ? "–" : latency(seen.device_baseline_latency_ns),
    },
    remedy: remedyOf(name, flow, factor),
  };
}

function remedyOf(name: string, flow: QosFlowStatus, factor: Factor): Remedy | undefined {
  const href = link("disks", name);
  const got = Math.max(1, flow.last_5_s.delivered_iops);
  switch (factor) {
    case "own-maximum":
      return { text: "remedy.maximum", href, command: command("qos", "set", name, `max_iops=${2 * (flow.limits.max_iops ?? got)}`) };
    case "own-bandwidth":
      return { text: "remedy.bandwidth", href, command: command("qos", "set", name, "max_bytes_per_s=default") };
    case "shared-policy":
      return { text: "remedy.policy", params: { holder: flow.holder }, href: link("disks"), command: command("qos", "policy", "set", flow.holder.split("/").at(-1) ?? "", "--max-iops", String(2 * (flow.limits.max_iops ?? got))) };
    case "others-minimums":
      return { text: "remedy.minimum", href, command: command("qos", "set", name, `min_iops=${2 * got}`) };
    case "device-saturated":
      return { text: "remedy.store", params: { store: flow.store }, href: link("disks"), command: command("store", "measure", flow.store) };
    case "store-full":
      return { text: "remedy.space", params: { store: flow.store }, href: link("disks"), command: command("store", "show", flow.store) };
    case "device-slow":
      return { text: "remedy.device", href: link("disks") };
    case "worker":
      return { text: "remedy.worker", href: link("vmq") };
    case "queue-depth":
      return { text: "remedy.depth", href };
    default:
      return undefined;
  }
}

function deviceStage({ store }: DiskSeen, flow: QosFlowStatus, perS: number): Stage {
  const { device_latency_ns: found, device_baseline_latency_ns: own } = flow.last_5_s;
  return {
    title: "stage.device",
    now: found == null ? "–" : latency(found),
    verdict: perS === 0 ? "idle" : "fine",
    why: "why.device",
    whyParams: { store: store?.config.name ?? flow.store, own: own == null ? "–" : latency(own) },
  };
}

function storeStage({ store }: DiskSeen): Stage {
  const can = store?.capacity_iops ?? undefined;
  const ppm = can ? (1e6 * (store?.delivered_iops ?? 0)) / can : undefined;
  return {
    title: "stage.store",
    params: { store: store?.config.name ?? "–" },
    now: iops(store?.delivered_iops ?? 0),
    loadPpm: ppm === undefined ? undefined : Math.min(1e6, ppm),
    // A device with as many requests as it may have is no fault: whether it limits a disk is known by time.
    verdict: "fine",
    why: can === undefined ? "why.store.unknown" : "why.store",
    whyParams: { can: can === undefined ? "–" : iops(can), depth: store?.depth ?? 0, allowed: store?.depth_allowed ?? 0 },
    remedy: can === undefined && store ? { text: "remedy.measure", href: link("disks"), command: command("store", "measure", store.config.name) } : undefined,
  };
}
