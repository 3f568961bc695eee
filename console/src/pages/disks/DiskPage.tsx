/** Page of a disk: delivered IOPS, limiting factors, properties and request counters. */
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { DiskStatus, QosFlowStatus } from "../../api/types";
import { useTopic } from "../../live/hooks";
import { Bar } from "../../components/Bar";
import { ChangeDialog } from "../../components/ChangeDialog";
import { DataTable } from "../../components/DataTable";
import { PropertyList } from "../../components/PropertyList";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Empty, WhenLoaded } from "../../components/States";
import { StorageStateLabel } from "../../components/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { bytes, count, latency, percent, size } from "../../units/units";
import { DiskChart } from "./FlowCharts";
import { createImage, isImageMissing } from "./images";
import { formatLimits } from "./limits";
import { LimitsDialog } from "./LimitsDialog";

export function DiskPage(props: { name: string }) {
  const { t } = useTexts();
  const disks = useTopic("disks");
  const flows = useTopic("qos/flows");
  const policies = useTopic("qos-policies");
  const [changing, setChanging] = useState(false);
  const [creating, setCreating] = useState(false);
  const disk = disks.data?.find((disk) => disk.config.name === props.name);
  const flow = flows.data?.find((flow) => flow.disk === props.name);
  return (
    <PageFrame
      title={t("disk.title", { disk: props.name })}
      about={<a href={link("disks")}>{t("disk.all")}</a>}
      actions={disk && (
        <>
          {isImageMissing(disk) && <Button variant="secondary" onClick={() => setCreating(true)}>{t("disk.create")}</Button>}{" "}
          <Button variant="primary" onClick={() => setChanging(true)}>{t("disk.change")}</Button>
        </>
      )}
    >
      <WhenLoaded topics={[disks, flows]}>
        {() => disk ? (
          <>
            <Section title={t("disk.delivery")}><DiskChart disk={props.name} /></Section>
            <div className="grid-wide">
              <Section title={t("disk.factors")}><LimitingFactors flow={flow} /></Section>
              <Section title={t("disk.properties")}><Properties disk={disk} flow={flow} /></Section>
            </div>
            <Section title={t("disk.requests")}><Requests disk={disk} /></Section>
          </>
        ) : <Empty title={t("disk.notfound", { disk: props.name })} />}
      </WhenLoaded>
      {creating && disk && (
        <ChangeDialog
          title={t("disk.create.title", { disk: props.name })}
          about={t("disk.create.about", { file: disk.file })}
          change={createImage(disk)}
          action={t("disk.create")}
          danger={t("disk.create.danger")}
          onClose={() => setCreating(false)}
        />
      )}
      {changing && disk && <LimitsDialog disk={disk} policies={policies.data ?? []} onClose={() => setChanging(false)} />}
    </PageFrame>
  );
}

/** Shares of the time by limiting factor, first limiting factor first. */
function LimitingFactors(props: { flow: QosFlowStatus | undefined }) {
  const { t, label } = useTexts();
  const shares = props.flow?.last_5_s.limited_by ?? [];
  if (shares.length === 0) return <p>{t("disk.factors.none")}</p>;
  return (
    <div role="group" aria-label={t("disk.factors")}>
      <PropertyList columns={1} items={shares.map(({ factor, share_ppm }) => [label(factor), <Bar key={factor} ppm={share_ppm} tone="plain" text={percent(share_ppm)} />])} />
      <p className="faint spaced">{t("disk.factors.about")}</p>
    </div>
  );
}

function Properties(props: { disk: DiskStatus; flow: QosFlowStatus | undefined }) {
  const { t, label } = useTexts();
  const { disk, flow } = props;
  return (
    <PropertyList
      items={[
        [t("column.state"), <StorageStateLabel key="state" object={disk} />],
        disk.reason ? [t("column.reason"), disk.reason] : undefined,
        disk.stale ? [t("storage.values"), t("disk.stale")] : undefined,
        [t("disks.limits"), `${formatLimits(flow?.limits ?? disk.config.qos)}${flow ? ` (${flow.holder})` : ""}`],
        [t("column.store"), disk.config.store],
        [t("disk.format"), [disk.config.format, label(disk.config.kind)].filter((part) => part !== "–").join(", ")],
        [t("disk.size"), disk.size_bytes == null ? "–" : size(disk.size_bytes)],
        [t("disk.allocated"), disk.allocated_bytes == null ? "–" : size(disk.allocated_bytes)],
        [t("disk.file"), <code key="file">{disk.file}</code>],
        [t("disk.worker"), disk.worker ?? "–"],
        [t("disk.vm"), <Vm key="vm" disk={disk} />],
        [t("disk.nbd"), disk.nbd ? String(disk.nbd.clients) : "–"],
        flow ? [t("disk.queue"), t("disk.queue.value", { waiting: flow.queued, device: flow.in_flight })] : undefined,
      ]}
    />
  );
}

/** VM of the disk, or the connection state of its vhost-user socket. */
function Vm(props: { disk: DiskStatus }) {
  const { t } = useTexts();
  const vms = useTopic("vms").data ?? [];
  const { config, vhost_user: vhostUser } = props.disk;
  const vm = vms.find((vm) => vm.config.disks?.includes(config.name));
  if (vm) return <a href={link("vms", vm.config.name)}>{vm.config.name}</a>;
  return <>{vhostUser ? t(vhostUser.connected ? "disk.vm.connected" : "disk.vm.absent") : "–"}</>;
}

const REQUEST_KINDS = ["reads", "writes", "flushes", "discards"] as const;

function Requests(props: { disk: DiskStatus }) {
  const { t } = useTexts();
  const rows = REQUEST_KINDS.map((kind) => ({ kind, counters: props.disk.counters[kind] }));
  return (
    <DataTable
      label={t("disk.requests")}
      rows={rows}
      id={(row) => row.kind}
      columns={[
        { title: t("column.kind"), cell: (row) => t(`disk.${row.kind}`) },
        { title: t("disk.count"), cell: (row) => count(row.counters.requests), isNumber: true },
        { title: t("disk.bytes"), cell: (row) => bytes(row.counters.bytes), isNumber: true },
        { title: t("disk.errors"), cell: (row) => count(row.counters.errors), isNumber: true },
        { title: t("disk.p50"), cell: (row) => latency(row.counters.latency_ns_p50), isNumber: true },
        { title: t("disk.p99"), cell: (row) => latency(row.counters.latency_ns_p99), isNumber: true },
        { title: t("disk.max"), cell: (row) => latency(row.counters.latency_ns_max), isNumber: true },
      ]}
    />
  );
}
