/** Diagram of a switch with the current traffic. */
import type { Box, Diagram } from "./switch_diagram";
import { useTexts } from "../../texts/texts";
import { bitRate, percent } from "../../units/units";

const WIDTH = 880;
/** Left edge and width of each column. */
const COLUMNS = [[0, 170], [250, 130], [460, 150], [700, 180]] as const;
const HEADING_HEIGHT = 28;

export function SwitchDiagram(props: { diagram: Diagram; title: string }) {
  const { t } = useTexts();
  const { diagram } = props;
  const boxes = new Map(diagram.boxes.map((box) => [box.id, box]));
  const maxBps = Math.max(1, ...diagram.edges.map((edge) => edge.bps));
  const headings = [t("path.guests"), t("path.queues"), t("path.workers"), t("path.uplinks")];
  return (
    <div className="diagram-frame" tabIndex={0} role="region" aria-label={props.title}>
      <svg className="diagram" viewBox={`0 0 ${WIDTH} ${diagram.height + HEADING_HEIGHT + 4}`} role="img" aria-label={summary(diagram, props.title)}>
        {headings.map((heading, index) => (
          <text key={heading} className="diagram-heading" x={COLUMNS[index]?.[0]} y="14">{heading}</text>
        ))}
        <g transform={`translate(0 ${HEADING_HEIGHT})`}>
          {diagram.edges.map((edge) => {
            const [from, to] = [boxes.get(edge.from), boxes.get(edge.to)];
            if (!from || !to) return null;
            return (
              <path
                key={`${edge.from} ${edge.to}`}
                className={edge.bps > 0 ? "diagram-edge diagram-edge-active" : "diagram-edge"}
                d={curve(from, to)}
                strokeWidth={edge.bps > 0 ? 1.5 + 8 * Math.sqrt(edge.bps / maxBps) : 1}
              />
            );
          })}
          {diagram.boxes.map((box) => <DiagramBox key={box.id} box={box} />)}
        </g>
      </svg>
    </div>
  );
}

function DiagramBox(props: { box: Box }) {
  const { t, label } = useTexts();
  const { box } = props;
  const [x, width] = COLUMNS[box.column];
  const load = box.loadPpm;
  const title = box.column === 2 ? t("chart.worker", { id: box.title }) : box.title;
  const isCompact = box.height < 40;
  const compactRate = isCompact && box.bps !== undefined ? bitRate(box.bps) : undefined;
  const details = [box.detail, !isCompact && box.bps !== undefined && bitRate(box.bps), box.column === 2 && load !== undefined && percent(load), box.state && box.state !== "up" && label(box.state)]
    .filter(Boolean)
    .join(" · ");
  const center = box.y + box.height / 2;
  return (
    <g className={`diagram-box diagram-${box.state ?? "plain"}`}>
      <rect x={x} y={box.y} width={width} height={box.height} rx="6" />
      {load !== undefined && (
        <rect className={load > 850_000 ? "diagram-load diagram-load-high" : "diagram-load"} x={x} y={box.y + box.height - 5} width={(width * Math.min(1e6, load)) / 1e6} height="5" rx="2" />
      )}
      <text x={x + 10} y={isCompact ? center + 4 : center - 4} className="diagram-title">{title}</text>
      {compactRate && <text x={x + width - 8} y={center + 4} className="diagram-detail" textAnchor="end">{compactRate}</text>}
      {!isCompact && <text x={x + 10} y={center + 13} className="diagram-detail">{details}</text>}
    </g>
  );
}

function curve(from: Box, to: Box): string {
  const [fx, fw] = COLUMNS[from.column];
  const [tx] = COLUMNS[to.column];
  const [x1, x2] = [fx + fw, tx];
  const [y1, y2] = [from.y + from.height / 2, to.y + to.height / 2];
  const bend = (x2 - x1) / 2;
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

function summary(diagram: Diagram, title: string): string {
  const edges = diagram.edges.filter((edge) => edge.bps > 0).map((edge) => `${edge.from} → ${edge.to} ${bitRate(edge.bps)}`);
  return `${title}: ${edges.join(", ")}`;
}
