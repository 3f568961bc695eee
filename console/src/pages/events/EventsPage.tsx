/** The event log, as it grows. */
import { SearchInput, ToggleGroup, ToggleGroupItem } from "@patternfly/react-core";
import { useState } from "react";
import type { Event, Severity } from "../../api/types";
import { useEvents } from "../../live/event_log";
import { command } from "../../api/commands";
import { Command } from "../../parts/Command";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { Loading } from "../../parts/States";
import { useTexts } from "../../texts/texts";
import { EventList } from "./EventList";

const SEVERITIES: readonly Severity[] = ["info", "warning", "error"];
const SHOWN = 200;

export function EventsPage(props: { query: URLSearchParams }) {
  const { t, word } = useTexts();
  const events = useEvents();
  const asked = SEVERITIES.find((one) => one === props.query.get("severity"));
  const [least, setLeast] = useState<Severity>(asked ?? "info");
  const [about, setAbout] = useState(props.query.get("about") ?? "");
  const shown = events && chosen(events, least, about);
  return (
    <PageFrame title={t("events.title")} about={t("events.about")}>
      <Section
        title={t("events.log")}
        actions={
          <div className="row">
            <ToggleGroup aria-label={t("events.severity")} isCompact>
              {SEVERITIES.map((severity) => (
                <ToggleGroupItem
                  key={severity}
                  text={t("events.from", { severity: word(severity) })}
                  isSelected={least === severity}
                  onChange={() => setLeast(severity)}
                />
              ))}
            </ToggleGroup>
            <SearchInput
              className="search"
              aria-label={t("events.search")}
              placeholder={t("events.search")}
              value={about}
              onChange={(_event, value) => setAbout(value)}
              onClear={() => setAbout("")}
            />
          </div>
        }
      >
        {shown ? <EventList events={shown} withFields /> : <Loading />}
      </Section>
      <Command text={command("event", "follow", least !== "info" && "--severity", least !== "info" && least)} />
    </PageFrame>
  );
}

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
