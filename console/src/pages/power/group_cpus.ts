/** Groups CPUs with equal properties for tables. */

export interface CpuGroup<T> {
  item: T;
  cpus: number[];
}

/** Groups items with equal keys. Each group has the first item and the CPUs of all its items. */
export function groupCpus<T>(items: readonly T[], key: (item: T) => string, cpusOf: (item: T) => readonly number[]): CpuGroup<T>[] {
  const groups = new Map<string, CpuGroup<T>>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.cpus.push(...cpusOf(item));
    else groups.set(key(item), { item, cpus: [...cpusOf(item)] });
  }
  return [...groups.values()];
}

/** Formats numbers as ranges, such as `0-2,4`. */
export function formatRanges(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const ranges: [number, number][] = [];
  for (const number of sorted) {
    const last = ranges.at(-1);
    if (last && last[1] + 1 === number) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(",");
}
