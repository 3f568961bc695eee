/** Page "Cluster": nodes, shared stores with their leaders, and the limits of this host. */
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { ClusterDisk, ClusterStatus, NodeStatus } from "../../api/types";
import { command } from "../../api/commands";
import { useTopic } from "../../live/hooks";
import { ChangeDialog, type Change } from "../../components/ChangeDialog";
import { Command } from "../../components/Command";
import { DataTable } from "../../components/DataTable";
import { PropertyList } from "../../components/PropertyList";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Empty, WhenLoaded } from "../../components/States";
import { StateLabel } from "../../components/StateLabel";
import { useTexts } from "../../texts/texts";
import { duration, count, iops } from "../../units/units";
import { Health } from "../network/PortTables";

type Confirmation = Change & { title: string; about: string; action: string; danger: string; withoutPreview?: boolean };

export function ClusterPage() {
  const { t } = useTexts();
  const cluster = useTopic("cluster");
  const disks = useTopic("cluster/flows");
  const nodes = useTopic("nodes");
  const [confirmation, setConfirmation] = useState<Confirmation>();
  const leave = (): Confirmation => ({
    title: t("cluster.leave.title"), about: t("cluster.leave.about"), action: t("cluster.leave"), danger: t("cluster.leave.danger"),
    method: "DELETE", path: "/1.0/cluster", command: command("cluster", "leave"),
  });
  const remove = (name: string): Confirmation => ({
    title: t("cluster.remove.title", { name }), about: t("cluster.remove.about"), action: t("cluster.remove"), danger: t("cluster.remove.danger"),
    method: "DELETE", path: `/1.0/cluster/members/${encodeURIComponent(name)}`, command: command("cluster", "remove", name), withoutPreview: true,
  });
  const config = cluster.data?.config;
  return (
    <PageFrame
      title={t("cluster.title")}
      about={t("cluster.about")}
      actions={config && <Button variant="secondary" onClick={() => setConfirmation(leave())}>{t("cluster.leave")}</Button>}
    >
      <WhenLoaded topics={[cluster, nodes]}>
        {() => (
          <>
            {cluster.data && config
              ? <ClusterDetails cluster={cluster.data} disks={disks.data ?? []} onRemove={(name) => setConfirmation(remove(name))} />
              : (
                <Empty title={t("cluster.none")}>
                  {t("cluster.none.about")}
                  <div className="spaced"><Command text={command("cluster", "join", "lab", "--as", "n1", "--endpoints", "https://192.0.2.10:2379")} label={t("cluster.join")} /></div>
                </Empty>
              )}
            {nodes.data && nodes.data.length > 0 && <Section title={t("nodes.title")}><Nodes nodes={nodes.data} /></Section>}
          </>
        )}
      </WhenLoaded>
      {confirmation && <ChangeDialog {...confirmation} change={confirmation} onClose={() => setConfirmation(undefined)} />}
    </PageFrame>
  );
}

