import assert from "node:assert/strict";
import { test } from "node:test";
import { sharesByStore } from "../../src/pages/disks/displacement";
import { diskWay } from "../../src/pages/why/disk_way";
import { suspects } from "../../src/pages/why/stage";
import type { QosTimeShare } from "../../src/api/types";
import { text, textsOf } from "../../src/texts/texts";
import { disk, flow, store } from "./things";

test("who lacks its minimum is displaced by who gets more than it is entitled to", () => {
  const [fast] = sharesByStore([flow("gold", 2000, 3000, 1200), flow("noisy", 0, 9000, 2800), flow("tame", 100, 100, 100)]);
  assert.deepEqual(fast?.displaced, [{ disk: "gold", lacks: 800, by: [{ disk: "noisy", beyond: 2800 }] }]);
});

test("who does not want its minimum lacks nothing, nor does a rounding error count", () => {
  const [fast] = sharesByStore([flow("gold", 2000, 10, 10), flow("silver", 1000, 1000, 960)]);
  assert.deepEqual(fast?.displaced, []);
});

const CAUSES: [QosTimeShare["factor"], string, string | undefined][] = [
  ["own-maximum", "slow", "suimon qos set web max_iops=600"],
  ["own-bandwidth", "slow", "suimon qos set web max_bytes_per_s=default"],
  ["shared-policy", "slow", "suimon qos policy set web --max-iops 600"],
  ["store-cap", "slow", undefined],
  ["others-minimums", "slow", "suimon qos set web min_iops=562"],
  ["device-saturated", "slow", "suimon store measure fast"],
  ["device-slow", "slow", undefined],
  ["flushes", "slow", undefined],
  ["metadata", "slow", undefined],
  ["discards", "slow", undefined],
  ["unmeasured", "slow", undefined],
  ["worker", "slow", undefined],
  ["queue-depth", "watch", undefined],
  ["client-idle", "idle", undefined],
];

for (const [factor, verdict, setting] of CAUSES) {
  test(`a disk that is limited by ${factor} shows it first, with its share of the time`, () => {
    const limited: QosTimeShare[] = [{ factor, share_ppm: 900_000 }, { factor: "device", share_ppm: 100_000 }];
    const seen = flow("web", 0, 281, 281, limited, { max_iops: 300 });
    const full = { ...store(), depth: 14, depth_allowed: 14, delivered_iops: 4000 };
    const way = diskWay({ disk: disk("web", { max_iops: 300 }), flow: seen, store: full, isPlugged: true });
    const limits = way.stages.filter(({ title }) => title === "stage.limited");
    assert.deepEqual(limits.map(({ why, sharePpm }) => [why, sharePpm]), [[`why.limit.${factor}`, 900_000], ["why.limit.device", 100_000]]);
    assert.equal(limits[0]?.verdict, verdict);
    assert.equal(limits[0]?.remedy?.command, setting);
    // A store with as many requests as it may have is no suspect beside it.
    const expected = verdict === "idle" ? [] : [`why.limit.${factor}`];
    assert.deepEqual(suspects([way]).map(({ stage }) => stage.why), expected);
    for (const language of ["en", "ja"] as const) {
      const said = text(language, limits[0]!.why, limits[0]!.whyParams);
      assert.ok(!said.includes("{") && !said.includes("281 of 281"), said);
      assert.notEqual(textsOf(language).word(factor), factor);
    }
  });
}

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
