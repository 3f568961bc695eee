/** Sorts rows by a key. Numbers within texts are compared by value: `vm9` precedes `vm10`. */
export function sortedRows<T>(rows: readonly T[], sortKey: (row: T) => string | number, descending: boolean): T[] {
  const direction = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [sortKey(a), sortKey(b)];
    if (typeof x === "number" && typeof y === "number") return direction * (x - y);
    return direction * String(x).localeCompare(String(y), undefined, { numeric: true });
  });
}
