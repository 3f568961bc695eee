/** Logic of the lab pages. */
import type { LabPlan, LabPlanScale, LabProgress, LabRequest, LabRun, LabScale, LabStatus, LabWords } from "../../api/types";
import { command } from "../../api/commands";
import type { Language } from "../../texts/texts";

/** Default results folder of the daemon and of `suimon lab`. */
const DEFAULT_RESULTS = "/var/lib/suimon/lab";

export function inLanguage(text: LabWords, language: Language): string {
  return text[language];
}

/** Returns a `suimon lab` command that uses the results folder of the daemon. */
export function labCommand(lab: LabStatus | undefined, ...args: string[]): string {
  const isDefault = lab === undefined || lab.results === DEFAULT_RESULTS;
  return command("lab", ...args, ...(isDefault ? [] : ["--results", lab.results]));
}

/** Returns the duration and the missing requirements of a plan at a scale. */
export function planAtScale(plan: LabPlan, scale: LabScale): LabPlanScale {
  return plan.scales.find((planScale) => planScale.scale === scale) ?? { scale, seconds: 0, missing: [] };
}

/** Returns the first scale of auto and quick without missing requirements; `undefined` if both have some. */
export function proposedScale(plan: LabPlan): LabScale | undefined {
  const proposals: LabScale[] = ["auto", "quick"];
  return proposals.find((scale) => planAtScale(plan, scale).missing.length === 0);
}

/** Pending or running experiment: a request with its run, or a run that was started with the CLI. */
export interface ActiveRun {
  id: string;
  request?: LabRequest;
  run?: LabRun;
}

export function activeRuns(lab: LabStatus, runs: readonly LabRun[]): ActiveRun[] {
  const isActive = (request: LabRequest) => request.state === "waiting" || request.state === "under-way" || request.state === "stopping";
  const requests = lab.requests.filter(isActive).map((request) => ({ id: request.id, request, run: runs.find((run) => run.id === request.run) }));
  const requestedRuns = new Set(requests.map((active) => active.request.run));
  const manualRuns = runs.filter((run) => run.state === "under-way" && !requestedRuns.has(run.id)).map((run) => ({ id: run.id, run }));
  return [...requests, ...manualRuns];
}

/** Returns the estimated remaining seconds of a run. */
export function secondsLeft(progress: LabProgress, nowMs: number): number {
  return Math.max(0, progress.seconds_left - (nowMs - progress.part_began_ms) / 1000);
}

/** Returns the progress of a run in percent of its estimated duration, at most 99. */
export function percentDone(run: LabRun, nowMs: number): number | undefined {
  if (!run.progress || !run.began) return undefined;
  const elapsed = (nowMs - Date.parse(run.began)) / 1000;
  const remaining = secondsLeft(run.progress, nowMs);
  return elapsed + remaining > 0 ? Math.min(99, Math.max(0, (100 * elapsed) / (elapsed + remaining))) : undefined;
}

/** Returns the latest ended request if it failed. */
export function lastFailedRequest(lab: LabStatus): LabRequest | undefined {
  const endedRequests = lab.requests.filter((request) => request.state === "done" || request.state === "failed");
  const last = endedRequests[endedRequests.length - 1];
  return last?.state === "failed" ? last : undefined;
}

/** Adds a run to the selection or removes it. The selection keeps the two runs selected last. */
export function updateSelection(selected: readonly string[], id: string, isSelected: boolean): string[] {
  const others = selected.filter((other) => other !== id);
  return isSelected ? [...others, id].slice(-2) : others;
}
