/** Lines over the last minutes. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { isDark, useSettings } from "../shell/settings";
import { clock, distinct } from "../units/units";
import { seriesColor } from "./palette";

export interface Series {
  label: string;
  /** One value for each time; nothing where nothing is known. */
  values: (number | null | undefined)[];
  /** Which colour of the palette; by its place if absent. */
  color?: number;
  /** What is wanted or promised stands beside what is so. */
  dashed?: boolean;
  /** Moves only in steps. */
  stepped?: boolean;
}

export interface ChartProps {
  /** Says what the chart shows, for who does not see it. */
  label: string;
  timesMs: number[];
  series: Series[];
  /** A value with its unit. */
  format: (value: number) => string;
  height?: number;
  max?: number;
}

export function Chart(props: ChartProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const settings = useSettings();
  const dark = isDark();
  const shape = JSON.stringify([props.series.map(({ label, color, dashed, stepped }) => [label, color, dashed, stepped]), props.max, props.height]);
  const data = [
    props.timesMs.map((time) => time / 1000),
    ...props.series.map((series) => series.values.map((value) => value ?? null)),
  ] as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;
  const current = useRef(props);
  current.current = props;

  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const made = new uPlot(options(() => current.current, element.clientWidth, dark), latest.current, element);
    plot.current = made;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height: props.height ?? 220 });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
    // The plot is made anew when what it shows has another shape; data alone goes in below.
    // eslint-disable-next-line
  }, [shape, dark, settings.language]);

  useEffect(() => plot.current?.setData(data));

  return (
    <figure className="chart">
      <div ref={frame} role="img" aria-label={summary(props)} />
      <figcaption className="legend">
        {props.series.map((series, at) => (
          <span key={series.label} className="legend-item">
            <span
              className={series.dashed ? "swatch swatch-dashed" : "swatch"}
              style={{ borderColor: seriesColor(series.color ?? at, dark) }}
              aria-hidden="true"
            />
            {series.label}
            <strong>{lastOf(series, props.format)}</strong>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

/** Seconds that are shown at least, so that a young chart does not look like a long story. */
const SHOWN_S = 120;

function spanOf(timesMs: number[]): number {
  return ((timesMs.at(-1) ?? 0) - (timesMs[0] ?? 0)) / 1000;
}

/** Room for the longest number on the axis. */
function axisWidth(plot: uPlot, values: string[] | null): number {
  const longest = Math.max(0, ...(values ?? []).map((value) => plot.ctx.measureText(value).width));
  return 18 + Math.ceil(longest / devicePixelRatio);
}

function lastOf(series: Series, format: (value: number) => string): string {
  const value = series.values.at(-1);
  return value === null || value === undefined ? "–" : format(value);
}

function summary(props: ChartProps): string {
  const now = props.series.map((series) => `${series.label} ${lastOf(series, props.format)}`);
  return `${props.label}: ${now.join(", ")}`;
}

function options(of: () => ChartProps, width: number, dark: boolean): uPlot.Options {
  const props = of();
  const ink = dark ? "#c7c7c7" : "#4d4d4d";
  const grid = dark ? "rgba(255,255,255,0.12)" : "rgba(0,0,0,0.09)";
  const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  return {
    width: Math.max(120, width),
    height: props.height ?? 220,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: true, range: (_plot, _low, high) => [high - Math.max(SHOWN_S, spanOf(of().timesMs)), high] },
      y: { range: (_plot, _low, high) => [0, props.max ?? Math.max(1, (high || 1) * 1.08)] },
    },
    axes: [
      { ...axis, space: 80, values: (_plot, times) => times.map((time) => clock(time * 1000)) },
      { ...axis, size: (plot, values) => axisWidth(plot, values), values: (_plot, values) => distinct(values.map((value) => of().format(value))) },
    ],
    series: [
      {},
      ...props.series.map((series, at): uPlot.Series => ({
        label: series.label,
        stroke: seriesColor(series.color ?? at, dark),
        width: 1.75,
        dash: series.dashed ? [6, 4] : undefined,
        paths: series.stepped ? uPlot.paths.stepped?.({ align: 1 }) : undefined,
        points: { show: false },
        spanGaps: false,
      })),
    ],
  };
}
