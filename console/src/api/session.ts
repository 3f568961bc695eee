/** The session between the page and the daemon. */
import { request, RequestFailed } from "./client";
import { sessionSecret } from "./secret";

export interface Session {
  host_name: string;
  version: string;
  logins: ("code" | "token")[];
}

/** The session, or nothing where there is none. A value that the daemon refuses is replaced by that of another tab. */
export async function readSession(): Promise<Session | undefined> {
  const first = sessionSecret.value ?? (await sessionSecret.request());
  if (first === undefined) return undefined;
  const session = await sessionOf();
  if (session) return session;
  sessionSecret.forget(first);
  const second = await sessionSecret.request();
  return second === undefined || second === first ? undefined : sessionOf();
}

async function sessionOf(): Promise<Session | undefined> {
  try {
    return await request<Session>("GET", "/console/session");
  } catch (error) {
    if (error instanceof RequestFailed && error.status === 401) return undefined;
    throw error;
  }
}

/** Logs in by a code, or by a secret that may be a code or the token. */
export async function logIn(by: { code: string } | { secret: string }): Promise<void> {
  const { secret } = await request<{ secret: string }>("POST", "/console/session", by);
  sessionSecret.keep(secret);
}

export async function logOut(): Promise<void> {
  try {
    await request<void>("DELETE", "/console/session");
  } finally {
    sessionSecret.forget(sessionSecret.value);
  }
}
