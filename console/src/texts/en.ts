/** English texts. Placeholders are in braces. */
import { disks } from "./en/disks";
import { host } from "./en/host";
import { lab } from "./en/lab";
import { network } from "./en/network";
import { overview } from "./en/overview";
import { shell } from "./en/shell";
import { vmq } from "./en/vmq";
import { vms } from "./en/vms";
import { why } from "./en/why";
import { labels } from "./en/labels";

export const en = { ...disks, ...host, ...lab, ...network, ...overview, ...shell, ...vmq, ...vms, ...why, ...labels } as const;

/** Key of a text. */
export type Key = keyof typeof en;
