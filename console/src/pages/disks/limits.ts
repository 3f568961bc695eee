/** Limits of disks, in words and as changes. */
import type { DiskQos, DiskStatus } from "../../api/types";
import { changed, command, settings, type Keys } from "../../api/commands";
import type { Change } from "../../parts/ChangeDialog";
import { bytesOf, count, sizeRate } from "../../units/units";

const WEIGHT = 100;

/** `min 500, max 1000 and 8.00 MiB/s, weight 200`, as the command line has it. */
export function limitsInShort(limits: DiskQos | undefined): string {
  if (!limits) return "–";
  const bytes = bytesOf(limits.max_bytes_per_s);
  const max = [limits.max_iops != null && count(limits.max_iops), bytes !== undefined && sizeRate(bytes)].filter(Boolean);
  const parts = [
    limits.min_iops != null && `min ${count(limits.min_iops)}`,
    max.length > 0 && `max ${max.join(" + ")}`,
    limits.burst_iops != null && limits.burst_s != null && `burst ${count(limits.burst_iops)} × ${limits.burst_s} s`,
    limits.weight !== undefined && limits.weight !== WEIGHT && `weight ${limits.weight}`,
  ].filter(Boolean);
  return parts.length > 0 ? parts.join(", ") : "–";
}

export type LimitKey = "min_iops" | "max_iops" | "max_bytes_per_s" | "weight" | "burst_iops" | "burst_s";
export const LIMIT_KEYS: readonly LimitKey[] = ["min_iops", "max_iops", "max_bytes_per_s", "weight", "burst_iops", "burst_s"];

/** Limits as a form has them. */
export type LimitFields = Record<LimitKey, string>;

export function fieldsOf(limits: DiskQos | undefined): LimitFields {
  const of = (value: number | string | null | undefined) => (value == null ? "" : String(value));
  return {
    min_iops: of(limits?.min_iops),
    max_iops: of(limits?.max_iops),
    max_bytes_per_s: of(limits?.max_bytes_per_s),
    weight: of(limits?.weight),
    burst_iops: of(limits?.burst_iops),
    burst_s: of(limits?.burst_s),
  };
}

/** The fields as keys; nothing if one of them is no number. */
export function keysOf(fields: LimitFields): Keys | undefined {
  const keys: Keys = {};
  for (const key of LIMIT_KEYS) {
    const text = fields[key].trim();
    if (text === "") keys[key] = null;
    else if (/^[0-9]{1,15}$/.test(text)) keys[key] = Number(text);
    else if (key === "max_bytes_per_s" && bytesOf(text) !== undefined) keys[key] = text;
    else return undefined;
  }
  return keys;
}

/** Own limits in place of what the disk has; nothing if that is what it has. */
export function ownLimits(disk: DiskStatus, fields: LimitFields): Change | undefined {
  const hadPolicy = disk.config.qos_policy != null;
  const before = keysOf(fieldsOf(hadPolicy ? undefined : disk.config.qos));
  const after = keysOf(fields);
  if (!before || !after) return undefined;
  const keys = changed(before, after);
  if (Object.keys(keys).length === 0) return undefined;
  return {
    method: "PATCH",
    path: `/1.0/disks/${encodeURIComponent(disk.config.name)}`,
    body: { qos_policy: null, qos: keys },
    command: command("qos", "set", disk.config.name, ...settings(keys)),
  };
}

/** A policy's limits in place of what the disk has. */
export function policyLimits(disk: DiskStatus, policy: string): Change | undefined {
  if (disk.config.qos_policy === policy) return undefined;
  return {
    method: "PATCH",
    path: `/1.0/disks/${encodeURIComponent(disk.config.name)}`,
    body: { qos_policy: policy, qos: null },
    command: command("qos", "set", disk.config.name, "--policy", policy),
  };
}