function ClusterDetails(props: { cluster: ClusterStatus; disks: readonly ClusterDisk[]; onRemove: (name: string) => void }) {
  const { t } = useTexts();
  const { cluster } = props;
  const shares = cluster.stores.flatMap((store) => store.shares.map((share) => ({ store: store.store, ...share })));
  return (
    <>
      <Section title={t("cluster.properties", { name: cluster.config?.name ?? "" })}>
        <PropertyList
          items={[
            [t("column.state"), <Health key="h" condition={cluster.condition} />],
            [t("cluster.node"), cluster.config?.node],
            [t("cluster.endpoints"), cluster.config?.endpoints.join(", ")],
            [t("cluster.status.age"), cluster.age_ms == null ? "–" : t("lacp.ago", { age: duration(cluster.age_ms / 1000) })],
          ]}
        />
        <DataTable
          label={t("cluster.members")}
          rows={cluster.members}
          id={(member) => member.name}
          columns={[
            { title: t("cluster.node"), cell: (member) => <>{member.name} {member.is_this && <span className="faint">{t("cluster.this")}</span>}</> },
            { title: t("column.state"), cell: (member) => <StateLabel state={member.is_alive ? "alive" : "silent"} /> },
            { title: "", cell: (member) => !member.is_this && !member.is_alive
              ? <Button variant="link" isDanger isInline onClick={() => props.onRemove(member.name)}>{t("cluster.remove")}</Button>
              : null },
          ]}
        />
      </Section>
      <Section title={t("cluster.stores")}>
        <DataTable
          label={t("cluster.stores")}
          rows={cluster.stores}
          id={(store) => store.store}
          columns={[
            { title: t("column.store"), cell: (store) => store.store },
            { title: t("cluster.leader"), cell: (store) => store.leader ?? "–" },
            { title: t("stores.capacity"), cell: (store) => (store.capacity_iops == null ? "–" : count(store.capacity_iops)), isNumber: true },
            { title: t("cluster.limit.shared"), cell: (store) => (store.limit_iops == null ? "–" : count(store.limit_iops)), isNumber: true },
            { title: t("cluster.limit.here"), cell: (store) => count(store.cap.iops), isNumber: true },
            { title: t("cluster.reserved"), cell: (store) => count(store.cap.reserved_iops), isNumber: true },
            { title: t("cluster.lease"), cell: (store) => (store.cap.lease_ms == null ? "–" : duration(store.cap.lease_ms / 1000)), isNumber: true },
            { title: t("cluster.remark"), cell: (store) => store.reason ?? (store.has_external_load ? t("cluster.external_load") : "–") },
          ]}
        />
        <h3 className="small-title spaced">{t("cluster.shares")}</h3>
        <DataTable
          label={t("cluster.shares")}
          rows={shares}
          id={(share) => `${share.store} ${share.node}`}
          columns={[
            { title: t("column.store"), cell: (share) => share.store },
            { title: t("cluster.node"), cell: (share) => share.node },
            { title: t("cluster.leased"), cell: (share) => iops(share.leased_iops), isNumber: true },
            { title: t("cluster.reserved"), cell: (share) => iops(share.reserved_iops), isNumber: true },
          ]}
        />
      </Section>
      <Section title={t("cluster.disks")}>
        <DataTable
          label={t("cluster.disks")}
          rows={props.disks}
          id={(disk) => `${disk.node} ${disk.store} ${disk.disk}`}
          columns={[
            { title: t("cluster.node"), cell: (disk) => disk.node, sort: (disk) => disk.node },
            { title: t("column.store"), cell: (disk) => disk.store },
            { title: t("column.disk"), cell: (disk) => disk.disk, sort: (disk) => disk.disk },
            { title: t("disks.guaranteed"), cell: (disk) => count(disk.guaranteed_iops), isNumber: true },
            { title: t("disks.demand"), cell: (disk) => count(disk.demand_iops), isNumber: true },
            { title: t("disks.delivered"), cell: (disk) => count(disk.delivered_iops), sort: (disk) => disk.delivered_iops, isNumber: true },
            { title: t("cluster.aggressors"), cell: (disk) => disk.aggressors?.map((aggressor) => `${aggressor.disk} (${aggressor.node}, ${count(aggressor.delivered_iops)})`).join(", ") || "–" },
          ]}
        />
      </Section>
    </>
  );
}

function Nodes(props: { nodes: readonly NodeStatus[] }) {
  const { t } = useTexts();
  return (
    <DataTable
      label={t("nodes.title")}
      rows={props.nodes}
      id={(node) => node.config.name}
      columns={[
        { title: t("column.name"), cell: (node) => node.config.name },
        { title: t("sriov.address"), cell: (node) => node.config.address },
        { title: t("column.state"), cell: (node) => <Health condition={node.condition} /> },
        { title: t("nodes.host"), cell: (node) => node.host ?? "–" },
        { title: t("nodes.version"), cell: (node) => node.version ?? "–" },
      ]}
    />
  );
}
