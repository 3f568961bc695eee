/** Formatting of LACP states. */

const LETTERS: readonly [bit: string, letter: string][] = [
  ["activity", "A"], ["short-timeout", "T"], ["aggregation", "G"], ["synchronization", "S"],
  ["collecting", "C"], ["distributing", "D"], ["defaulted", "F"], ["expired", "E"],
];

/** Returns the state bits as letters, lowest bit first, `-` for a clear bit, such as `A-GSCD--`. */
export function stateLetters(state: readonly string[]): string {
  return LETTERS.map(([bit, letter]) => (state.includes(bit) ? letter : "-")).join("");
}

/** Returns which ends of the link have the synchronization bit. */
export function inSync(ours: readonly string[], theirs: readonly string[]): "both" | "ours" | "theirs" | "none" {
  const [isOursInSync, isTheirsInSync] = [ours.includes("synchronization"), theirs.includes("synchronization")];
  if (isOursInSync && isTheirsInSync) return "both";
  return isOursInSync ? "ours" : isTheirsInSync ? "theirs" : "none";
}
