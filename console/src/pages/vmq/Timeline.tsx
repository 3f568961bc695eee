/** Queues over time, each in a line with the colour of the worker that had it. */
import type { VmqStatus } from "../../api/types";
import { useRing, vmqHistory, type At } from "../../live/history";
import { Chart } from "../../parts/Chart";
import { seriesColor } from "../../parts/palette";
import { isDark, useSettings } from "../../shell/settings";
import { useTexts } from "../../texts/texts";
import { clock } from "../../units/units";
import { queueLines, queuesPerWorker } from "./queue_lines";

const ROW = 18;
const SHOWN_MS = 120_000;

export function QueueTimeline(props: { uplink: string }) {
  const { t } = useTexts();
  useSettings();
  const history = useRing(vmqHistory);
  const lines = queueLines(history, props.uplink);
  const [first, last] = [history[0]?.timeMs, history.at(-1)?.timeMs];
  if (first === undefined || last === undefined || lines.length === 0) return <p>{t("vmq.noqueues")}</p>;
  const span = Math.max(SHOWN_MS, last - first);
  const x = (timeMs: number) => 100 - (100 * (last - timeMs)) / span;
  const workers = [...new Set(lines.flatMap((line) => line.stretches.map((stretch) => stretch.worker)))].sort((a, b) => a - b);
  return (
    <figure className="chart">
      <div className="timeline" role="img" aria-label={t("vmq.timeline.label", { uplink: props.uplink })}>
        {lines.map((line) => (
          <div key={line.queue} className="timeline-row">
            <span className="timeline-name">{line.queue}</span>
            <svg className="timeline-track" height={ROW} width="100%" viewBox={`0 0 100 ${ROW}`} preserveAspectRatio="none" aria-hidden="true">
              {line.stretches.map((stretch) => (
                <rect
                  key={stretch.fromMs}
                  x={x(stretch.fromMs)}
                  width={Math.max(0.3, x(stretch.toMs) - x(stretch.fromMs))}
                  y="3"
                  height={ROW - 6}
                  fill={seriesColor(stretch.worker, isDark())}
                />
              ))}
            </svg>
          </div>
        ))}
        <div className="timeline-row">
          <span className="timeline-name" />
          <span className="timeline-axis faint"><span>{clock(last - span)}</span><span>{clock(last)}</span></span>
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

/** How many queues each worker had over time. */
export function QueueCounts(props: { uplink: string }) {
  const { t } = useTexts();
  const history: readonly At<VmqStatus[]>[] = useRing(vmqHistory);
  const counts = [...queuesPerWorker(history, props.uplink)].sort(([a], [b]) => a - b);
  return (
    <Chart
      label={t("vmq.counts")}
      timesMs={history.map((at) => at.timeMs)}
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
