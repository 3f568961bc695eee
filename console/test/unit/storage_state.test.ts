import assert from "node:assert/strict";
import { test } from "node:test";
import { storageState } from "../../src/components/storage_state";
import { textsOf } from "../../src/texts/texts";
import { disk, store } from "./fixtures";

const texts = [textsOf("en"), textsOf("ja")];

test("a disk or store whose worker does not respond is marked as by the command line", () => {
  for (const object of [disk("web", {}), store()]) {
    assert.deepEqual(texts.map((language) => storageState(object, language).text), ["ready", "使用可"]);
    assert.deepEqual(texts.map((language) => storageState({ ...object, stale: false }, language).state), ["ready", "ready"]);
    const stale = texts.map((language) => storageState({ ...object, stale: true }, language));
    assert.deepEqual(stale.map(({ text }) => text), ["ready (stale)", "使用可（古い値）"]);
    assert.deepEqual(stale.map(({ state }) => state), ["stale", "stale"]);
  }
});

test("a state that is not ready is kept in the mark", () => {
  const failed = { ...disk("web", {}), state: "failed" as const, stale: true };
  assert.deepEqual(storageState(failed, texts[0]!), { state: "failed", text: "failed (stale)" });
  const full = { ...disk("web", {}), state: "full" as const };
  assert.equal(storageState(full, texts[0]!).state, "store-full");
});
