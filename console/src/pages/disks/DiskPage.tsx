/** One disk: what it gets over time, what its requests wait for, and what it is. */
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { DiskStatus, QosFlowStatus } from "../../api/types";
import { useTopic } from "../../live/hooks";
import { Bar } from "../../parts/Bar";
import { ChangeDialog } from "../../parts/ChangeDialog";
import { DataTable } from "../../parts/DataTable";
import { Facts } from "../../parts/Facts";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { Empty, WhenHeard } from "../../parts/States";
import { StorageStateLabel } from "../../parts/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { bytes, count, latency, percent, size } from "../../units/units";
import { DiskChart } from "./FlowCharts";
import { createImage, lacksImage } from "./images";
import { limitsInShort } from "./limits";
import { LimitsDialog } from "./LimitsDialog";

export function DiskPage(props: { name: string }) {
  const { t } = useTexts();
  const disks = useTopic("disks");
  const flows = useTopic("qos/flows");
  const policies = useTopic("qos-policies");
  const [changing, setChanging] = useState(false);
  const [creating, setCreating] = useState(false);
  const disk = disks.data?.find((one) => one.config.name === props.name);
  const flow = flows.data?.find((one) => one.disk === props.name);
  return (
    <PageFrame
      title={t("disk.title", { disk: props.name })}
      about={<a href={link("disks")}>{t("disk.all")}</a>}
      actions={disk && (
        <>
          {lacksImage(disk) && <Button variant="secondary" onClick={() => setCreating(true)}>{t("disk.create")}</Button>}{" "}
          <Button variant="primary" onClick={() => setChanging(true)}>{t("disk.change")}</Button>
        </>
      )}
    >
      <WhenHeard of={[disks, flows]}>
        {() => disk ? (
          <>
            <Section title={t("disk.delivery")}><DiskChart disk={props.name} /></Section>
            <div className="grid-wide">
              <Section title={t("disk.waits")}><Limits flow={flow} /></Section>
              <Section title={t("disk.is")}><Is disk={disk} flow={flow} /></Section>
            </div>
            <Section title={t("disk.requests")}><Requests disk={disk} /></Section>
          </>
        ) : <Empty title={t("disk.gone", { disk: props.name })} />}
      </WhenHeard>
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

/** Shares of time by limiting factor, the first one first. */
function Limits(props: { flow: QosFlowStatus | undefined }) {
  const { t, word } = useTexts();
  const shares = props.flow?.last_5_s.limited_by ?? [];
  if (shares.length === 0) return <p>{t("disk.waits.none")}</p>;
  return (
    <div role="group" aria-label={t("disk.waits")}>
      <Facts columns={1} of={shares.map(({ factor, share_ppm }) => [word(factor), <Bar key={factor} ppm={share_ppm} tone="plain" text={percent(share_ppm)} />])} />
      <p className="faint spaced">{t("disk.waits.about")}</p>
    </div>
  );
}

function Is(props: { disk: DiskStatus; flow: QosFlowStatus | undefined }) {
  const { t, word } = useTexts();
  const { disk, flow } = props;
  return (
    <Facts
      of={[
        [t("column.state"), <StorageStateLabel key="state" of={disk} />],
        disk.reason ? [t("column.reason"), disk.reason] : undefined,
        disk.stale ? [t("storage.values"), t("disk.stale")] : undefined,
        [t("disks.limits"), `${limitsInShort(flow?.limits ?? disk.config.qos)}${flow ? ` (${flow.holder})` : ""}`],
        [t("column.store"), disk.config.store],
        [t("disk.format"), [disk.config.format, word(disk.config.kind)].filter((one) => one !== "–").join(", ")],
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

/** The VM that has the disk, or whether one that somebody else starts is connected. */
function Vm(props: { disk: DiskStatus }) {
  const { t } = useTexts();
  const vms = useTopic("vms").data ?? [];
  const { config, vhost_user: socket } = props.disk;
  const vm = vms.find((one) => one.config.disks?.includes(config.name));
  if (vm) return <a href={link("vms", vm.config.name)}>{vm.config.name}</a>;
  return <>{socket ? t(socket.connected ? "disk.vm.connected" : "disk.vm.absent") : "–"}</>;
}

const DIRECTIONS = ["reads", "writes", "flushes", "discards"] as const;

function Requests(props: { disk: DiskStatus }) {
  const { t } = useTexts();
  const rows = DIRECTIONS.map((kind) => ({ kind, of: props.disk.counters[kind] }));
  return (
    <DataTable
      label={t("disk.requests")}
      rows={rows}
      id={(row) => row.kind}
      columns={[
        { title: t("column.kind"), cell: (row) => t(`disk.${row.kind}`) },
        { title: t("disk.count"), cell: (row) => count(row.of.requests), isNumber: true },
        { title: t("disk.bytes"), cell: (row) => bytes(row.of.bytes), isNumber: true },
        { title: t("disk.errors"), cell: (row) => count(row.of.errors), isNumber: true },
        { title: t("disk.p50"), cell: (row) => latency(row.of.latency_ns_p50), isNumber: true },
        { title: t("disk.p99"), cell: (row) => latency(row.of.latency_ns_p99), isNumber: true },
        { title: t("disk.max"), cell: (row) => latency(row.of.latency_ns_max), isNumber: true },
      ]}
    />
  );
}
