/** Timeline of queues. The colour of each section is that of the assigned worker. */
import type { VmqStatus } from "../../api/types";
import { useRingBuffer, vmqHistory, type Sample } from "../../live/history";
import { Chart } from "../../components/Chart";
import { seriesColor } from "../../components/palette";
import { isDark, useSettings } from "../../shell/settings";
import { useTexts } from "../../texts/texts";
import { timeOfDay } from "../../units/units";
import { queueAssignments, queuesPerWorker } from "./queue_assignments";

const ROW_HEIGHT = 18;
const MIN_SPAN_MS = 120_000;

export function QueueTimeline(props: { uplink: string }) {
  const { t } = useTexts();
  useSettings(); // renders again after a change of the theme
  const history = useRingBuffer(vmqHistory);
  const rows = queueAssignments(history, props.uplink);
  const [first, last] = [history[0]?.timeMs, history.at(-1)?.timeMs];
  if (first === undefined || last === undefined || rows.length === 0) return <p>{t("vmq.queues.none")}</p>;
  const span = Math.max(MIN_SPAN_MS, last - first);
  const x = (timeMs: number) => 100 - (100 * (last - timeMs)) / span;
  const workers = [...new Set(rows.flatMap((row) => row.assignments.map((assignment) => assignment.worker)))].sort((a, b) => a - b);
  return (
    <figure className="chart">
      <div className="timeline" role="img" aria-label={t("vmq.timeline.label", { uplink: props.uplink })}>
        {rows.map((row) => (
          <div key={row.queue} className="timeline-row">
            <span className="timeline-name">{row.queue}</span>
            <svg className="timeline-track" height={ROW_HEIGHT} width="100%" viewBox={`0 0 100 ${ROW_HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
              {row.assignments.map((assignment) => (
                <rect
                  key={assignment.fromMs}
                  x={x(assignment.fromMs)}
                  width={Math.max(0.3, x(assignment.toMs) - x(assignment.fromMs))}
                  y="3"
                  height={ROW_HEIGHT - 6}
                  fill={seriesColor(assignment.worker, isDark())}
                />
              ))}
            </svg>
          </div>
        ))}
        <div className="timeline-row">
          <span className="timeline-name" />
          <span className="timeline-axis faint"><span>{timeOfDay(last - span)}</span><span>{timeOfDay(last)}</span></span>
        </div>
      </div>
      <figcaption className="legend">
        {workers.map((worker) => (
          <span key={worker} className="legend-item">
            <span className="swatch" style={{ borderColor: seriesColor(worker, isDark()) }} aria-hidden="true" />
            {t("chart.worker", { id: worker })}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

/** Chart of the number of queues of each worker. */
export function QueueCounts(props: { uplink: string }) {
  const { t } = useTexts();
  const history: readonly Sample<VmqStatus[]>[] = useRingBuffer(vmqHistory);
  const counts = [...queuesPerWorker(history, props.uplink)].sort(([a], [b]) => a - b);
  return (
    <Chart
      label={t("vmq.counts")}
      timesMs={history.map((sample) => sample.timeMs)}
      height={170}
      format={(value) => String(Math.round(value))}
      series={counts.map(([worker, values]) => ({
        label: t("chart.worker", { id: worker }),
        values,
        color: worker,
        stepped: true,
      }))}
    />
  );
}
