/** Session of the console: status, login and logout. */
import { request, RequestError } from "./client";
import { sessionSecret } from "./secret";

export interface Session {
  host_name: string;
  version: string;
  logins: ("code" | "token")[];
}

/** Returns the session, or `undefined` without a session. Replaces a rejected secret with that of another tab. */
export async function readSession(): Promise<Session | undefined> {
  const secret = sessionSecret.value ?? (await sessionSecret.request());
  if (secret === undefined) return undefined;
  const session = await fetchSession();
  if (session) return session;
  sessionSecret.discard(secret);
  const otherSecret = await sessionSecret.request();
  return otherSecret === undefined || otherSecret === secret ? undefined : fetchSession();
}

async function fetchSession(): Promise<Session | undefined> {
  try {
    return await request<Session>("GET", "/console/session");
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) return undefined;
    throw error;
  }
}

/** Logs in with a one-time code, or with a secret that is a code or the token. */
export async function logIn(credential: { code: string } | { secret: string }): Promise<void> {
  const { secret } = await request<{ secret: string }>("POST", "/console/session", credential);
  sessionSecret.set(secret);
}

export async function logOut(): Promise<void> {
  try {
    await request<void>("DELETE", "/console/session");
  } finally {
    sessionSecret.discard(sessionSecret.value);
  }
}
