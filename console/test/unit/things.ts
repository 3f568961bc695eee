/** Things as the API describes them, for tests. */
import type { DiskQos, DiskStatus, QosFlowStatus, QosTimeShare, SriovAdapter, StoreStatus, TopSnapshot } from "../../src/api/types";

const none = { requests: 0, bytes: 0, errors: 0, latency_ns_p50: 0, latency_ns_p99: 0, latency_ns_max: 0 };

export function disk(name: string, qos: DiskQos | undefined): DiskStatus {
  return {
    config: { name, store: "fast", format: "raw", qos },
    state: "ready", file: `/srv/${name}`,
    counters: { reads: none, writes: none, flushes: none, discards: none },
  };
}

export function flow(name: string, entitled: number, wanted: number, got: number, limited: QosTimeShare[] = [], limits: DiskQos = {}): QosFlowStatus {
  const delivery = { window_ns: 5e9, guaranteed_iops: entitled, demand_iops: wanted, delivered_iops: got, limited_by: limited, queue_depth_milli: 1000 };
  return { disk: name, store: "fast", holder: `disk/${name}`, limits, queued: 0, in_flight: 0, last_5_s: delivery, last_5_min: delivery };
}

export function store(): StoreStatus {
  return {
    config: { name: "fast", path: "/srv" }, state: "ready", capacity_iops: 4000, reserved_iops: 0, disks: 1,
    delivered_iops: 1000, latency_ns: 100_000, depth: 1, depth_allowed: 8,
  };
}

export function adapter(): SriovAdapter {
  return { address: "0000:03:00.0", device: "eth0", support: "Supported", vfs_supported: 7, vfs_enabled: 4, vfs_in_use: 0, vfs: [] };
}

export function snapshot(seconds: number, more: Partial<TopSnapshot> = {}): TopSnapshot {
  return { time_unix_ms: seconds * 1000, time_monotonic_ns: seconds * 1e9, nics: [], uplinks: [], workers: [], ...more };
}
