/** State of a disk or store: its label and its text. */
import type { DiskStatus, StoreStatus } from "../api/types";
import type { Texts } from "../texts/texts";

/** Returns the state as a label and as a text: `ready`, or `ready (stale)` if the worker does not respond. */
export function storageState(object: Pick<DiskStatus | StoreStatus, "state" | "stale">, { t, label }: Texts): { state: string; text: string } {
  // `full` has another meaning for offloads and scales.
  const state = object.state === "full" ? "store-full" : object.state;
  if (!object.stale) return { state, text: label(state) };
  // A state that needs attention keeps its color.
  return { state: object.state === "ready" ? "stale" : state, text: t("storage.stale", { state: label(state) }) };
}
