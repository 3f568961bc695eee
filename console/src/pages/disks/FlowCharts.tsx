/** What disks got over the last minutes. */
import type { QosFlowStatus } from "../../api/types";
import { flowHistory, useRing, type At } from "../../live/history";
import { Chart, type Series } from "../../parts/Chart";
import { useTexts } from "../../texts/texts";
import { iops } from "../../units/units";

function find(at: At<QosFlowStatus[]>, disk: string): QosFlowStatus | undefined {
  return at.data.find((flow) => flow.disk === disk);
}

/** What each disk of a store got. */
export function StoreChart(props: { store: string; disks: string[] }) {
  const { t } = useTexts();
  const history = useRing(flowHistory);
  const series = props.disks.map((disk): Series => ({
    label: disk,
    values: history.map((at) => find(at, disk)?.last_5_s.delivered_iops),
  }));
  return (
    <Chart
      label={t("disks.chart.store", { store: props.store })}
      timesMs={history.map((at) => at.timeMs)}
      series={series}
      format={iops}
    />
  );
}

/** What one disk was entitled to, wanted and got. */
export function DiskChart(props: { disk: string }) {
  const { t } = useTexts();
  const history = useRing(flowHistory);
  const of = (key: "guaranteed_iops" | "demand_iops" | "delivered_iops") =>
    history.map((at) => find(at, props.disk)?.last_5_s[key]);
  return (
    <Chart
      label={t("disks.chart.disk", { disk: props.disk })}
      timesMs={history.map((at) => at.timeMs)}
      series={[
        { label: t("disks.delivered"), values: of("delivered_iops"), color: 0 },
        { label: t("disks.demand"), values: of("demand_iops"), color: 1, dashed: true },
        { label: t("disks.guaranteed"), values: of("guaranteed_iops"), color: 2, dashed: true },
      ]}
      format={iops}
      height={260}
    />
  );
}
