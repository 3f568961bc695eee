/** The page's texts in Japanese. What stands in braces is filled in. */
import { disks } from "./ja/disks";
import { host } from "./ja/host";
import { lab } from "./ja/lab";
import { network } from "./ja/network";
import { overview } from "./ja/overview";
import { shell } from "./ja/shell";
import { vmq } from "./ja/vmq";
import { vms } from "./ja/vms";
import { why } from "./ja/why";
import { labels } from "./ja/labels";
import type { Key } from "./en";

export const ja: Record<Key, string> = { ...disks, ...host, ...lab, ...network, ...overview, ...shell, ...vmq, ...vms, ...why, ...labels };
