import assert from "node:assert/strict";
import { test } from "node:test";
import { createImage, isImageMissing } from "../../src/pages/disks/images";
import type { DiskStatus } from "../../src/api/types";
import { disk } from "./fixtures";

function failed(reason: string): DiskStatus {
  return { ...disk("web", undefined), state: "failed", reason };
}

const IMAGE_MISSING =
  "disk/web: file: the image file /srv/web.raw is missing, and is created only for a new disk. Mount the file system of store fast, or " +
  "restore the file; the daemon then opens it. Instead, `suimon disk set web` with `--create-image` creates the empty image file /srv/web.raw";

test("an image can be created only for a failed disk with a missing image file", () => {
  assert.ok(isImageMissing(failed(IMAGE_MISSING)));
  assert.ok(!isImageMissing(failed("the store has not responded for 12 s; check its device")));
  assert.ok(!isImageMissing(disk("web", undefined)));
  assert.ok(!isImageMissing({ ...failed(IMAGE_MISSING), state: "working" }));
});

test("the request only creates the image, and the command is equivalent", () => {
  const change = createImage(failed(IMAGE_MISSING));
  assert.deepEqual([change.method, change.path, change.body], ["PATCH", "/1.0/disks/web?create_image=true", {}]);
  assert.equal(change.command, "suimon disk set web --create-image");
});
