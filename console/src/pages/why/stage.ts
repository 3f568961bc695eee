/** A stage of a VM's way to the wire or to a device. */
import type { Key, Params } from "../../texts/texts";

export type Verdict = "fine" | "watch" | "slow" | "idle";

/** A setting that would change a stage: where it is, and the command. */
export interface Remedy {
  text: Key;
  params?: Params;
  href: string;
  command?: string;
}

export interface Stage {
  title: Key;
  params?: Params;
  /** What it does now, with units. */
  now: string;
  verdict: Verdict;
  why: Key;
  whyParams?: Params;
  /** How full or busy it is, in parts per million. */
  loadPpm?: number;
  /** How long a request waits here, and its share of the request's time. */
  waitNs?: number;
  sharePpm?: number;
  remedy?: Remedy;
}

/** The way of one NIC or disk. */
export interface Way {
  kind: "nic" | "disk" | "host";
  name: string;
  stages: Stage[];
}

const RANK: Record<Verdict, number> = { slow: 0, watch: 1, fine: 2, idle: 3 };

export interface Suspect {
  way: Way;
  stage: Stage;
}

/** Stages that hold the VM up, worst first. */
export function suspects(ways: readonly Way[]): Suspect[] {
  return ways
    .flatMap((way) => way.stages.map((stage) => ({ way, stage })))
    .filter(({ stage }) => stage.verdict === "slow" || stage.verdict === "watch")
    .sort((a, b) => RANK[a.stage.verdict] - RANK[b.stage.verdict] || (b.stage.sharePpm ?? b.stage.loadPpm ?? 0) - (a.stage.sharePpm ?? a.stage.loadPpm ?? 0));
}

/** A verdict by how full something is. */
export function byLoad(ppm: number): Verdict {
  return ppm >= 950_000 ? "slow" : ppm >= 850_000 ? "watch" : "fine";
}
