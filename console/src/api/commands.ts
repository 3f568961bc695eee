/** Commands of the `suimon` command line that do what the page does. */

const PLAIN = /^[A-Za-z0-9_./:=,@%+-]+$/;

/** Words as a shell takes them. */
export function command(...words: (string | undefined | false)[]): string {
  const given = words.filter((word): word is string => typeof word === "string");
  return ["suimon", ...given].map(quoted).join(" ");
}

function quoted(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A key of a merge patch: a value, or `null` for what is taken away. */
export type Keys = Record<string, string | number | boolean | null>;

/** `min_iops=2000`, `max_iops=default`, `enabled=off`. */
export function settings(keys: Keys): string[] {
  return Object.entries(keys).map(([key, value]) => `${key}=${word(value)}`);
}

function word(value: string | number | boolean | null): string {
  if (value === null) return "default";
  if (typeof value === "boolean") return value ? "on" : "off";
  return String(value);
}

/** The keys whose value differs from what is so now; what is empty is taken away. */
export function changed(before: Keys, after: Keys): Keys {
  return Object.fromEntries(
    Object.entries(after).filter(([key, value]) => value !== (before[key] ?? null)),
  );
}

/** Keys as flags of a resource's `set`: `--min-iops 2000`, `--unset max_iops`. */
export function flags(keys: Keys): string[] {
  return Object.entries(keys).flatMap(([key, value]) =>
    value === null ? ["--unset", key] : [`--${key.replaceAll("_", "-")}`, String(value)],
  );
}
