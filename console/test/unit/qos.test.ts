import assert from "node:assert/strict";
import { test } from "node:test";
import { sharesByStore, waitShares } from "../../src/pages/disks/displacement";
import { diskWay, waitsPerRequest } from "../../src/pages/why/disk_way";
import { suspects } from "../../src/pages/why/stage";
import { disk, flow, store } from "./things";

test("who lacks its minimum is displaced by who gets more than it is entitled to", () => {
  const [fast] = sharesByStore([flow("gold", 2000, 3000, 1200), flow("noisy", 0, 9000, 2800), flow("tame", 100, 100, 100)]);
  assert.deepEqual(fast?.displaced, [{ disk: "gold", lacks: 800, by: [{ disk: "noisy", beyond: 2800 }] }]);
});

test("who does not want its minimum lacks nothing, nor does a rounding error count", () => {
  const [fast] = sharesByStore([flow("gold", 2000, 10, 10), flow("silver", 1000, 1000, 960)]);
  assert.deepEqual(fast?.displaced, []);
});

test("waits are shares of all waits, longest first", () => {
  assert.deepEqual(waitShares({ "device-depth": 1, "own-maximum": 3, "shared-policy": 0 }).map(({ cause, ppm }) => [cause, ppm]), [["own-maximum", 750_000], ["device-depth", 250_000]]);
  assert.deepEqual(waitShares(undefined), []);
});

test("waits of five seconds are spread over the requests of five seconds", () => {
  assert.deepEqual(waitsPerRequest(flow("web", 0, 600, 300, { "own-maximum": 1500 * 1e6 })), [{ cause: "own-maximum", ns: 1e6 }]);
});

test("a disk that is held by its own maximum is told so, with the setting that changes it", () => {
  const rate = { name: "web", store: "fast", state: "ready", readsPerS: 300, writesPerS: 0, readBytesPerS: 0, writtenBytesPerS: 0, latencyNs: 10e6 };
  const way = diskWay({ disk: disk("web", { max_iops: 300 }), flow: flow("web", 0, 700, 300, { "own-maximum": 1500 * 9e6 }, { max_iops: 300 }), store: store(), rate, isPlugged: true });
  const [first] = suspects([way]);
  assert.equal(first?.stage.why, "why.qos.own-maximum");
  assert.equal(first?.stage.verdict, "slow");
  assert.equal(Math.round(first?.stage.sharePpm ?? 0), 900_000);
  assert.equal(first?.stage.remedy?.command, "suimon qos set web max_iops=700");
});

test("an idle disk is no suspect", () => {
  assert.deepEqual(suspects([diskWay({ disk: disk("web", {}), flow: flow("web", 0, 0, 0), store: store(), isPlugged: true })]), []);
});

test("a disk that is out of service is the first suspect", () => {
  const way = diskWay({ disk: { ...disk("web", {}), state: "failed", reason: "no such file" }, isPlugged: true });
  assert.equal(suspects([way])[0]?.stage.now, "no such file");
});

test("a disk of a VM that does not run, with nobody else on it, has nobody", () => {
  const seen = { disk: disk("web", {}), flow: flow("web", 0, 0, 0), store: store() };
  assert.equal(diskWay({ ...seen, isPlugged: false }).stages[0]?.why, "why.disk.absent");
  assert.equal(diskWay({ ...seen, isPlugged: true }).stages[0]?.why, "why.disk.idle");
});
