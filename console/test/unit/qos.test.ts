import assert from "node:assert/strict";
import { test } from "node:test";
import { deliveryByStore } from "../../src/pages/disks/delivery";
import { diskPath } from "../../src/pages/why/disk_path";
import { limitingStages } from "../../src/pages/why/stage";
import type { QosTimeShare } from "../../src/api/types";
import { text, textsOf } from "../../src/texts/texts";
import { disk, flow, store } from "./fixtures";

test("a disk below its minimum is listed with the disks above their guarantees", () => {
  const [fast] = deliveryByStore([flow("gold", 2000, 3000, 1200), flow("noisy", 0, 9000, 2800), flow("tame", 100, 100, 100)]);
  assert.deepEqual(fast?.unmet, [{ disk: "gold", shortfall: 800, excessDisks: [{ disk: "noisy", excess: 2800 }] }]);
});

test("a disk without demand has no shortfall, and rounding errors are ignored", () => {
  const [fast] = deliveryByStore([flow("gold", 2000, 10, 10), flow("silver", 1000, 1000, 960)]);
  assert.deepEqual(fast?.unmet, []);
});

const FACTORS: [QosTimeShare["factor"], string, string | undefined][] = [
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

for (const [factor, verdict, command] of FACTORS) {
  test(`the limiting factor ${factor} is the first stage, with its share of the time`, () => {
    const limited: QosTimeShare[] = [{ factor, share_ppm: 900_000 }, { factor: "device", share_ppm: 100_000 }];
    const diskFlow = flow("web", 0, 281, 281, limited, { max_iops: 300 });
    const saturatedStore = { ...store(), depth: 14, depth_allowed: 14, delivered_iops: 4000 };
    const path = diskPath({ disk: disk("web", { max_iops: 300 }), flow: diskFlow, store: saturatedStore, isAttached: true });
    const limits = path.stages.filter(({ title }) => title === "stage.limited");
    assert.deepEqual(limits.map(({ explanation, sharePpm }) => [explanation, sharePpm]), [[`why.limit.${factor}`, 900_000], ["why.limit.device", 100_000]]);
    assert.equal(limits[0]?.verdict, verdict);
    assert.equal(limits[0]?.remedy?.command, command);
    // A full device queue of the store is not an additional limiting stage.
    const expected = verdict === "idle" ? [] : [`why.limit.${factor}`];
    assert.deepEqual(limitingStages([path]).map(({ stage }) => stage.explanation), expected);
    for (const language of ["en", "ja"] as const) {
      const explanation = text(language, limits[0]!.explanation, limits[0]!.explanationParams);
      assert.ok(!explanation.includes("{") && !explanation.includes("281 of 281"), explanation);
      assert.notEqual(textsOf(language).label(factor), factor);
    }
  });
}

test("an idle disk has no limiting stage", () => {
  assert.deepEqual(limitingStages([diskPath({ disk: disk("web", {}), flow: flow("web", 0, 0, 0), store: store(), isAttached: true })]), []);
});

test("a failed disk is the first limiting stage", () => {
  const path = diskPath({ disk: { ...disk("web", {}), state: "failed", reason: "no such file" }, isAttached: true });
  assert.equal(limitingStages([path])[0]?.stage.value, "no such file");
});

test("a disk of a stopped VM without other clients is shown as not connected", () => {
  const input = { disk: disk("web", {}), flow: flow("web", 0, 0, 0), store: store() };
  assert.equal(diskPath({ ...input, isAttached: false }).stages[0]?.explanation, "why.disk.absent");
  assert.equal(diskPath({ ...input, isAttached: true }).stages[0]?.explanation, "why.disk.idle");
});
