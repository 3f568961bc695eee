/** Where the page is, by what follows `#` in its address. */
import { useSyncExternalStore } from "react";
import { placeOf, type Place } from "./place";

export { placeOf };

/** `#/vms/web`. */
export function link(...path: string[]): string {
  return `#/${path.map(encodeURIComponent).join("/")}`;
}

export function go(hash: string): void {
  window.location.hash = hash;
}

/** Goes somewhere in place of where the page is, so that `Back` does not return there. */
export function replace(hash: string): void {
  window.history.replaceState(null, "", hash);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

export function usePlace(): Place {
  const hash = useSyncExternalStore(
    (listener) => {
      window.addEventListener("hashchange", listener);
      return () => window.removeEventListener("hashchange", listener);
    },
    () => window.location.hash,
  );
  return placeOf(hash);
}
