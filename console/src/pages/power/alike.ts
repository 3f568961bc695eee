/** CPUs of which the same is to be said share a line. */

export interface Alike<T> {
  one: T;
  cpus: number[];
}

export function alike<T>(all: readonly T[], key: (one: T) => string, cpusOf: (one: T) => readonly number[]): Alike<T>[] {
  const found = new Map<string, Alike<T>>();
  for (const one of all) {
    const same = found.get(key(one));
    if (same) same.cpus.push(...cpusOf(one));
    else found.set(key(one), { one, cpus: [...cpusOf(one)] });
  }
  return [...found.values()];
}

/** `0-2,4`. */
export function ranges(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: [number, number][] = [];
  for (const number of sorted) {
    const last = parts.at(-1);
    if (last && last[1] + 1 === number) last[1] = number;
    else parts.push([number, number]);
  }
  return parts.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(",");
}
