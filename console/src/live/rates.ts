/** Rates, which are differences of two snapshots of counters. */
import type { WorkerStages, TopSnapshot } from "../api/types";

export interface PortRate {
  name: string;
  switch?: string;
  health: string;
  rxFps: number;
  rxBps: number;
  txFps: number;
  txBps: number;
  dropsPerS: number;
}

export interface DiskRate {
  name: string;
  store: string;
  state: string;
  readsPerS: number;
  writesPerS: number;
  readBytesPerS: number;
  writtenBytesPerS: number;
  /** Mean time from when a request was seen to its answer, waits for limits included. */
  latencyNs?: number;
}

export interface WorkerRate {
  id: number;
  cpu?: number;
  queues: number;
  cpuPpm: number;
  busyPpm: number;
  framesPerS: number;
  /** Share of its time by stage, in parts per million. */
  stages: [Stage, number][];
}

export interface Rates {
  timeMs: number;
  nics: PortRate[];
  uplinks: PortRate[];
  disks: DiskRate[];
  workers: WorkerRate[];
  /** Watts of packages and memory, in thousandths. */
  milliwatts?: number;
}

export const STAGES = [
  "copy_in", "classify", "coalesce", "segment", "checksum", "copy_out", "notify", "storage", "poll", "idle",
] as const;
export type Stage = (typeof STAGES)[number];

/** What happened between two snapshots; nothing if the daemon was started anew between them. */
export function ratesBetween(before: TopSnapshot, after: TopSnapshot): Rates | undefined {
  const ns = after.time_monotonic_ns - before.time_monotonic_ns;
  if (ns <= 0) return undefined;
  const perS = (from: number | undefined, to: number) => Math.max(0, ((to - (from ?? to)) * 1e9) / ns);
  const port = (all: TopSnapshot["nics"]) => {
    const old = new Map(all.map((one) => [one.name, one]));
    return (one: TopSnapshot["nics"][number]): PortRate => {
      const was = old.get(one.name);
      return {
        name: one.name,
        switch: one.switch ?? undefined,
        health: one.health,
        rxFps: perS(was?.rx_frames, one.rx_frames),
        rxBps: 8 * perS(was?.rx_bytes, one.rx_bytes),
        txFps: perS(was?.tx_frames, one.tx_frames),
        txBps: 8 * perS(was?.tx_bytes, one.tx_bytes),
        dropsPerS: perS(was?.rx_dropped, one.rx_dropped) + perS(was?.tx_dropped, one.tx_dropped),
      };
    };
  };
  return {
    timeMs: after.time_unix_ms,
    nics: after.nics.map(port(before.nics)),
    uplinks: after.uplinks.map(port(before.uplinks)),
    disks: diskRates(before, after, perS),
    workers: workerRates(before, after, ns, perS),
    milliwatts: milliwatts(before, after),
  };
}

function diskRates(
  before: TopSnapshot,
  after: TopSnapshot,
  perS: (from: number | undefined, to: number) => number,
): DiskRate[] {
  const old = new Map((before.disks ?? []).map((disk) => [disk.name, disk]));
  return (after.disks ?? []).map((disk) => {
    const was = old.get(disk.name);
    const requests = was
      ? disk.reads + disk.writes + disk.others - was.reads - was.writes - was.others
      : 0;
    return {
      name: disk.name,
      store: disk.store,
      state: disk.state,
      readsPerS: perS(was?.reads, disk.reads),
      writesPerS: perS(was?.writes, disk.writes),
      readBytesPerS: perS(was?.read_bytes, disk.read_bytes),
      writtenBytesPerS: perS(was?.written_bytes, disk.written_bytes),
      latencyNs: was && requests > 0 ? Math.max(0, disk.latency_ns - was.latency_ns) / requests : undefined,
    };
  });
}

function workerRates(
  before: TopSnapshot,
  after: TopSnapshot,
  ns: number,
  perS: (from: number | undefined, to: number) => number,
): WorkerRate[] {
  const old = new Map(before.workers.map((worker) => [worker.id, worker]));
  return after.workers.map((worker) => {
    const was = old.get(worker.id);
    const share = (from: number | undefined, to: number) =>
      Math.min(1e6, Math.max(0, ((to - (from ?? to)) * 1e6) / ns));
    const stage = (name: Stage): number => {
      const key = `${name}_ns` as keyof WorkerStages;
      return share(was?.stages?.[key], worker.stages?.[key] ?? 0);
    };
    return {
      id: worker.id,
      cpu: worker.cpu ?? undefined,
      queues: worker.queues,
      cpuPpm: share(was?.cpu_time_ns, worker.cpu_time_ns),
      busyPpm: share(was?.busy_ns, worker.busy_ns),
      framesPerS: perS(was?.frames, worker.frames),
      stages: STAGES.map((name) => [name, stage(name)]),
    };
  });
}

function milliwatts(before: TopSnapshot, after: TopSnapshot): number | undefined {
  const [from, to] = [before.power, after.power];
  if (from?.energy_uj == null || to?.energy_uj == null) return undefined;
  const ns = (to.read_monotonic_ns ?? 0) - (from.read_monotonic_ns ?? 0);
  return ns > 0 ? ((to.energy_uj - from.energy_uj) * 1e6) / ns : undefined;
}
