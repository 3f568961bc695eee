/** The page's texts in English. What stands in braces is filled in. */
import { disks } from "./en/disks";
import { host } from "./en/host";
import { lab } from "./en/lab";
import { network } from "./en/network";
import { overview } from "./en/overview";
import { shell } from "./en/shell";
import { vmq } from "./en/vmq";
import { vms } from "./en/vms";
import { why } from "./en/why";
import { words } from "./en/words";

export const en = { ...disks, ...host, ...lab, ...network, ...overview, ...shell, ...vmq, ...vms, ...why, ...words } as const;

/** Names a text. */
export type Key = keyof typeof en;
