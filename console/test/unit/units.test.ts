import assert from "node:assert/strict";
import { test } from "node:test";
import * as units from "../../src/units/units";
import { text } from "../../src/texts/texts";

test("rates have three digits and a prefix, as in the CLI", () => {
  const shown = [0, 999, 1000, 1234, 12_345, 123_456, 999_499, 999_500, 15_800_000_000].map(units.bitRate);
  assert.deepEqual(shown, [
    "0 bit/s", "999 bit/s", "1.00 kbit/s", "1.23 kbit/s", "12.3 kbit/s", "123 kbit/s", "999 kbit/s", "1.00 Mbit/s", "15.8 Gbit/s",
  ]);
});

test("rounding never shows four digits where there is a larger unit", () => {
  for (let value = 1; value < 1e15; value = Math.ceil(value * 1.01)) {
    const digits = units.bitRate(value).split(" ")[0] ?? "";
    if (value >= 1000) assert.equal(digits.replace(".", "").length, 3, `${value} is ${digits}`);
    assert.ok(Number(digits) < 1000, `${value} is ${digits}`);
  }
});

test("counts are exact below ten thousand", () => {
  assert.deepEqual([0, 9999, 10_000, 12_345_678].map(units.count), ["0", "9999", "10.0 k", "12.3 M"]);
});

test("sizes are binary, shares have one decimal, ages two units", () => {
  assert.equal(units.size(1.2 * 2 ** 30), "1.20 GiB");
  assert.deepEqual([0, 499, 500, 123_456, 999_950, 1_000_000].map(units.percent), ["0.0 %", "0.0 %", "0.1 %", "12.3 %", "100.0 %", "100.0 %"]);
  assert.deepEqual([59, 75, 3660, 90_000].map(units.duration), ["59 s", "1 min 15 s", "1 h 01 min", "1 d 01 h"]);
});

test("sizes of the API are parsed from numbers and texts", () => {
  assert.equal(units.parseBytes("2 GiB"), 2 ** 31);
  assert.equal(units.parseBytes("100MiB"), 100 * 2 ** 20);
  assert.equal(units.parseBytes(512), 512);
  assert.equal(units.parseBytes("many"), undefined);
  assert.equal(units.parseBytes(null), undefined);
});

test("NaN is shown as unknown", () => {
  assert.equal(units.bitRate(Number.NaN), "–");
});

test("repeated axis labels are blank", () => {
  assert.deepEqual(units.blankRepeats([0, 0.2, 0.4, 0.6, 1].map(units.bitRate)), ["0 bit/s", "", "", "1 bit/s", ""]);
  assert.deepEqual(units.blankRepeats(["0 %", "50 %", "100 %"]), ["0 %", "50 %", "100 %"]);
});

test("nouns agree with their number", () => {
  const line = (nics: number) => text("en", "tile.network.more", { up: 1, nics, uplinks: nics });
  assert.equal(line(1), "1 of 1 NIC up, 1 uplink");
  assert.equal(line(2), "1 of 2 NICs up, 2 uplinks");
  assert.ok(text("ja", "tile.network.more", { up: 1, nics: 1, uplinks: 1 }).includes("1"));
});
