/** Bar for a share in parts per million, beside its value as text. Screen readers read only the text. */
export function Bar(props: { ppm: number; text: string; tone?: "plain" | "high" | "bad"; marks?: number[] }) {
  const width = Math.min(100, Math.max(0, props.ppm / 10_000));
  const tone = props.tone ?? (props.ppm > 850_000 ? "high" : "plain");
  return (
    <span className="bar">
      <span className="bar-text">{props.text}</span>
      <span className="bar-track" aria-hidden="true">
        <span className={`bar-fill bar-${tone}`} style={{ width: `${width}%` }} />
        {props.marks?.map((mark) => (
          <span key={mark} className="bar-mark" style={{ left: `${Math.min(100, mark / 10_000)}%` }} />
        ))}
      </span>
    </span>
  );
}
