/** Limits of disks: formatting, form fields and changes. */
import type { DiskQos, DiskStatus } from "../../api/types";
import { changedKeys, command, assignmentArgs, type MergePatch } from "../../api/commands";
import type { Change } from "../../components/ChangeDialog";
import { parseBytes, count, sizeRate } from "../../units/units";

const DEFAULT_WEIGHT = 100;

/** Formats limits as the CLI does, such as `min 500, max 1000 + 8.00 MiB/s, weight 200`. */
export function formatLimits(limits: DiskQos | undefined): string {
  if (!limits) return "–";
  const bytes = parseBytes(limits.max_bytes_per_s);
  const max = [limits.max_iops != null && count(limits.max_iops), bytes !== undefined && sizeRate(bytes)].filter(Boolean);
  const parts = [
    limits.min_iops != null && `min ${count(limits.min_iops)}`,
    max.length > 0 && `max ${max.join(" + ")}`,
    limits.burst_iops != null && limits.burst_s != null && `burst ${count(limits.burst_iops)} × ${limits.burst_s} s`,
    limits.weight !== undefined && limits.weight !== DEFAULT_WEIGHT && `weight ${limits.weight}`,
  ].filter(Boolean);
  return parts.length > 0 ? parts.join(", ") : "–";
}

export type LimitKey = "min_iops" | "max_iops" | "max_bytes_per_s" | "weight" | "burst_iops" | "burst_s";
export const LIMIT_KEYS: readonly LimitKey[] = ["min_iops", "max_iops", "max_bytes_per_s", "weight", "burst_iops", "burst_s"];

/** Limits as texts of form fields. */
export type LimitFields = Record<LimitKey, string>;

export function limitFields(limits: DiskQos | undefined): LimitFields {
  const fieldText = (value: number | string | null | undefined) => (value == null ? "" : String(value));
  return {
    min_iops: fieldText(limits?.min_iops),
    max_iops: fieldText(limits?.max_iops),
    max_bytes_per_s: fieldText(limits?.max_bytes_per_s),
    weight: fieldText(limits?.weight),
    burst_iops: fieldText(limits?.burst_iops),
    burst_s: fieldText(limits?.burst_s),
  };
}

/** Parses form fields. Returns `undefined` if one of them is invalid. */
export function parseLimits(fields: LimitFields): MergePatch | undefined {
  const keys: MergePatch = {};
  for (const key of LIMIT_KEYS) {
    const text = fields[key].trim();
    if (text === "") keys[key] = null;
    else if (/^[0-9]{1,15}$/.test(text)) keys[key] = Number(text);
    else if (key === "max_bytes_per_s" && parseBytes(text) !== undefined) keys[key] = text;
    else return undefined;
  }
  return keys;
}

/** Returns the change to own limits of the disk; `undefined` if the fields are invalid or unchanged. */
export function ownLimits(disk: DiskStatus, fields: LimitFields): Change | undefined {
  const hadPolicy = disk.config.qos_policy != null;
  const before = parseLimits(limitFields(hadPolicy ? undefined : disk.config.qos));
  const after = parseLimits(fields);
  if (!before || !after) return undefined;
  const keys = changedKeys(before, after);
  if (Object.keys(keys).length === 0) return undefined;
  return {
    method: "PATCH",
    path: `/1.0/disks/${encodeURIComponent(disk.config.name)}`,
    body: { qos_policy: null, qos: keys },
    command: command("qos", "set", disk.config.name, ...assignmentArgs(keys)),
  };
}

/** Returns the change to the limits of a policy; `undefined` if the disk has that policy. */
export function policyLimits(disk: DiskStatus, policy: string): Change | undefined {
  if (disk.config.qos_policy === policy) return undefined;
  return {
    method: "PATCH",
    path: `/1.0/disks/${encodeURIComponent(disk.config.name)}`,
    body: { qos_policy: policy, qos: null },
    command: command("qos", "set", disk.config.name, "--policy", policy),
  };
}
