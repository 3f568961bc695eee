/** Line chart over the last minutes. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { isDark, useSettings } from "../shell/settings";
import { timeOfDay, blankRepeats } from "../units/units";
import { seriesColor } from "./palette";

export interface Series {
  label: string;
  /** One value per time; undefined or null where there is no value. */
  values: (number | null | undefined)[];
  /** Index in the colour palette; default: position of the series. */
  color?: number;
  /** For values that are not measured, such as demand or a guarantee. */
  dashed?: boolean;
  /** Draws steps instead of slopes. */
  stepped?: boolean;
}

export interface ChartProps {
  /** Title for screen readers. */
  label: string;
  timesMs: number[];
  series: Series[];
  /** Formats a value with its unit. */
  format: (value: number) => string;
  height?: number;
  max?: number;
}

export function Chart(props: ChartProps) {
  const container = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const settings = useSettings();
  const dark = isDark();
  const chartKey = JSON.stringify([props.series.map(({ label, color, dashed, stepped }) => [label, color, dashed, stepped]), props.max, props.height]);
  const data = [
    props.timesMs.map((time) => time / 1000),
    ...props.series.map((series) => series.values.map((value) => value ?? null)),
  ] as uPlot.AlignedData;
  const dataRef = useRef(data);
  dataRef.current = data;
  const propsRef = useRef(props);
  propsRef.current = props;

  useEffect(() => {
    const element = container.current;
    if (!element) return;
    const chart = new uPlot(options(() => propsRef.current, element.clientWidth, dark), dataRef.current, element);
    plot.current = chart;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) chart.setSize({ width: element.clientWidth, height: props.height ?? 220 });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
      plot.current = undefined;
    };
    // Other series or options require a new chart; new data is set by the effect below.
    // eslint-disable-next-line
  }, [chartKey, dark, settings.language]);

  useEffect(() => plot.current?.setData(data));

  return (
    <figure className="chart">
      <div ref={container} role="img" aria-label={summary(props)} />
      <figcaption className="legend">
        {props.series.map((series, index) => (
          <span key={series.label} className="legend-item">
            <span
              className={series.dashed ? "swatch swatch-dashed" : "swatch"}
              style={{ borderColor: seriesColor(series.color ?? index, dark) }}
              aria-hidden="true"
            />
            {series.label}
            <strong>{formatLast(series, props.format)}</strong>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

/** Minimum length of the time axis in seconds. */
const MIN_SPAN_S = 120;

function timeSpanS(timesMs: number[]): number {
  return ((timesMs.at(-1) ?? 0) - (timesMs[0] ?? 0)) / 1000;
}

/** Width of the axis in pixels, for its longest label. */
function axisWidth(plot: uPlot, values: string[] | null): number {
  const longest = Math.max(0, ...(values ?? []).map((value) => plot.ctx.measureText(value).width));
  return 18 + Math.ceil(longest / devicePixelRatio);
}

function formatLast(series: Series, format: (value: number) => string): string {
  const value = series.values.at(-1);
  return value === null || value === undefined ? "–" : format(value);
}

function summary(props: ChartProps): string {
  const latest = props.series.map((series) => `${series.label} ${formatLast(series, props.format)}`);
  return `${props.label}: ${latest.join(", ")}`;
}

function options(currentProps: () => ChartProps, width: number, dark: boolean): uPlot.Options {
  const props = currentProps();
  const textColor = dark ? "#c7c7c7" : "#4d4d4d";
  const grid = dark ? "rgba(255,255,255,0.12)" : "rgba(0,0,0,0.09)";
  const axis = { stroke: textColor, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  return {
    width: Math.max(120, width),
    height: props.height ?? 220,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: true, range: (_plot, _low, high) => [high - Math.max(MIN_SPAN_S, timeSpanS(currentProps().timesMs)), high] },
      y: { range: (_plot, _low, high) => [0, props.max ?? Math.max(1, (high || 1) * 1.08)] },
    },
    axes: [
      { ...axis, space: 80, values: (_plot, times) => times.map((time) => timeOfDay(time * 1000)) },
      { ...axis, size: (plot, values) => axisWidth(plot, values), values: (_plot, values) => blankRepeats(values.map((value) => currentProps().format(value))) },
    ],
    series: [
      {},
      ...props.series.map((series, index): uPlot.Series => ({
        label: series.label,
        stroke: seriesColor(series.color ?? index, dark),
        width: 1.75,
        dash: series.dashed ? [6, 4] : undefined,
        paths: series.stepped ? uPlot.paths.stepped?.({ align: 1 }) : undefined,
        points: { show: false },
        spanGaps: false,
      })),
    ],
  };
}
