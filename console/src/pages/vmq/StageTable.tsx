/** Where the time of each processor goes, by stage. */
import { DataTable } from "../../parts/DataTable";
import { STAGES, type ProcessorRate } from "../../live/rates";
import { useTexts } from "../../texts/texts";
import { percent } from "../../units/units";
import { seriesColor } from "../../parts/palette";
import { isDark, useSettings } from "../../shell/settings";

export function StageTable(props: { processors: ProcessorRate[] }) {
  const { t, word } = useTexts();
  useSettings();
  const dark = isDark();
  return (
    <>
      {props.processors.map((processor) => (
        <div key={processor.id} className="stages">
          <span className="timeline-name">{t("chart.processor", { id: processor.id })}</span>
          <span className="stage-track" aria-hidden="true">
            {processor.stages.filter(([name]) => name !== "idle").map(([name, ppm], at) => (
              <span key={name} style={{ width: `${ppm / 10_000}%`, background: seriesColor(at, dark) }} />
            ))}
          </span>
        </div>
      ))}
      <DataTable
        label={t("stages.title")}
        rows={props.processors}
        id={(processor) => String(processor.id)}
        columns={[
          { title: t("vmq.processor"), cell: (processor) => processor.id },
          ...STAGES.map((stage) => ({
            title: word(stage),
            cell: (processor: ProcessorRate) => percent(processor.stages.find(([name]) => name === stage)?.[1] ?? 0),
            isNumber: true,
          })),
        ]}
      />
    </>
  );
}
