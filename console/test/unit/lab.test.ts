import assert from "node:assert/strict";
import { test } from "node:test";
import type { LabPlan, LabRun, LabStatus, LabWords } from "../../src/api/types";
import { planAtScale, updateSelection, labCommand, lastFailedRequest, activeRuns, percentDone, proposedScale } from "../../src/pages/lab/runs";
import { labValue } from "../../src/units/units";

const lab: LabStatus = {
  results: "/var/lib/suimon/lab",
  plans: [],
  requests: [
    { id: "1", state: "failed", error: "fio hung" },
    { id: "2", state: "under-way", plan: "web", scale: "quick", run: "web-20260102T030405" },
    { id: "3", state: "waiting", plan: "tiles", scale: "auto" },
  ],
};
const run = (id: string, state: LabRun["state"]): LabRun => ({ id, plan: "web", simulated: false, state });

test("pending and running experiments are listed once, started by request or CLI", () => {
  const runs = [run("web-20260103T000000", "under-way"), run("web-20260102T030405", "under-way"), run("web-20260101T000000", "whole")];
  const active = activeRuns(lab, runs);
  assert.deepEqual(active.map((run) => [run.id, run.run?.id]), [
    ["2", "web-20260102T030405"], ["3", undefined], ["web-20260103T000000", "web-20260103T000000"],
  ]);
  assert.equal(lastFailedRequest(lab)?.error, "fio hung");
  assert.equal(lastFailedRequest({ ...lab, requests: [...lab.requests, { id: "4", state: "done", run: "web-20260104T000000" }] }), undefined);
});

test("commands use the results folder of the daemon", () => {
  assert.equal(labCommand(lab, "run", "web"), "suimon lab run web");
  assert.equal(labCommand({ ...lab, results: "/srv/l b" }, "work"), "suimon lab work --results '/srv/l b'");
});

test("progress follows the elapsed time and stays below 100 %", () => {
  const began = "2026-01-02T03:00:00Z";
  const now = Date.parse(began) + 60_000;
  const progress = { case: { en: "a", ja: "a" }, repetition: 1, parts_done: 1, part_began_ms: now - 10_000, seconds_left: 30 };
  assert.equal(percentDone({ ...run("x", "under-way"), began, progress }, now), 75);
  assert.equal(percentDone({ ...run("x", "under-way"), began, progress }, now + 3_600_000), 99);
  assert.equal(percentDone(run("x", "under-way"), now), undefined);
});

test("the selection keeps the two runs selected last", () => {
  assert.deepEqual(updateSelection(updateSelection(["a", "b"], "c", true), "b", false), ["c"]);
  assert.deepEqual(updateSelection(["a", "b"], "c", true), ["b", "c"]);
});

test("values are formatted as in lab reports", () => {
  const cases: [number, number | undefined, string][] = [[0, undefined, "0"], [1.5, undefined, "1.5"], [12345.6, undefined, "12\u202f346"], [0.12345, undefined, "0.123"], [-0.001, 1, "0"], [-2.25, 1, "−2.3"], [3, 2, "3"]];
  for (const [value, digits, text] of cases) assert.equal(labValue(value, digits), text, String(value));
});

test("the proposed scale has no missing requirements", () => {
  const translated = (text: string): LabWords => ({ en: text, ja: text });
  const plan = (auto: LabWords[], quick: LabWords[]): LabPlan => ({
    id: "disk-io", title: translated("T"), question: translated("Q"), document: "D",
    scales: [{ scale: "auto", seconds: 60, missing: auto }, { scale: "quick", seconds: 6, missing: quick }],
  });
  const memory = [translated("6976 MiB are needed")];
  assert.equal(proposedScale(plan([], [])), "auto");
  assert.equal(proposedScale(plan(memory, [])), "quick");
  assert.equal(proposedScale(plan(memory, memory)), undefined);
  assert.deepEqual([planAtScale(plan(memory, []), "auto").missing, planAtScale(plan(memory, []), "quick").seconds], [memory, 6]);
});
