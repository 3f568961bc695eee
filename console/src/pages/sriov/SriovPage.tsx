/** Page "SR-IOV": adapters, their virtual functions, and the NICs that may use one. */
import { Alert, Button } from "@patternfly/react-core";
import { useState } from "react";
import type { NicStatus, SriovAdapter } from "../../api/types";
import { useRequest, useTopic } from "../../live/hooks";
import { DataTable } from "../../components/DataTable";
import { PropertyList } from "../../components/PropertyList";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Empty, WhenLoaded } from "../../components/States";
import { StateLabel } from "../../components/StateLabel";
import { useTexts } from "../../texts/texts";
import { bitRate } from "../../units/units";
import type { PfConfig } from "./changes";
import { EnableDialog, VfDialog } from "./SriovDialogs";

type Vf = SriovAdapter["vfs"][number];
const REFRESH_MS = 5000;

export function SriovPage() {
  const { t } = useTexts();
  const adapters = useTopic("sriov");
  const nics = useTopic("nics");
  const pfs = useRequest<{ config: PfConfig }[]>("/1.0/pfs", REFRESH_MS);
  const [dialog, setDialog] = useState<{ adapter: SriovAdapter; vf?: Vf }>();
  const configOf = (adapter: SriovAdapter) => pfs.data?.find((pf) => pf.config.name === adapter.pf)?.config;
  const iovNics = (nics.data ?? []).filter((nic) => (nic.config.iov_weight ?? 0) > 0 || nic.iov);
  return (
    <PageFrame title="SR-IOV" about={t("sriov.about")}>
      <WhenLoaded topics={[adapters, nics]}>
        {() => (
          <>
            {adapters.data?.length === 0 && <Empty title={t("sriov.none")}>{t("sriov.none.about")}</Empty>}
            {adapters.data?.map((adapter) => (
              <Adapter key={adapter.address} adapter={adapter} onEnable={() => setDialog({ adapter })} onVf={(vf) => setDialog({ adapter, vf })} />
            ))}
            {iovNics.length > 0 && <Section title={t("sriov.nics")}><NicPaths nics={iovNics} /></Section>}
          </>
        )}
      </WhenLoaded>
      {dialog && (dialog.vf
        ? <VfDialog adapter={dialog.adapter} vf={dialog.vf} config={configOf(dialog.adapter)} onClose={() => setDialog(undefined)} />
        : <EnableDialog adapter={dialog.adapter} config={configOf(dialog.adapter)} onClose={() => setDialog(undefined)} />)}
    </PageFrame>
  );
}

function Adapter(props: { adapter: SriovAdapter; onEnable: () => void; onVf: (vf: Vf) => void }) {
  const { t } = useTexts();
  const { adapter } = props;
  const onOff = (value: boolean | null | undefined) => (value == null ? "–" : t(value ? "vmq.on" : "vmq.off"));
  const rate = (value: number | null | undefined) => (value == null ? "–" : bitRate(value));
  return (
    <Section
      title={<span className="row">{adapter.device ?? adapter.address} <StateLabel state={adapter.support} text={adapter.support} /></span>}
      actions={<Button variant="secondary" size="sm" onClick={props.onEnable}>{t("sriov.enable")}</Button>}
    >
      {adapter.remedy && <Alert component="p" isInline variant="info" title={adapter.remedy} className="spaced" />}
      <PropertyList
        columns={3}
        items={[
          [t("sriov.address"), <code key="a">{adapter.address}</code>],
          [t("port.driver"), adapter.driver ?? "–"],
          [t("sriov.vfs"), t("sriov.vfs.value", { used: adapter.vfs_in_use, enabled: adapter.vfs_enabled, supported: adapter.vfs_supported })],
          ["IOMMU", adapter.iommu_group ?? "–"],
          ["NUMA", adapter.numa_node ?? "–"],
          [t("sriov.configured"), adapter.pf == null ? "–" : `pf/${adapter.pf}`],
        ]}
      />
      {adapter.vfs.length > 0 && (
        <DataTable
          label={t("sriov.vfs")}
          rows={adapter.vfs}
          id={(vf) => String(vf.index)}
          columns={[
            { title: "VF", cell: (vf) => vf.index, sort: (vf) => vf.index, isNumber: true },
            { title: t("sriov.address"), cell: (vf) => <code>{vf.address}</code> },
            { title: t("port.driver"), cell: (vf) => vf.driver ?? "–" },
            { title: "MAC", cell: (vf) => vf.mac ?? "–" },
            { title: "VLAN", cell: (vf) => vf.vlan ?? "–", isNumber: true },
            { title: t("vf.spoof_check"), cell: (vf) => onOff(vf.spoof_check) },
            { title: t("vf.trust"), cell: (vf) => onOff(vf.trust) },
            { title: t("vf.bandwidth_max_bps"), cell: (vf) => rate(vf.bandwidth_max_bps), isNumber: true },
            { title: t("team.link"), cell: (vf) => vf.link_state ?? "–" },
            { title: t("sriov.used"), cell: (vf) => vf.used_by ?? "–" },
            { title: "", cell: (vf) => <Button variant="link" isInline onClick={() => props.onVf(vf)} aria-label={t("vf.dialog", { vf: vf.index })}>{t("action.change")}</Button> },
          ]}
        />
      )}
    </Section>
  );
}

function NicPaths(props: { nics: readonly NicStatus[] }) {
  const { t, label } = useTexts();
  return (
    <DataTable
      label={t("sriov.nics")}
      rows={props.nics}
      id={(nic) => nic.config.name}
      columns={[
        { title: "NIC", cell: (nic) => nic.config.name, sort: (nic) => nic.config.name },
        { title: t("sriov.weight"), cell: (nic) => nic.config.iov_weight ?? 0, isNumber: true },
        { title: t("port.path"), cell: (nic) => <StateLabel state={nic.iov?.path === "vf" ? "active" : "off"} text={label(nic.iov?.path ?? "synthetic")} /> },
        { title: "VF", cell: (nic) => (nic.iov?.vf == null ? "–" : `${nic.iov.adapter ?? ""} ${nic.iov.vf}`) },
        { title: t("column.reason"), cell: (nic) => nic.iov?.reason ?? "–" },
      ]}
    />
  );
}
