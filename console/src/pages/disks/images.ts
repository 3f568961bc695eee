/** Missing image files of disks. */
import type { DiskStatus } from "../../api/types";
import { command } from "../../api/commands";
import type { Change } from "../../components/ChangeDialog";

/** Option that the daemon names as a remedy of a missing image file. */
const OPTION = "--create-image";

/** Whether the disk has failed because its image file is missing. */
export function isImageMissing(disk: DiskStatus): boolean {
  return disk.state === "failed" && (disk.reason ?? "").includes(OPTION);
}

/** Creates a new image for a disk whose image file is missing. */
export function createImage(disk: DiskStatus): Change {
  const { name } = disk.config;
  return {
    method: "PATCH",
    path: `/1.0/disks/${encodeURIComponent(name)}?create_image=true`,
    body: {},
    command: command("disk", "set", name, OPTION),
  };
}
