/** The event log, as it grows. */
import { SearchInput, ToggleGroup, ToggleGroupItem } from "@patternfly/react-core";
import { useState } from "react";
import type { Severity } from "../../api/types";
import { useEvents } from "../../live/event_log";
import { command } from "../../api/commands";
import { Command } from "../../parts/Command";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { Loading } from "../../parts/States";
import { useTexts } from "../../texts/texts";
import { chosen, SEVERITIES } from "./chosen";
import { EventList } from "./EventList";

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
