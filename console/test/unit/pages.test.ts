import assert from "node:assert/strict";
import { test } from "node:test";
import { attentionItems } from "../../src/pages/overview/attention";
import { filterEvents } from "../../src/pages/events/filter";
import { inSync, stateLetters } from "../../src/pages/network/lacp";
import { switchDiagram } from "../../src/pages/network/switch_diagram";
import { queueAssignments, queuesPerWorker } from "../../src/pages/vmq/queue_assignments";
import { groupCpus, formatRanges } from "../../src/pages/power/group_cpus";
import { sortedRows } from "../../src/components/sorted_rows";
import { parseRoute } from "../../src/shell/route";
import type { Event, NicStatus, SwitchStatus, VmqStatus } from "../../src/api/types";
import { disk, flow } from "./fixtures";

const counters = { rx_frames: 0, rx_bytes: 0, tx_frames: 0, tx_bytes: 0, rx_dropped: [], tx_dropped: [], flooded: 0, software_segmented: 0, software_checksummed: 0, software_coalesced_segments: 0, software_coalesced_units: 0 };
const nic = (name: string): NicStatus => ({
  config: { name, switch: "lan", backend: "tap" }, condition: { health: "down", reason: "not connected" },
  counters, offloads: [], queue_pairs: 1, learned: 0,
});

test("errors precede warnings, and the NIC of a stopped VM is not a warning", () => {
  const vm = { config: { name: "off", memory_bytes: 1, nics: ["quiet"] }, state: "stopped" as const, waits_for_start: [], nics: [], disks: [] };
  const items = attentionItems({
    nics: [nic("loud"), nic("quiet")], vms: [vm],
    disks: [{ ...disk("web", {}), state: "failed" }],
    flows: [flow("gold", 2000, 3000, 1200), flow("noisy", 0, 9000, 2800)],
  });
  assert.deepEqual(items.map((item) => [item.severity, item.text, item.params["name"]]), [
    ["danger", "attention.disk.failed", "web"],
    ["warning", "attention.minimum", "gold"],
    ["warning", "attention.nic.down", "loud"],
  ]);
});

test("events are filtered by severity and words, newest first", () => {
  const event = (sequence: number, severity: Event["severity"], text: string): Event => ({ sequence, time_unix_ms: 0, id: 6204, severity, subject: "disk/web", text });
  const events = [event(1, "info", "made"), event(2, "warning", "minimum unmet"), event(3, "error", "failed")];
  assert.deepEqual(filterEvents(events, "warning", "").map((shown) => shown.sequence), [3, 2]);
  assert.deepEqual(filterEvents(events, "info", "WEB unmet").map((shown) => shown.sequence), [2]);
});

test("LACP states are formatted as letters of their bits", () => {
  const both = ["activity", "aggregation", "synchronization", "collecting", "distributing"];
  assert.equal(stateLetters(both), "A-GSCD--");
  assert.equal(stateLetters(["activity", "short-timeout", "defaulted"]), "AT----F-");
  assert.equal(inSync(both, ["activity"]), "ours");
});

test("assignments of a moved queue are contiguous", () => {
  const sample = (timeMs: number, worker: number) => ({ timeMs, data: [{ uplink: "up", config: {}, workers: [{ worker, permitted: true, queues: 1, load_ppm: 0, other_load_ppm: 0 }], queues: [{ queue: "web/rx/0", nic: "web", default_queue: false, worker, load_ppm: 0, age_s: 0, reason: "", stay_reason: "" }] }] as VmqStatus[] });
  const history = [sample(0, 0), sample(1000, 0), sample(2000, 1), sample(3000, 1)];
  assert.deepEqual(queueAssignments(history, "up")[0]?.assignments, [{ fromMs: 0, toMs: 1000, worker: 0 }, { fromMs: 1000, toMs: 3000, worker: 1 }]);
  assert.deepEqual(queuesPerWorker(history, "up").get(1), [undefined, undefined, 1, 1]);
});

test("the diagram of a switch connects NICs, queues, workers and the uplink", () => {
  const switchStatus: SwitchStatus = { config: { name: "lan", kind: "external", uplink: "up" }, condition: { health: "up" }, nics: ["web"], addresses: 0 };
  const queue = (id: string, port: string, bps: number) => ({ id, port, worker: 1, bps, fps: 0, overflowsPerS: 0 });
  const worker = (id: number) => ({ id, queues: 1, cpu_time_ns: 0, busy_ns: 0, batches: 0, frames: 0, sleeps: 0, asleep: false });
  const diagram = switchDiagram({
    switchStatus, nics: [nic("web"), { ...nic("other"), config: { ...nic("other").config, switch: "far" } }], vms: [], uplinks: [], teams: [],
    queues: [queue("web/rx/0", "web", 5), queue("up/tx/0", "up", 3), queue("up/rx/0", "up", 4)],
    workers: [worker(0), worker(1)], loadByQueue: new Map(), busyByWorker: new Map(),
  });
  assert.deepEqual(diagram.edges, [
    { from: "nic/web", to: "web/rx/0", bps: 5 },
    { from: "web/rx/0", to: "worker/1", bps: 5 },
    { from: "worker/1", to: "uplink/up", bps: 7 },
  ]);
  assert.deepEqual(diagram.boxes.filter((box) => box.column === 2).map((box) => [box.title, box.state]), [["0", "parked"], ["1", undefined]]);
});

test("CPUs with equal properties are grouped", () => {
  assert.deepEqual(groupCpus([1, 2, 3], (item) => String(item % 2), (item) => [item]).map((item) => item.cpus), [[1, 3], [2]]);
  assert.equal(formatRanges([4, 0, 1, 2]), "0-2,4");
});

test("rows are sorted by numeric value, also within names", () => {
  assert.deepEqual(sortedRows([10, 9, 100], (value) => value, true), [100, 10, 9]);
  assert.deepEqual(sortedRows(["vm10", "vm9"], (value) => value, false), ["vm9", "vm10"]);
});

test("a URL fragment is parsed into page, object and query", () => {
  assert.deepEqual(parseRoute("#/login?code=a%2Fb").path, ["login"]);
  assert.equal(parseRoute("#/login?code=a%2Fb").query.get("code"), "a/b");
  assert.deepEqual(parseRoute("#/disks/a%2Fb").path, ["disks", "a/b"]);
  assert.deepEqual(parseRoute("#/disks/%E0%A4").path, ["disks", "%E0%A4"]);
});
