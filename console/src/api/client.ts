/** Requests to the daemon, with both values of the session: the browser sends the cookie, the page the secret. */
import { sessionSecret } from "./secret";
import type { ApiError, ErrorBody, Operation, Plan } from "./types";

/** What the daemon refuses, with what to do about it; or that it does not answer. */
export class RequestFailed extends Error {
  constructor(
    readonly status: number,
    readonly errors: ApiError[],
  ) {
    super(errors[0]?.message ?? `HTTP ${status}`);
  }

  /** Whether there is no answer at all, as when the daemon is being restarted. */
  get isUnreachable(): boolean {
    return this.status === 0;
  }
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

let whenSessionEnds: () => void = () => undefined;

/** What is called when a request finds that the session is over. */
export function onSessionEnd(handler: () => void): void {
  whenSessionEnds = handler;
}

/** Sends a request and reads its JSON answer; `undefined` where there is none. */
export async function request<T>(method: Method, path: string, body?: unknown): Promise<T> {
  const response = await send(method, path, body);
  if (response.status === 401 && path.startsWith("/1.0")) whenSessionEnds();
  if (!response.ok) throw new RequestFailed(response.status, await errorsOf(response));
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

/** What differs from a request for JSON. */
export interface SendOptions {
  accept?: string;
  signal?: AbortSignal;
}

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
    throw new RequestFailed(0, []);
  }
}

async function errorsOf(response: Response): Promise<ApiError[]> {
  try {
    const body = (await response.json()) as ErrorBody;
    if (Array.isArray(body.errors)) return body.errors;
  } catch {
    // An answer that is not the API's own says no more than its status.
  }
  return [];
}

/** What is asked to be different. */
export interface ChangeRequest {
  method: Method;
  path: string;
  body?: unknown;
}

function withQuery(path: string, name: string): string {
  return `${path}${path.includes("?") ? "&" : "?"}${name}=true`;
}

/** What a change would do, step by step. */
export function dryRun(change: ChangeRequest, force: boolean): Promise<Plan> {
  const path = withQuery(change.path, "dry_run");
  return request<Plan>(change.method, force ? withQuery(path, "force") : path, change.body);
}

/** Makes a change and waits until it is done; `watch` hears how far it is. */
export async function perform(
  change: ChangeRequest,
  force: boolean,
  watch: (operation: Operation) => void = () => undefined,
): Promise<Operation | undefined> {
  const path = force ? withQuery(change.path, "force") : change.path;
  let operation = await request<Operation | undefined>(change.method, path, change.body);
  if (!operation || typeof operation.id !== "number") return undefined;
  while (operation.state === "running") {
    watch(operation);
    operation = await request<Operation>("GET", `/1.0/operations/${operation.id}/wait?timeout_s=1`);
  }
  watch(operation);
  // Whoever cancels an operation is told so by its end; who asked for it did not get it.
  const isAsCancelled = operation.state === "cancelled" && change.method !== "DELETE";
  if (operation.state === "failed" || isAsCancelled) {
    throw new RequestFailed(200, operation.error ? [operation.error] : []);
  }
  return operation;
}
