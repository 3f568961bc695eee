/** Parser of the URL fragment. */

/** Route: the page and the object that the URL fragment selects. */
export interface Route {
  /** Decoded parts of the path, such as `["vms", "web"]`. */
  path: string[];
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decodePart), query: new URLSearchParams(query) };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
