/** The page's texts in Japanese. What stands in braces is filled in. */
import { disks } from "./ja/disks";
import { overview } from "./ja/overview";
import { shell } from "./ja/shell";
import { words } from "./ja/words";
import type { Key } from "./en";

export const ja: Record<Key, string> = { ...disks, ...overview, ...shell, ...words };
