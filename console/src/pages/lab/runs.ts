/** What the lab's page decides. */
import type { LabPlan, LabPlanScale, LabProgress, LabRequest, LabRun, LabScale, LabStatus, LabWords } from "../../api/types";
import { command } from "../../api/commands";
import type { Language } from "../../texts/texts";

/** Where the daemon and `suimon lab` look unless they are told otherwise. */
const USUAL = "/var/lib/suimon/lab";

export function inLanguage(words: LabWords, language: Language): string {
  return words[language];
}

/** A command of `suimon lab` that looks where the daemon looks. */
export function labCommand(lab: LabStatus | undefined, ...words: string[]): string {
  const isUsual = lab === undefined || lab.results === USUAL;
  return command("lab", ...words, ...(isUsual ? [] : ["--results", lab.results]));
}

/** A plan at a scale: how long it takes, and what it needs that is not here. */
export function atScale(plan: LabPlan, scale: LabScale): LabPlanScale {
  return plan.scales.find((one) => one.scale === scale) ?? { scale, seconds: 0, missing: [] };
}

/** The scale to propose: the usual one, or a smaller one that lacks nothing; none if all lack something. */
export function proposedScale(plan: LabPlan): LabScale | undefined {
  const proposals: LabScale[] = ["auto", "quick"];
  return proposals.find((scale) => atScale(plan, scale).missing.length === 0);
}

/** What is made or waits: requests, with their runs, and runs that somebody began by hand. */
export interface Open {
  id: string;
  request?: LabRequest;
  run?: LabRun;
}

export function openOnes(lab: LabStatus, runs: readonly LabRun[]): Open[] {
  const isOpen = (request: LabRequest) => request.state === "waiting" || request.state === "under-way" || request.state === "stopping";
  const requests = lab.requests.filter(isOpen).map((request) => ({ id: request.id, request, run: runs.find((run) => run.id === request.run) }));
  const known = new Set(requests.map((one) => one.request.run));
  const byHand = runs.filter((run) => run.state === "under-way" && !known.has(run.id)).map((run) => ({ id: run.id, run }));
  return [...requests, ...byHand];
}

/** Seconds that are left at this moment. */
export function secondsLeft(progress: LabProgress, nowMs: number): number {
  return Math.max(0, progress.seconds_left - (nowMs - progress.part_began_ms) / 1000);
}

/** How far a run is, in percent of its time. */
export function percentDone(run: LabRun, nowMs: number): number | undefined {
  if (!run.progress || !run.began) return undefined;
  const went = (nowMs - Date.parse(run.began)) / 1000;
  const left = secondsLeft(run.progress, nowMs);
  return went + left > 0 ? Math.min(99, Math.max(0, (100 * went) / (went + left))) : undefined;
}

/** The last request of those that ended, if it did so without a run to show. */
export function lastFailed(lab: LabStatus): LabRequest | undefined {
  const ended = lab.requests.filter((request) => request.state === "done" || request.state === "failed");
  const last = ended[ended.length - 1];
  return last?.state === "failed" ? last : undefined;
}

/** One more run to compare, or one less; the two that were chosen last. */
export function chosen(before: readonly string[], id: string, isChosen: boolean): string[] {
  const others = before.filter((one) => one !== id);
  return isChosen ? [...others, id].slice(-2) : others;
}
