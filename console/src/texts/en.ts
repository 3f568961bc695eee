/** The page's texts in English. What stands in braces is filled in. */
import { disks } from "./en/disks";
import { overview } from "./en/overview";
import { shell } from "./en/shell";
import { words } from "./en/words";

export const en = { ...disks, ...overview, ...shell, ...words } as const;

/** Names a text. */
export type Key = keyof typeof en;
