/** LACP's states as people write them. */

const LETTERS: readonly [bit: string, letter: string][] = [
  ["activity", "A"], ["short-timeout", "T"], ["aggregation", "G"], ["synchronization", "S"],
  ["collecting", "C"], ["distributing", "D"], ["defaulted", "F"], ["expired", "E"],
];

/** `A-GSCD--`: the bits from the lowest, `-` where one is not set. */
export function stateLetters(state: readonly string[]): string {
  return LETTERS.map(([bit, letter]) => (state.includes(bit) ? letter : "-")).join("");
}

/** Which ends are in sync. */
export function inSync(ours: readonly string[], theirs: readonly string[]): "both" | "ours" | "theirs" | "none" {
  const [our, their] = [ours.includes("synchronization"), theirs.includes("synchronization")];
  if (our && their) return "both";
  return our ? "ours" : their ? "theirs" : "none";
}
