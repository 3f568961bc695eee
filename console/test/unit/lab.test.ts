import assert from "node:assert/strict";
import { test } from "node:test";
import type { LabPlan, LabRun, LabStatus, LabWords } from "../../src/api/types";
import { atScale, chosen, labCommand, lastFailed, openOnes, percentDone, proposedScale } from "../../src/pages/lab/runs";
import { measured } from "../../src/units/units";

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

test("what is made or waits is told once, whoever began it", () => {
  const runs = [run("web-20260103T000000", "under-way"), run("web-20260102T030405", "under-way"), run("web-20260101T000000", "whole")];
  const open = openOnes(lab, runs);
  assert.deepEqual(open.map((one) => [one.id, one.run?.id]), [
    ["2", "web-20260102T030405"], ["3", undefined], ["web-20260103T000000", "web-20260103T000000"],
  ]);
  assert.equal(lastFailed(lab)?.error, "fio hung");
  assert.equal(lastFailed({ ...lab, requests: [...lab.requests, { id: "4", state: "done", run: "web-20260104T000000" }] }), undefined);
});

test("a command looks where the daemon looks", () => {
  assert.equal(labCommand(lab, "run", "web"), "suimon lab run web");
  assert.equal(labCommand({ ...lab, results: "/srv/l b" }, "work"), "suimon lab work --results '/srv/l b'");
});

test("how far a run is goes by time, and never says that it is over", () => {
  const began = "2026-01-02T03:00:00Z";
  const now = Date.parse(began) + 60_000;
  const progress = { case: { en: "a", ja: "a" }, repetition: 1, parts_done: 1, part_began_ms: now - 10_000, seconds_left: 30 };
  assert.equal(percentDone({ ...run("x", "under-way"), began, progress }, now), 75);
  assert.equal(percentDone({ ...run("x", "under-way"), began, progress }, now + 3_600_000), 99);
  assert.equal(percentDone(run("x", "under-way"), now), undefined);
});

test("two runs are compared, the ones that were chosen last", () => {
  assert.deepEqual(chosen(chosen(["a", "b"], "c", true), "b", false), ["c"]);
  assert.deepEqual(chosen(["a", "b"], "c", true), ["b", "c"]);
});

test("numbers are written as reports write them", () => {
  const shown: [number, number | undefined, string][] = [[0, undefined, "0"], [1.5, undefined, "1.5"], [12345.6, undefined, "12\u202f346"], [0.12345, undefined, "0.123"], [-0.001, 1, "0"], [-2.25, 1, "−2.3"], [3, 2, "3"]];
  for (const [value, digits, text] of shown) assert.equal(measured(value, digits), text, String(value));
});

test("the scale that is proposed lacks nothing", () => {
  const words = (text: string): LabWords => ({ en: text, ja: text });
  const plan = (auto: LabWords[], quick: LabWords[]): LabPlan => ({
    id: "disk-io", title: words("T"), question: words("Q"), document: "D",
    scales: [{ scale: "auto", seconds: 60, missing: auto }, { scale: "quick", seconds: 6, missing: quick }],
  });
  const room = [words("6976 MiB are needed")];
  assert.equal(proposedScale(plan([], [])), "auto");
  assert.equal(proposedScale(plan(room, [])), "quick");
  assert.equal(proposedScale(plan(room, room)), undefined);
  assert.deepEqual([atScale(plan(room, []), "auto").missing, atScale(plan(room, []), "quick").seconds], [room, 6]);
});
