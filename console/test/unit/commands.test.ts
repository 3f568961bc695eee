import assert from "node:assert/strict";
import { test } from "node:test";
import { changedKeys, command, flagArgs, assignmentArgs } from "../../src/api/commands";
import { limitFields, ownLimits, policyLimits } from "../../src/pages/disks/limits";
import { planChange } from "../../src/pages/power/plan_change";
import { enableVfs, setVf } from "../../src/pages/sriov/changes";
import { vmChange } from "../../src/pages/vms/actions";
import { adapter, disk } from "./fixtures";

test("arguments of commands are quoted for the shell", () => {
  assert.equal(command("qos", "set", "gold", "min_iops=2000"), "suimon qos set gold min_iops=2000");
  assert.equal(command("vm", "start", "it's; rm", false, undefined), "suimon vm start 'it'\\''s; rm'");
});

test("a change contains only changed keys, and emptied fields are removed", () => {
  const keys = changedKeys({ min_iops: 500, max_iops: null }, { min_iops: null, max_iops: null, weight: 50 });
  assert.deepEqual(keys, { min_iops: null, weight: 50 });
  assert.deepEqual(assignmentArgs({ ...keys, enabled: false }), ["min_iops=default", "weight=50", "enabled=off"]);
  assert.deepEqual(flagArgs(keys), ["--unset", "min_iops", "--weight", "50"]);
});

test("own limits are a patch of the disk with the equivalent command", () => {
  const change = ownLimits(disk("gold", { min_iops: 500 }), { ...limitFields({ min_iops: 500 }), min_iops: "2000" });
  assert.equal(change?.command, "suimon qos set gold min_iops=2000");
  assert.deepEqual(change?.body, { qos_policy: null, qos: { min_iops: 2000 } });
  assert.equal(change?.path, "/1.0/disks/gold");
});

test("an unchanged or invalid form results in no change", () => {
  const gold = disk("gold", { min_iops: 500 });
  assert.equal(ownLimits(gold, limitFields({ min_iops: 500 })), undefined);
  assert.equal(ownLimits(gold, { ...limitFields({}), min_iops: "many" }), undefined);
  assert.equal(policyLimits({ ...gold, config: { ...gold.config, qos_policy: "rest" } }, "rest"), undefined);
});

test("own limits that replace a policy contain all keys", () => {
  const gold = disk("gold", undefined);
  gold.config.qos_policy = "rest";
  const change = ownLimits(gold, { ...limitFields(undefined), max_bytes_per_s: "100MiB" });
  assert.deepEqual(change?.body, { qos_policy: null, qos: { max_bytes_per_s: "100MiB" } });
  assert.equal(policyLimits(gold, "best")?.command, "suimon qos set gold --policy best");
});

test("stopping a VM has a time limit and the force flag", () => {
  assert.equal(vmChange("stop", "web", { seconds: 30, force: true }).command, "suimon vm stop web --seconds 30 --force");
  assert.equal(vmChange("kill", "web", { seconds: 30, force: true }).body, undefined);
});

test("another power plan is put, other keys are patched, and keys outside the form are kept", () => {
  const first = planChange(undefined, "balanced", null, 80, "on");
  assert.deepEqual([first?.method, first?.body], ["PUT", { plan: "balanced", performance_percent_max: 80, turbo: true }]);
  const key = planChange({ plan: "balanced", poll_us: 20 }, "balanced", 50, null, "plan");
  assert.deepEqual([key?.method, key?.body, key?.command], ["PATCH", { performance_percent_min: 50 }, "suimon power set performance_percent_min=50"]);
  const other = planChange({ plan: "balanced", poll_us: 20 }, "custom", null, null, "plan");
  assert.deepEqual([other?.method, other?.body], ["PUT", { plan: "custom", poll_us: 20 }]);
  assert.equal(planChange({ plan: "balanced" }, "balanced", null, null, "plan"), undefined);
});

test("a lower number of VFs removes the configuration of the others", () => {
  const change = enableVfs(adapter(), { name: "wan", device: "eth0", vfs: 4, vf: [{ index: 0 }, { index: 3, vlan: 9 }] }, 2);
  assert.deepEqual(change.body, { vfs: 2, vf: [{ index: 0 }] });
  assert.equal(change.command, "suimon vf enable eth0 --count 2");
  assert.deepEqual(enableVfs(adapter(), undefined, 2).body, { name: "eth0", device: "eth0", vfs: 2 });
});

test("changed keys of a VF are merged with its configuration", () => {
  const config = { name: "wan", device: "eth0", vfs: 2, vf: [{ index: 1, vlan: 9, trust: true }] };
  const change = setVf(adapter(), config, 1, { vlan: null, spoof_check: false });
  assert.deepEqual(change?.body, { vf: [{ index: 1, trust: true, spoof_check: false }] });
  assert.equal(change?.command, "suimon vf set eth0 1 vlan=default spoof_check=off");
  assert.equal(setVf(adapter(), config, 1, {}), undefined);
});
