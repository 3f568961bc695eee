/** Builds the CLI commands that are equivalent to changes in the console. */

const UNQUOTED = /^[A-Za-z0-9_./:=,@%+-]+$/;

/** Returns a `suimon` command line with shell quoting. Arguments that are `undefined` or `false` are omitted. */
export function command(...args: (string | undefined | false)[]): string {
  const present = args.filter((arg): arg is string => typeof arg === "string");
  return ["suimon", ...present].map(quote).join(" ");
}

function quote(arg: string): string {
  return UNQUOTED.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`;
}

/** JSON merge patch of an object without nested objects: `null` removes a key. */
export type MergePatch = Record<string, string | number | boolean | null>;

/** Returns KEY=VALUE arguments, such as `min_iops=2000`, `max_iops=default` or `enabled=off`. */
export function assignmentArgs(patch: MergePatch): string[] {
  return Object.entries(patch).map(([key, value]) => `${key}=${formatValue(value)}`);
}

function formatValue(value: string | number | boolean | null): string {
  if (value === null) return "default";
  if (typeof value === "boolean") return value ? "on" : "off";
  return String(value);
}

/** Returns the keys of `after` whose values differ from `before`. */
export function changedKeys(before: MergePatch, after: MergePatch): MergePatch {
  return Object.fromEntries(
    Object.entries(after).filter(([key, value]) => value !== (before[key] ?? null)),
  );
}

/** Returns flags of a `set` subcommand, such as `--min-iops 2000` or `--unset max_iops`. */
export function flagArgs(patch: MergePatch): string[] {
  return Object.entries(patch).flatMap(([key, value]) =>
    value === null ? ["--unset", key] : [`--${key.replaceAll("_", "-")}`, String(value)],
  );
}
