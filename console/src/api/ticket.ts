/** Addresses that the browser loads by itself, in a frame or a tab: it sends no headers of the page with them. */
import { request } from "./client";

interface Ticket {
  ticket: string;
  valid_s: number;
}

/** Returns the address of a path that can be loaded once, within 30 s. */
export async function ticketed(path: string): Promise<string> {
  const { ticket } = await request<Ticket>("POST", "/console/tickets", { path });
  return `${path}?ticket=${ticket}`;
}

/** Opens a path in a tab of its own. Has to be called during a click, since browsers block other new tabs. */
export async function openInTab(path: string, fragment: string): Promise<void> {
  const tab = window.open("", "_blank");
  if (!tab) return;
  tab.opener = null;
  try {
    tab.location.href = `${await ticketed(path)}#${fragment}`;
  } catch (error) {
    tab.close();
    throw error;
  }
}
