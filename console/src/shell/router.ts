/** Router on top of the URL fragment. */
import { useSyncExternalStore } from "react";
import { parseRoute, type Route } from "./route";

/** Returns the URL fragment of a path, such as `#/vms/web`. */
export function link(...path: string[]): string {
  return `#/${path.map(encodeURIComponent).join("/")}`;
}

export function navigate(hash: string): void {
  window.location.hash = hash;
}

/** Replaces the current history entry, so that the browser's back button skips it. */
export function replaceRoute(hash: string): void {
  window.history.replaceState(null, "", hash);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(
    (listener) => {
      window.addEventListener("hashchange", listener);
      return () => window.removeEventListener("hashchange", listener);
    },
    () => window.location.hash,
  );
  return parseRoute(hash);
}
