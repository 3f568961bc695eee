/** Events, one in a line. */
import { useState } from "react";
import type { Event } from "../../api/types";
import { StateLabel } from "../../parts/StateLabel";
import { useTexts } from "../../texts/texts";
import { moment } from "../../units/units";

export function EventList(props: { events: readonly Event[]; withFields?: boolean }) {
  const { t } = useTexts();
  if (props.events.length === 0) return <p>{t("events.none")}</p>;
  return (
    <ol className="events">
      {props.events.map((event) => <Line key={event.sequence} event={event} withFields={props.withFields ?? false} />)}
    </ol>
  );
}

function Line(props: { event: Event; withFields: boolean }) {
  const { event } = props;
  const { t } = useTexts();
  const [open, setOpen] = useState(false);
  const fields = Object.entries(event.fields ?? {});
  return (
    <li className="event">
      <span className="event-head">
        <StateLabel state={event.severity} />
        <time className="faint nowrap" dateTime={new Date(event.time_unix_ms).toISOString()}>{moment(event.time_unix_ms)}</time>
        <span className="faint">{event.id}</span>
        <code>{event.subject}</code>
      </span>
      <span className="event-text">
        {event.text}
        {props.withFields && fields.length > 0 && (
          <button type="button" className="event-more" aria-expanded={open} onClick={() => setOpen(!open)}>
            {t(open ? "events.less" : "events.more")}
          </button>
        )}
        {open && (
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
