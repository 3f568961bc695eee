/** URLs for frames and new tabs. The browser loads them without the session header, therefore they contain a ticket. */
import { request } from "./client";

interface Ticket {
  ticket: string;
  valid_s: number;
}

/** Returns a URL of the path that can be loaded once, within 30 s. */
export async function urlWithTicket(path: string): Promise<string> {
  const { ticket } = await request<Ticket>("POST", "/console/tickets", { path });
  return `${path}?ticket=${ticket}`;
}

/** Opens a path in a new tab. Call it from a click handler, because browsers block other new tabs. */
export async function openInTab(path: string, fragment: string): Promise<void> {
  const tab = window.open("", "_blank");
  if (!tab) return;
  tab.opener = null;
  try {
    tab.location.href = `${await urlWithTicket(path)}#${fragment}`;
  } catch (error) {
    tab.close();
    throw error;
  }
}
