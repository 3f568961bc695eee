/** Which events are shown. */
import type { Event, Severity } from "../../api/types";

/** From the least to the most. */
export const SEVERITIES: readonly Severity[] = ["info", "warning", "error"];
const SHOWN = 200;

/** Those that matter at least so much and have all the words, newest first. */
export function chosen(events: readonly Event[], least: Severity, about: string): Event[] {
  const from = SEVERITIES.indexOf(least);
  const words = about.toLowerCase().split(/\s+/).filter(Boolean);
  return events
    .filter((event) => SEVERITIES.indexOf(event.severity) >= from)
    .filter((event) => {
      const text = `${event.id} ${event.subject} ${event.text}`.toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .slice(-SHOWN)
    .reverse();
}
