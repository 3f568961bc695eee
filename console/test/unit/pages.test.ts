import assert from "node:assert/strict";
import { test } from "node:test";
import { attention } from "../../src/pages/overview/attention";
import { chosen } from "../../src/pages/events/chosen";
import { inSync, stateLetters } from "../../src/pages/network/lacp";
import { pathPicture } from "../../src/pages/network/path";
import { queueLines, queuesPerWorker } from "../../src/pages/vmq/queue_lines";
import { alike, ranges } from "../../src/pages/power/alike";
import { sortedRows } from "../../src/parts/sorted_rows";
import { placeOf } from "../../src/shell/place";
import type { Event, NicStatus, SwitchStatus, VmqStatus } from "../../src/api/types";
import { disk, flow } from "./things";

const counters = { rx_frames: 0, rx_bytes: 0, tx_frames: 0, tx_bytes: 0, rx_dropped: [], tx_dropped: [], flooded: 0, software_segmented: 0, software_checksummed: 0, software_coalesced_segments: 0, software_coalesced_units: 0 };
const nic = (name: string): NicStatus => ({
  config: { name, switch: "lan", backend: "tap" }, condition: { health: "down", reason: "nobody is there" },
  counters, offloads: [], queue_pairs: 1, learned: 0,
});

test("errors come before warnings, and the NIC of a VM that is off is not one", () => {
  const vm = { config: { name: "off", memory_bytes: 1, nics: ["quiet"] }, state: "stopped" as const, waits_for_start: [], nics: [], disks: [] };
  const found = attention({
    nics: [nic("loud"), nic("quiet")], vms: [vm],
    disks: [{ ...disk("web", {}), state: "failed" }],
    flows: [flow("gold", 2000, 3000, 1200), flow("noisy", 0, 9000, 2800)],
  });
  assert.deepEqual(found.map((one) => [one.severity, one.text, one.params["name"]]), [
    ["danger", "attention.disk.failed", "web"],
    ["warning", "attention.minimum", "gold"],
    ["warning", "attention.nic.down", "loud"],
  ]);
});

test("events are chosen by severity and words, newest first", () => {
  const event = (sequence: number, severity: Event["severity"], text: string): Event => ({ sequence, time_unix_ms: 0, id: 6204, severity, subject: "disk/web", text });
  const all = [event(1, "info", "made"), event(2, "warning", "minimum unmet"), event(3, "error", "failed")];
  assert.deepEqual(chosen(all, "warning", "").map((one) => one.sequence), [3, 2]);
  assert.deepEqual(chosen(all, "info", "WEB unmet").map((one) => one.sequence), [2]);
});

test("LACP's states are written as the letters of their bits", () => {
  const both = ["activity", "aggregation", "synchronization", "collecting", "distributing"];
  assert.equal(stateLetters(both), "A-GSCD--");
  assert.equal(stateLetters(["activity", "short-timeout", "defaulted"]), "AT----F-");
  assert.equal(inSync(both, ["activity"]), "ours");
});

test("a queue's stretches meet where it was moved", () => {
  const at = (timeMs: number, worker: number) => ({ timeMs, data: [{ uplink: "up", config: {}, workers: [{ worker, permitted: true, queues: 1, load_ppm: 0, other_load_ppm: 0 }], queues: [{ queue: "web/rx/0", nic: "web", default_queue: false, worker, load_ppm: 0, age_s: 0, reason: "", stay_reason: "" }] }] as VmqStatus[] });
  const history = [at(0, 0), at(1000, 0), at(2000, 1), at(3000, 1)];
  assert.deepEqual(queueLines(history, "up")[0]?.stretches, [{ fromMs: 0, toMs: 1000, worker: 0 }, { fromMs: 1000, toMs: 3000, worker: 1 }]);
  assert.deepEqual(queuesPerWorker(history, "up").get(1), [undefined, undefined, 1, 1]);
});

test("the picture of a switch leads from its NICs by queues and workers to its uplink", () => {
  const of: SwitchStatus = { config: { name: "lan", kind: "external", uplink: "up" }, condition: { health: "up" }, nics: ["web"], addresses: 0 };
  const queue = (id: string, port: string, bps: number) => ({ id, port, worker: 1, bps, fps: 0, fullPerS: 0 });
  const worker = (id: number) => ({ id, queues: 1, cpu_time_ns: 0, busy_ns: 0, batches: 0, frames: 0, sleeps: 0, asleep: false });
  const picture = pathPicture({
    of, nics: [nic("web"), { ...nic("other"), config: { ...nic("other").config, switch: "far" } }], vms: [], uplinks: [], teams: [],
    queues: [queue("web/rx/0", "web", 5), queue("up/tx/0", "up", 3), queue("up/rx/0", "up", 4)],
    workers: [worker(0), worker(1)], loads: new Map(), busy: new Map(),
  });
  assert.deepEqual(picture.lines, [
    { from: "nic/web", to: "web/rx/0", bps: 5 },
    { from: "web/rx/0", to: "worker/1", bps: 5 },
    { from: "worker/1", to: "uplink/up", bps: 7 },
  ]);
  assert.deepEqual(picture.boxes.filter((box) => box.column === 2).map((box) => [box.title, box.state]), [["0", "parked"], ["1", undefined]]);
});

test("CPUs that are alike share a line", () => {
  assert.deepEqual(alike([1, 2, 3], (one) => String(one % 2), (one) => [one]).map((one) => one.cpus), [[1, 3], [2]]);
  assert.equal(ranges([4, 0, 1, 2]), "0-2,4");
});

test("rows sort as numbers where they are numbers, and names as people count", () => {
  assert.deepEqual(sortedRows([10, 9, 100], (one) => one, true), [100, 10, 9]);
  assert.deepEqual(sortedRows(["vm10", "vm9"], (one) => one, false), ["vm9", "vm10"]);
});

test("an address says which page and which thing", () => {
  assert.deepEqual(placeOf("#/login?code=a%2Fb").path, ["login"]);
  assert.equal(placeOf("#/login?code=a%2Fb").query.get("code"), "a/b");
  assert.deepEqual(placeOf("#/disks/a%2Fb").path, ["disks", "a/b"]);
  assert.deepEqual(placeOf("#/disks/%E0%A4").path, ["disks", "%E0%A4"]);
});
