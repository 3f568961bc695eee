/** Time of each worker by stage, as bars and as a table. */
import { DataTable } from "../../components/DataTable";
import { STAGES, type WorkerRate } from "../../live/rates";
import { useTexts } from "../../texts/texts";
import { percent } from "../../units/units";
import { seriesColor } from "../../components/palette";
import { isDark, useSettings } from "../../shell/settings";

export function StageTable(props: { workers: WorkerRate[] }) {
  const { t, label } = useTexts();
  useSettings(); // renders again after a change of the theme
  const dark = isDark();
  return (
    <>
      {props.workers.map((worker) => (
        <div key={worker.id} className="stages">
          <span className="timeline-name">{t("chart.worker", { id: worker.id })}</span>
          <span className="stage-track" aria-hidden="true">
            {worker.stages.filter(([name]) => name !== "idle").map(([name, ppm], index) => (
              <span key={name} style={{ width: `${ppm / 10_000}%`, background: seriesColor(index, dark) }} />
            ))}
          </span>
        </div>
      ))}
      <DataTable
        label={t("stages.title")}
        rows={props.workers}
        id={(worker) => String(worker.id)}
        columns={[
          { title: t("vmq.worker"), cell: (worker) => worker.id },
          ...STAGES.map((stage) => ({
            title: label(stage),
            cell: (worker: WorkerRate) => percent(worker.stages.find(([name]) => name === stage)?.[1] ?? 0),
            isNumber: true,
          })),
        ]}
      />
    </>
  );
}
