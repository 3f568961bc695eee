/** Rows by what they are sorted by: numbers as numbers, names as people count. */
export function sortedRows<T>(rows: readonly T[], by: (row: T) => string | number, descending: boolean): T[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [by(a), by(b)];
    if (typeof x === "number" && typeof y === "number") return sign * (x - y);
    return sign * String(x).localeCompare(String(y), undefined, { numeric: true });
  });
}
