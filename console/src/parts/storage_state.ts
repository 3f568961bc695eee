/** State of a disk or store: its label and its text. */
import type { DiskStatus, StoreStatus } from "../api/types";
import type { Texts } from "../texts/texts";

/** Returns the state as a label and as a text: `ready`, or `ready (stale)` if the worker does not respond. */
export function storageState(of: Pick<DiskStatus | StoreStatus, "state" | "stale">, { t, word }: Texts): { state: string; text: string } {
  // `full` has another meaning for offloads and scales.
  const state = of.state === "full" ? "store-full" : of.state;
  if (!of.stale) return { state, text: word(state) };
  // A state that needs attention keeps its color.
  return { state: of.state === "ready" ? "stale" : state, text: t("storage.stale", { state: word(state) }) };
}
