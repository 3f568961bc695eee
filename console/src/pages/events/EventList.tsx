/** List of events. */
import { useState } from "react";
import type { Event } from "../../api/types";
import { StateLabel } from "../../components/StateLabel";
import { useTexts } from "../../texts/texts";
import { dateTime } from "../../units/units";

export function EventList(props: { events: readonly Event[]; showFields?: boolean }) {
  const { t } = useTexts();
  if (props.events.length === 0) return <p>{t("events.none")}</p>;
  return (
    <ol className="events">
      {props.events.map((event) => <EventItem key={event.sequence} event={event} showFields={props.showFields ?? false} />)}
    </ol>
  );
}

function EventItem(props: { event: Event; showFields: boolean }) {
  const { event } = props;
  const { t } = useTexts();
  const [isOpen, setIsOpen] = useState(false);
  const fields = Object.entries(event.fields ?? {});
  return (
    <li className="event">
      <span className="event-head">
        <StateLabel state={event.severity} />
        <time className="faint nowrap" dateTime={new Date(event.time_unix_ms).toISOString()}>{dateTime(event.time_unix_ms)}</time>
        <span className="faint">{event.id}</span>
        <code>{event.subject}</code>
      </span>
      <span className="event-text">
        {event.text}
        {props.showFields && fields.length > 0 && (
          <button type="button" className="event-more" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            {t(isOpen ? "events.less" : "events.more")}
          </button>
        )}
        {isOpen && (
          <dl className="event-fields">
            {fields.map(([key, value]) => (
              <div key={key}><dt>{key}</dt><dd>{value}</dd></div>
            ))}
          </dl>
        )}
      </span>
    </li>
  );
}
