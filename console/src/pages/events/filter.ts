/** Filter of the event log. */
import type { Event, Severity } from "../../api/types";

/** Severities in ascending order. */
export const SEVERITIES: readonly Severity[] = ["info", "warning", "error"];
const MAX_SHOWN = 200;

/** Returns the newest events with at least the severity and all words of the search text, newest first. */
export function filterEvents(events: readonly Event[], minSeverity: Severity, search: string): Event[] {
  const minIndex = SEVERITIES.indexOf(minSeverity);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return events
    .filter((event) => SEVERITIES.indexOf(event.severity) >= minIndex)
    .filter((event) => {
      const text = `${event.id} ${event.subject} ${event.text}`.toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .slice(-MAX_SHOWN)
    .reverse();
}
