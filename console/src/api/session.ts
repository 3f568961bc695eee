/** The session between the page and the daemon. */
import { request, RequestFailed } from "./client";

export interface Session {
  host_name: string;
  version: string;
  logins: ("code" | "token")[];
}

/** The session, or nothing where there is none. */
export async function readSession(): Promise<Session | undefined> {
  try {
    return await request<Session>("GET", "/console/session");
  } catch (error) {
    if (error instanceof RequestFailed && error.status === 401) return undefined;
    throw error;
  }
}

export function logIn(by: { code: string } | { token: string }): Promise<void> {
  return request<void>("POST", "/console/session", by);
}

export function logOut(): Promise<void> {
  return request<void>("DELETE", "/console/session");
}
