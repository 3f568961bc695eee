/** Charts of the IOPS of disks over the last minutes. */
import type { QosFlowStatus } from "../../api/types";
import { flowHistory, useRingBuffer, type Sample } from "../../live/history";
import { Chart, type Series } from "../../components/Chart";
import { useTexts } from "../../texts/texts";
import { iops } from "../../units/units";

function findFlow(sample: Sample<QosFlowStatus[]>, disk: string): QosFlowStatus | undefined {
  return sample.data.find((flow) => flow.disk === disk);
}

/** Delivered IOPS of each disk of a store. */
export function StoreChart(props: { store: string; disks: string[] }) {
  const { t } = useTexts();
  const history = useRingBuffer(flowHistory);
  const series = props.disks.map((disk): Series => ({
    label: disk,
    values: history.map((sample) => findFlow(sample, disk)?.last_5_s.delivered_iops),
  }));
  return (
    <Chart
      label={t("disks.chart.store", { store: props.store })}
      timesMs={history.map((sample) => sample.timeMs)}
      series={series}
      format={iops}
    />
  );
}

/** Guaranteed IOPS, demand and delivered IOPS of a disk. */
export function DiskChart(props: { disk: string }) {
  const { t } = useTexts();
  const history = useRingBuffer(flowHistory);
  const valuesOf = (key: "guaranteed_iops" | "demand_iops" | "delivered_iops") =>
    history.map((sample) => findFlow(sample, props.disk)?.last_5_s[key]);
  return (
    <Chart
      label={t("disks.chart.disk", { disk: props.disk })}
      timesMs={history.map((sample) => sample.timeMs)}
      series={[
        { label: t("disks.delivered"), values: valuesOf("delivered_iops"), color: 0 },
        { label: t("disks.demand"), values: valuesOf("demand_iops"), color: 1, dashed: true },
        { label: t("disks.guaranteed"), values: valuesOf("guaranteed_iops"), color: 2, dashed: true },
      ]}
      format={iops}
      height={260}
    />
  );
}
