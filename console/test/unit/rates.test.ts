import assert from "node:assert/strict";
import { test } from "node:test";
import { ratesBetween } from "../../src/live/rates";
import { queueRates } from "../../src/live/queue_rates";
import { snapshot } from "./fixtures";

const port = (rx: number) => ({ name: "web", health: "up" as const, rx_frames: rx, rx_bytes: 100 * rx, tx_frames: 0, tx_bytes: 0, rx_dropped: 0, tx_dropped: 0 });

test("rates are counter differences by the monotonic clock of the daemon", () => {
  const rates = ratesBetween(snapshot(10, { nics: [port(100)] }), snapshot(12, { nics: [port(300)] }));
  assert.equal(rates?.nics[0]?.rxFps, 100);
  assert.equal(rates?.nics[0]?.rxBps, 80_000);
});

test("new objects and reset counters have the rate 0", () => {
  assert.equal(ratesBetween(snapshot(10), snapshot(12, { nics: [port(300)] }))?.nics[0]?.rxFps, 0);
  assert.equal(ratesBetween(snapshot(10, { nics: [port(300)] }), snapshot(12, { nics: [port(5)] }))?.nics[0]?.rxFps, 0);
  assert.equal(ratesBetween(snapshot(500), snapshot(3)), undefined);
});

test("the latency of a disk is the mean of the requests completed in between", () => {
  const disk = (reads: number, latency: number) => ({ name: "web", store: "fast", state: "ready" as const, reads, read_bytes: 0, writes: 0, written_bytes: 0, others: 0, latency_ns: latency });
  const rates = ratesBetween(snapshot(1, { disks: [disk(10, 1000)] }), snapshot(2, { disks: [disk(14, 9000)] }));
  assert.equal(rates?.disks[0]?.latencyNs, 2000);
  const idle = ratesBetween(snapshot(1, { disks: [disk(10, 1000)] }), snapshot(2, { disks: [disk(10, 1000)] }));
  assert.equal(idle?.disks[0]?.latencyNs, undefined);
});

test("new queues have the rate 0", () => {
  const queue = (bytes: number) => ({ id: "web/rx/0", port: "web", worker: 0, frames: 0, bytes, full: 0, moves: 0 });
  assert.equal(queueRates([queue(1000)], [queue(2000)], 1000)[0]?.bps, 8000);
  assert.equal(queueRates([], [queue(2000)], 1000)[0]?.bps, 0);
  assert.equal(queueRates([queue(1000)], [queue(2000)], 0)[0]?.bps, 0);
});
