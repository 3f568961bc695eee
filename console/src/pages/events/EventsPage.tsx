/** Page "Events": the event log with filters. */
import { SearchInput, ToggleGroup, ToggleGroupItem } from "@patternfly/react-core";
import { useState } from "react";
import type { Severity } from "../../api/types";
import { useEvents } from "../../live/event_log";
import { command } from "../../api/commands";
import { Command } from "../../components/Command";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Loading } from "../../components/States";
import { useTexts } from "../../texts/texts";
import { filterEvents, SEVERITIES } from "./filter";
import { EventList } from "./EventList";

export function EventsPage(props: { query: URLSearchParams }) {
  const { t, label } = useTexts();
  const events = useEvents();
  const requestedSeverity = SEVERITIES.find((severity) => severity === props.query.get("severity"));
  const [minSeverity, setMinSeverity] = useState<Severity>(requestedSeverity ?? "info");
  const [search, setSearch] = useState(props.query.get("about") ?? "");
  const shown = events && filterEvents(events, minSeverity, search);
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
                  text={t("events.from", { severity: label(severity) })}
                  isSelected={minSeverity === severity}
                  onChange={() => setMinSeverity(severity)}
                />
              ))}
            </ToggleGroup>
            <SearchInput
              className="search"
              aria-label={t("events.search")}
              placeholder={t("events.search")}
              value={search}
              onChange={(_event, value) => setSearch(value)}
              onClear={() => setSearch("")}
            />
          </div>
        }
      >
        {shown ? <EventList events={shown} showFields /> : <Loading />}
      </Section>
      <Command text={command("event", "follow", minSeverity !== "info" && "--severity", minSeverity !== "info" && minSeverity)} />
    </PageFrame>
  );
}
