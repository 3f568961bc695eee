/** What an address says. */

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
