/** Rates, calculated from two snapshots of counters. */
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
  /** Mean time from the arrival of a request to its completion, queueing by limits included. */
  latencyNs?: number;
}

export interface WorkerRate {
  id: number;
  cpu?: number;
  queues: number;
  cpuPpm: number;
  busyPpm: number;
  framesPerS: number;
  /** Shares of the worker's time by stage, in parts per million. */
  stages: [Stage, number][];
}

export interface Rates {
  timeMs: number;
  nics: PortRate[];
  uplinks: PortRate[];
  disks: DiskRate[];
  workers: WorkerRate[];
  /** Power consumption of CPU packages and memory. */
  milliwatts?: number;
}

export const STAGES = [
  "copy_in", "classify", "coalesce", "segment", "checksum", "copy_out", "notify", "storage", "poll", "idle",
] as const;
export type Stage = (typeof STAGES)[number];

/** Returns the rates between two snapshots; `undefined` if the daemon was restarted in between. */
export function ratesBetween(previous: TopSnapshot, current: TopSnapshot): Rates | undefined {
  const ns = current.time_monotonic_ns - previous.time_monotonic_ns;
  if (ns <= 0) return undefined;
  const perS = (start: number | undefined, end: number) => Math.max(0, ((end - (start ?? end)) * 1e9) / ns);
  const portRate = (previousPorts: TopSnapshot["nics"]) => {
    const previousByName = new Map(previousPorts.map((port) => [port.name, port]));
    return (port: TopSnapshot["nics"][number]): PortRate => {
      const previousPort = previousByName.get(port.name);
      return {
        name: port.name,
        switch: port.switch ?? undefined,
        health: port.health,
        rxFps: perS(previousPort?.rx_frames, port.rx_frames),
        rxBps: 8 * perS(previousPort?.rx_bytes, port.rx_bytes),
        txFps: perS(previousPort?.tx_frames, port.tx_frames),
        txBps: 8 * perS(previousPort?.tx_bytes, port.tx_bytes),
        dropsPerS: perS(previousPort?.rx_dropped, port.rx_dropped) + perS(previousPort?.tx_dropped, port.tx_dropped),
      };
    };
  };
  return {
    timeMs: current.time_unix_ms,
    nics: current.nics.map(portRate(previous.nics)),
    uplinks: current.uplinks.map(portRate(previous.uplinks)),
    disks: diskRates(previous, current, perS),
    workers: workerRates(previous, current, ns, perS),
    milliwatts: milliwatts(previous, current),
  };
}

function diskRates(
  previous: TopSnapshot,
  current: TopSnapshot,
  perS: (start: number | undefined, end: number) => number,
): DiskRate[] {
  const previousByName = new Map((previous.disks ?? []).map((disk) => [disk.name, disk]));
  return (current.disks ?? []).map((disk) => {
    const previousDisk = previousByName.get(disk.name);
    const requests = previousDisk
      ? disk.reads + disk.writes + disk.others - previousDisk.reads - previousDisk.writes - previousDisk.others
      : 0;
    return {
      name: disk.name,
      store: disk.store,
      state: disk.state,
      readsPerS: perS(previousDisk?.reads, disk.reads),
      writesPerS: perS(previousDisk?.writes, disk.writes),
      readBytesPerS: perS(previousDisk?.read_bytes, disk.read_bytes),
      writtenBytesPerS: perS(previousDisk?.written_bytes, disk.written_bytes),
      latencyNs: previousDisk && requests > 0 ? Math.max(0, disk.latency_ns - previousDisk.latency_ns) / requests : undefined,
    };
  });
}

function workerRates(
  previous: TopSnapshot,
  current: TopSnapshot,
  ns: number,
  perS: (start: number | undefined, end: number) => number,
): WorkerRate[] {
  const previousById = new Map(previous.workers.map((worker) => [worker.id, worker]));
  return current.workers.map((worker) => {
    const previousWorker = previousById.get(worker.id);
    const share = (start: number | undefined, end: number) =>
      Math.min(1e6, Math.max(0, ((end - (start ?? end)) * 1e6) / ns));
    const stage = (name: Stage): number => {
      const key = `${name}_ns` as keyof WorkerStages;
      return share(previousWorker?.stages?.[key], worker.stages?.[key] ?? 0);
    };
    return {
      id: worker.id,
      cpu: worker.cpu ?? undefined,
      queues: worker.queues,
      cpuPpm: share(previousWorker?.cpu_time_ns, worker.cpu_time_ns),
      busyPpm: share(previousWorker?.busy_ns, worker.busy_ns),
      framesPerS: perS(previousWorker?.frames, worker.frames),
      stages: STAGES.map((name) => [name, stage(name)]),
    };
  });
}

function milliwatts(previous: TopSnapshot, current: TopSnapshot): number | undefined {
  const [start, end] = [previous.power, current.power];
  if (start?.energy_uj == null || end?.energy_uj == null) return undefined;
  const ns = (end.read_monotonic_ns ?? 0) - (start.read_monotonic_ns ?? 0);
  return ns > 0 ? ((end.energy_uj - start.energy_uj) * 1e6) / ns : undefined;
}
