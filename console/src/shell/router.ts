/** Where the page is, by what follows `#` in its address. */
import { useSyncExternalStore } from "react";

export interface Place {
  /** Parts of the path, such as `["vms", "web"]`. */
  path: string[];
  query: URLSearchParams;
}

export function placeOf(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

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
