import assert from "node:assert/strict";
import { test } from "node:test";
import { createImage, lacksImage } from "../../src/pages/disks/images";
import type { DiskStatus } from "../../src/api/types";
import { disk } from "./things";

function failed(reason: string): DiskStatus {
  return { ...disk("web", undefined), state: "failed", reason };
}

const MISSING =
  "disk/web: file: the image file /srv/web.raw is missing, and is created only for a new disk. Mount the file system of store fast, or " +
  "restore the file; the daemon then opens it. Instead, `suimon disk set web` with `--create-image` creates the empty image file /srv/web.raw";

test("an image can be created for a failed disk whose file is missing only", () => {
  assert.ok(lacksImage(failed(MISSING)));
  assert.ok(!lacksImage(failed("the store has not responded for 12 s; check its device")));
  assert.ok(!lacksImage(disk("web", undefined)));
  assert.ok(!lacksImage({ ...failed(MISSING), state: "working" }));
});

test("the request changes nothing but the image, and the command does the same", () => {
  const change = createImage(failed(MISSING));
  assert.deepEqual([change.method, change.path, change.body], ["PATCH", "/1.0/disks/web?create_image=true", {}]);
  assert.equal(change.command, "suimon disk set web --create-image");
});
