/** API objects for tests. */
import type { DiskQos, DiskStatus, QosFlowStatus, QosTimeShare, SriovAdapter, StoreStatus, TopSnapshot } from "../../src/api/types";

const noRequests = { requests: 0, bytes: 0, errors: 0, latency_ns_p50: 0, latency_ns_p99: 0, latency_ns_max: 0 };

export function disk(name: string, qos: DiskQos | undefined): DiskStatus {
  return {
    config: { name, store: "fast", format: "raw", qos },
    state: "ready", file: `/srv/${name}`,
    counters: { reads: noRequests, writes: noRequests, flushes: noRequests, discards: noRequests },
  };
}

export function flow(name: string, guaranteed: number, demand: number, delivered: number, limitedBy: QosTimeShare[] = [], limits: DiskQos = {}): QosFlowStatus {
  const delivery = { window_ns: 5e9, guaranteed_iops: guaranteed, demand_iops: demand, delivered_iops: delivered, limited_by: limitedBy, queue_depth_milli: 1000 };
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

export function snapshot(seconds: number, overrides: Partial<TopSnapshot> = {}): TopSnapshot {
  return { time_unix_ms: seconds * 1000, time_monotonic_ns: seconds * 1e9, nics: [], uplinks: [], workers: [], ...overrides };
}
