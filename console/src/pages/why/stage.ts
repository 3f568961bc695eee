/** Stages of the paths from a VM to the wire or to a storage device. */
import type { Key, Params } from "../../texts/texts";

export type Verdict = "fine" | "watch" | "slow" | "idle";

/** Setting that improves a stage: the page with the setting, and the equivalent CLI command. */
export interface Remedy {
  text: Key;
  params?: Params;
  href: string;
  command?: string;
}

export interface Stage {
  title: Key;
  params?: Params;
  /** Current value with unit. */
  value: string;
  verdict: Verdict;
  explanation: Key;
  explanationParams?: Params;
  /** Utilisation in parts per million. */
  loadPpm?: number;
  /** Time of a request in this stage. */
  waitNs?: number;
  /** Share of the request's total time, in parts per million. */
  sharePpm?: number;
  remedy?: Remedy;
}

/** Path of the frames of a NIC, of the requests of a disk, or the CPUs of the VM. */
export interface RequestPath {
  kind: "nic" | "disk" | "vm";
  name: string;
  stages: Stage[];
}

const RANK: Record<Verdict, number> = { slow: 0, watch: 1, fine: 2, idle: 3 };

export interface LimitingStage {
  path: RequestPath;
  stage: Stage;
}

/** Returns the stages with the verdict slow or watch, worst first. */
export function limitingStages(paths: readonly RequestPath[]): LimitingStage[] {
  return paths
    .flatMap((path) => path.stages.map((stage) => ({ path, stage })))
    .filter(({ stage }) => stage.verdict === "slow" || stage.verdict === "watch")
    .sort((a, b) => RANK[a.stage.verdict] - RANK[b.stage.verdict] || (b.stage.sharePpm ?? b.stage.loadPpm ?? 0) - (a.stage.sharePpm ?? a.stage.loadPpm ?? 0));
}

/** Returns the verdict for a utilisation in parts per million. */
export function verdictForLoad(ppm: number): Verdict {
  return ppm >= 950_000 ? "slow" : ppm >= 850_000 ? "watch" : "fine";
}
