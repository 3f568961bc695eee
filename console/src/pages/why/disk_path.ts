/** Path of the requests of a disk: guest queue, Storage QoS, device, store. */
import type { DiskStatus, QosFlowStatus, QosTimeShare, StoreStatus } from "../../api/types";
import { command } from "../../api/commands";
import type { DiskRate } from "../../live/rates";
import { link } from "../../shell/router";
import { count, iops, latency, percent } from "../../units/units";
import type { Remedy, Stage, Verdict, RequestPath } from "./stage";

export interface DiskPathInput {
  disk: DiskStatus;
  flow?: QosFlowStatus;
  store?: StoreStatus;
  rate?: DiskRate;
  /** True if the running VM has the disk. */
  isAttached: boolean;
}

/** Shares of the time from which a limiting factor has the verdict slow or watch. */
const SLOW_PPM = 500_000;
const WATCH_PPM = 200_000;
/** Minimum share of a factor that is shown as a stage. The first factor is always shown. */
const NOTABLE_PPM = 50_000;

export function diskPath(input: DiskPathInput): RequestPath {
  const { disk, flow } = input;
  const name = disk.config.name;
  if (disk.state !== "ready" || !flow) {
    return { kind: "disk", name, stages: [{
      title: "stage.disk", value: disk.reason ?? disk.state, verdict: "slow", explanation: "why.disk.state",
      remedy: { text: "remedy.disk", href: link("disks", name) },
    }] };
  }
  const deliveredIops = flow.last_5_s.delivered_iops;
  const shares = flow.last_5_s.limited_by ?? [];
  const notable = shares.filter(({ share_ppm }, index) => index === 0 || share_ppm >= NOTABLE_PPM);
  return { kind: "disk", name, stages: [
    queueStage(input, deliveredIops),
    ...notable.map((share) => limitStage(name, flow, share)),
    deviceStage(input, flow, deliveredIops),
    storeStage(input),
  ] };
}

function queueStage({ disk, flow, rate, isAttached }: DiskPathInput, deliveredIops: number): Stage {
  const queued = flow?.queued ?? 0;
  const isConnected = isAttached || disk.vhost_user?.connected === true || (disk.nbd?.clients ?? 0) > 0;
  return {
    title: "stage.disk.queue",
    value: `${count((rate?.readsPerS ?? 0) + (rate?.writesPerS ?? 0))}/s`,
    verdict: !isConnected ? "watch" : deliveredIops === 0 ? "idle" : "fine",
    explanation: !isConnected ? "why.disk.absent" : deliveredIops === 0 ? "why.disk.idle" : "why.disk.queue",
    explanationParams: { waiting: queued, device: flow?.in_flight ?? 0 },
  };
}

type Factor = QosTimeShare["factor"];

/** Factors that the host does not cause: idle time of the client, and service time. */
const NOT_LIMITING: readonly Factor[] = ["client-idle", "device"];

function verdictForShare(factor: Factor, sharePpm: number): Verdict {
  if (factor === "client-idle") return "idle";
  if (NOT_LIMITING.includes(factor)) return "fine";
  if (sharePpm < WATCH_PPM) return "fine";
  return sharePpm >= SLOW_PPM && factor !== "queue-depth" ? "slow" : "watch";
}

function limitStage(name: string, flow: QosFlowStatus, { factor, share_ppm }: QosTimeShare): Stage {
  const { last_5_s: delivery, limits } = flow;
  return {
    title: "stage.limited",
    value: percent(share_ppm),
    sharePpm: share_ppm,
    verdict: verdictForShare(factor, share_ppm),
    explanation: `why.limit.${factor}`,
    explanationParams: {
      got: iops(delivery.delivered_iops),
      max: limits.max_iops == null ? "–" : iops(limits.max_iops),
      holder: flow.holder,
      store: flow.store,
      depth: ((delivery.queue_depth_milli ?? 0) / 1000).toFixed(1),
      latency: delivery.device_latency_ns == null ? "–" : latency(delivery.device_latency_ns),
      own: delivery.device_baseline_latency_ns == null ? "–" : latency(delivery.device_baseline_latency_ns),
    },
    remedy: remedyFor(name, flow, factor),
  };
}

function remedyFor(name: string, flow: QosFlowStatus, factor: Factor): Remedy | undefined {
  const href = link("disks", name);
  const delivered = Math.max(1, flow.last_5_s.delivered_iops);
  switch (factor) {
    case "own-maximum":
      return { text: "remedy.maximum", href, command: command("qos", "set", name, `max_iops=${2 * (flow.limits.max_iops ?? delivered)}`) };
    case "own-bandwidth":
      return { text: "remedy.bandwidth", href, command: command("qos", "set", name, "max_bytes_per_s=default") };
    case "shared-policy":
      return { text: "remedy.policy", params: { holder: flow.holder }, href: link("disks"), command: command("qos", "policy", "set", flow.holder.split("/").at(-1) ?? "", "--max-iops", String(2 * (flow.limits.max_iops ?? delivered))) };
    case "others-minimums":
      return { text: "remedy.minimum", href, command: command("qos", "set", name, `min_iops=${2 * delivered}`) };
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

function deviceStage({ store }: DiskPathInput, flow: QosFlowStatus, deliveredIops: number): Stage {
  const { device_latency_ns: latencyNs, device_baseline_latency_ns: baselineNs } = flow.last_5_s;
  return {
    title: "stage.device",
    value: latencyNs == null ? "–" : latency(latencyNs),
    verdict: deliveredIops === 0 ? "idle" : "fine",
    explanation: "why.device",
    explanationParams: { store: store?.config.name ?? flow.store, own: baselineNs == null ? "–" : latency(baselineNs) },
  };
}

function storeStage({ store }: DiskPathInput): Stage {
  const capacity = store?.capacity_iops ?? undefined;
  const loadPpm = capacity ? (1e6 * (store?.delivered_iops ?? 0)) / capacity : undefined;
  return {
    title: "stage.store",
    params: { store: store?.config.name ?? "–" },
    value: iops(store?.delivered_iops ?? 0),
    loadPpm: loadPpm === undefined ? undefined : Math.min(1e6, loadPpm),
    // A full device queue alone is not a problem. The limiting factors show whether the device limits the disk.
    verdict: "fine",
    explanation: capacity === undefined ? "why.store.unknown" : "why.store",
    explanationParams: { can: capacity === undefined ? "–" : iops(capacity), depth: store?.depth ?? 0, allowed: store?.depth_allowed ?? 0 },
    remedy: capacity === undefined && store ? { text: "remedy.measure", href: link("disks"), command: command("store", "measure", store.config.name) } : undefined,
  };
}
