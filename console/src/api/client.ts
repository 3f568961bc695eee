/** Requests to the daemon. They carry both session credentials: the browser adds the cookie, this module the secret. */
import { sessionSecret } from "./secret";
import type { ApiError, ErrorBody, Operation, Plan } from "./types";

/** Error response of the daemon, or a request without a response (status 0). */
export class RequestError extends Error {
  constructor(
    readonly status: number,
    readonly errors: ApiError[],
  ) {
    super(errors[0]?.message ?? `HTTP ${status}`);
  }

  /** True if the daemon did not respond, for example during a restart. */
  get isUnreachable(): boolean {
    return this.status === 0;
  }
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

let sessionEndHandler: () => void = () => undefined;

/** Sets the handler that is called when the API rejects a request because the session has ended. */
export function onSessionEnd(handler: () => void): void {
  sessionEndHandler = handler;
}

/** Sends a request and returns its JSON response; `undefined` for a response without content. Throws `RequestError`. */
export async function request<T>(method: Method, path: string, body?: unknown): Promise<T> {
  const response = await send(method, path, body);
  if (response.status === 401 && path.startsWith("/1.0")) sessionEndHandler();
  if (!response.ok) throw new RequestError(response.status, await readErrors(response));
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

/** Options of `send`. `accept` is the media type of the response (default: JSON). */
export interface SendOptions {
  accept?: string;
  signal?: AbortSignal;
}

/** Sends a request with the session credentials. Throws `RequestError` with status 0 if the daemon does not respond. */
export async function send(method: Method, path: string, body?: unknown, options: SendOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: options.accept ?? "application/json" };
  if (sessionSecret.value !== undefined) headers["X-Suimon-Session"] = sessionSecret.value;
  if (method !== "GET") headers["X-Suimon-Console"] = "1";
  if (body !== undefined) {
    headers["Content-Type"] = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  }
  try {
    return await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      signal: options.signal,
    });
  } catch {
    throw new RequestError(0, []);
  }
}

async function readErrors(response: Response): Promise<ApiError[]> {
  try {
    const body = (await response.json()) as ErrorBody;
    if (Array.isArray(body.errors)) return body.errors;
  } catch {
    // The response is not an error body of the API, so that only its status is known.
  }
  return [];
}

/** Request that changes the host. */
export interface ChangeRequest {
  method: Method;
  path: string;
  body?: unknown;
}

function withFlag(path: string, flag: string): string {
  return `${path}${path.includes("?") ? "&" : "?"}${flag}=true`;
}

/** Returns the steps of a change without making it. */
export function dryRun(change: ChangeRequest, force: boolean): Promise<Plan> {
  const path = withFlag(change.path, "dry_run");
  return request<Plan>(change.method, force ? withFlag(path, "force") : path, change.body);
}

/**
 * Makes a change and waits for its operation to end. Calls `onProgress` about once a second with the state of the
 * operation. Throws `RequestError` if the operation fails or another client cancels it.
 */
export async function perform(
  change: ChangeRequest,
  force: boolean,
  onProgress: (operation: Operation) => void = () => undefined,
): Promise<Operation | undefined> {
  const path = force ? withFlag(change.path, "force") : change.path;
  let operation = await request<Operation | undefined>(change.method, path, change.body);
  if (!operation || typeof operation.id !== "number") return undefined;
  while (operation.state === "running") {
    onProgress(operation);
    operation = await request<Operation>("GET", `/1.0/operations/${operation.id}/wait?timeout_s=1`);
  }
  onProgress(operation);
  // For a DELETE of an operation, the state `cancelled` is success. For any other change another client cancelled it.
  const wasCancelled = operation.state === "cancelled" && change.method !== "DELETE";
  if (operation.state === "failed" || wasCancelled) {
    throw new RequestError(200, operation.error ? [operation.error] : []);
  }
  return operation;
}
