/** Table of disks: guaranteed IOPS, demand, delivered IOPS, limiting factor and limits. */
import { Button } from "@patternfly/react-core";
import type { DiskStatus, QosFlowStatus } from "../../api/types";
import { useRates } from "../../live/history";
import { DataTable, type Column } from "../../components/DataTable";
import { StorageStateLabel } from "../../components/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { count, latency, percent } from "../../units/units";
import { formatLimits } from "./limits";

export function FlowTable(props: { disks: readonly DiskStatus[]; flows: readonly QosFlowStatus[]; onLimits: (disk: DiskStatus) => void }) {
  const { t, label } = useTexts();
  const rates = new Map(useRates()?.disks.map((rate) => [rate.name, rate]));
  const flows = new Map(props.flows.map((flow) => [flow.disk, flow]));
  const flowOf = (disk: DiskStatus) => flows.get(disk.config.name);
  const iopsColumn = (key: "guaranteed_iops" | "demand_iops" | "delivered_iops") => ({
    cell: (disk: DiskStatus) => {
      const flow = flowOf(disk);
      return flow ? count(flow.last_5_s[key]) : "–";
    },
    sort: (disk: DiskStatus) => flowOf(disk)?.last_5_s[key] ?? -1,
    isNumber: true,
  });
  const columns: Column<DiskStatus>[] = [
    {
      title: t("column.disk"),
      cell: (disk) => <a href={link("disks", disk.config.name)}>{disk.config.name}</a>,
      sort: (disk) => disk.config.name,
    },
    { title: t("column.store"), cell: (disk) => disk.config.store, sort: (disk) => disk.config.store },
    { title: t("column.state"), cell: (disk) => <StorageStateLabel object={disk} />, sort: (disk) => disk.state },
    { title: t("disks.guaranteed"), ...iopsColumn("guaranteed_iops") },
    { title: t("disks.demand"), ...iopsColumn("demand_iops") },
    { title: t("disks.delivered"), ...iopsColumn("delivered_iops") },
    {
      title: t("disks.latency"),
      cell: (disk) => {
        const ns = rates.get(disk.config.name)?.latencyNs;
        return ns === undefined ? "–" : <span className="nowrap">{latency(ns)}</span>;
      },
      sort: (disk) => rates.get(disk.config.name)?.latencyNs ?? -1,
      isNumber: true,
    },
    {
      title: t("disks.waits"),
      cell: (disk) => {
        const first = flowOf(disk)?.last_5_s.limited_by?.[0];
        return first ? `${label(first.factor)} ${percent(first.share_ppm)}` : "–";
      },
    },
    {
      title: t("disks.limits"),
      cell: (disk) => (
        <span className="row">
          <span>
            {formatLimits(flowOf(disk)?.limits ?? disk.config.qos)}
            {disk.config.qos_policy && <span className="faint"> ({disk.config.qos_policy})</span>}
          </span>
          <Button variant="link" isInline onClick={() => props.onLimits(disk)} aria-label={t("disks.change.of", { disk: disk.config.name })}>
            {t("action.change")}
          </Button>
        </span>
      ),
    },
  ];
  return <DataTable label={t("disks.table")} columns={columns} rows={props.disks} id={(disk) => disk.config.name} sortedBy={5} descending />;
}
