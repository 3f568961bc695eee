/** The way of frames on one switch, with what flows now. */
import type { Box, Picture } from "./path";
import { useTexts } from "../../texts/texts";
import { bitRate, percent } from "../../units/units";

const WIDTH = 880;
/** Left edge and width of each column. */
const COLUMNS = [[0, 170], [250, 130], [460, 150], [700, 180]] as const;
const HEAD = 28;

export function PathPicture(props: { picture: Picture; title: string }) {
  const { t } = useTexts();
  const { picture } = props;
  const boxes = new Map(picture.boxes.map((box) => [box.id, box]));
  const most = Math.max(1, ...picture.lines.map((line) => line.bps));
  const heads = [t("path.guests"), t("path.queues"), t("path.workers"), t("path.uplinks")];
  return (
    <div className="path-frame" tabIndex={0} role="region" aria-label={props.title}>
      <svg className="path" viewBox={`0 0 ${WIDTH} ${picture.height + HEAD + 4}`} role="img" aria-label={summary(picture, props.title)}>
        {heads.map((head, at) => (
          <text key={head} className="path-head" x={COLUMNS[at]?.[0]} y="14">{head}</text>
        ))}
        <g transform={`translate(0 ${HEAD})`}>
          {picture.lines.map((line) => {
            const [from, to] = [boxes.get(line.from), boxes.get(line.to)];
            if (!from || !to) return null;
            return (
              <path
                key={`${line.from} ${line.to}`}
                className={line.bps > 0 ? "path-line path-flows" : "path-line"}
                d={curve(from, to)}
                strokeWidth={line.bps > 0 ? 1.5 + 8 * Math.sqrt(line.bps / most) : 1}
              />
            );
          })}
          {picture.boxes.map((box) => <BoxOf key={box.id} box={box} />)}
        </g>
      </svg>
    </div>
  );
}

function BoxOf(props: { box: Box }) {
  const { t, word } = useTexts();
  const { box } = props;
  const [x, width] = COLUMNS[box.column];
  const load = box.loadPpm;
  const title = box.column === 2 ? t("chart.worker", { id: box.title }) : box.title;
  const isSmall = box.height < 40;
  const right = isSmall && box.bps !== undefined ? bitRate(box.bps) : undefined;
  const below = [box.about, !isSmall && box.bps !== undefined && bitRate(box.bps), box.column === 2 && load !== undefined && percent(load), box.state && box.state !== "up" && word(box.state)]
    .filter(Boolean)
    .join(" · ");
  const middle = box.y + box.height / 2;
  return (
    <g className={`path-box path-${box.state ?? "plain"}`}>
      <rect x={x} y={box.y} width={width} height={box.height} rx="6" />
      {load !== undefined && (
        <rect className={load > 850_000 ? "path-load path-load-high" : "path-load"} x={x} y={box.y + box.height - 5} width={(width * Math.min(1e6, load)) / 1e6} height="5" rx="2" />
      )}
      <text x={x + 10} y={isSmall ? middle + 4 : middle - 4} className="path-title">{title}</text>
      {right && <text x={x + width - 8} y={middle + 4} className="path-about" textAnchor="end">{right}</text>}
      {!isSmall && <text x={x + 10} y={middle + 13} className="path-about">{below}</text>}
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

function summary(picture: Picture, title: string): string {
  const lines = picture.lines.filter((line) => line.bps > 0).map((line) => `${line.from} → ${line.to} ${bitRate(line.bps)}`);
  return `${title}: ${lines.join(", ")}`;
}
