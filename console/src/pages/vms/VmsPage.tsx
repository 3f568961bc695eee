/** Page "VMs": table of VMs with their actions. */
import { useState } from "react";
import { useTopic } from "../../live/hooks";
import { DataTable } from "../../components/DataTable";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Empty, WhenLoaded } from "../../components/States";
import { StateLabel } from "../../components/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { duration, parseBytes, size } from "../../units/units";
import type { VmAction } from "./actions";
import { VmActionDialog } from "./VmActionDialog";
import { VmMenu } from "./VmMenu";

export function VmsPage() {
  const { t, label } = useTexts();
  const vms = useTopic("vms");
  const [dialog, setDialog] = useState<{ name: string; action: VmAction }>();
  return (
    <PageFrame title={t("vms.title")} about={t("vms.about")}>
      <WhenLoaded topics={[vms]}>
        {() => vms.data?.length === 0 ? (
          <Empty title={t("vms.none")}>{t("vms.none.about")}</Empty>
        ) : (
          <Section title={t("vms.title")}>
            <DataTable
              label={t("vms.title")}
              rows={vms.data ?? []}
              id={(vm) => vm.config.name}
              sortedBy={0}
              columns={[
                { title: t("column.name"), cell: (vm) => <a href={link("vms", vm.config.name)}>{vm.config.name}</a>, sort: (vm) => vm.config.name },
                { title: t("column.state"), cell: (vm) => (
                  <>
                    <StateLabel state={vm.state} />
                    {vm.reason && <div className="faint small">{vm.reason}</div>}
                    {vm.migration && <div className="faint small">{t(vm.migration.is_outgoing ? "vm.migration.outgoing" : "vm.migration.incoming", { node: vm.migration.node, phase: label(vm.migration.phase) })}</div>}
                  </>
                ), sort: (vm) => vm.state },
                { title: t("vm.cpus"), cell: (vm) => vm.cpus ?? vm.config.cpus ?? 1, isNumber: true },
                { title: t("vm.memory"), cell: (vm) => size(parseBytes(vm.config.memory_bytes) ?? 0), isNumber: true },
                { title: t("network.nics"), cell: (vm) => (vm.config.nics ?? []).join(", ") || "–" },
                { title: t("column.disks"), cell: (vm) => (vm.config.disks ?? []).join(", ") || "–" },
                { title: t("vm.accelerator"), cell: (vm) => label(vm.accelerator) },
                { title: t("vm.uptime"), cell: (vm) => (vm.uptime_s == null ? "–" : duration(vm.uptime_s)), sort: (vm) => vm.uptime_s ?? -1 },
                { title: t("nav.why"), cell: (vm) => <a href={link("why", vm.config.name)}>{t("vm.diagnose")}</a> },
                { title: "", cell: (vm) => <VmMenu vm={vm} onAction={(action) => setDialog({ name: vm.config.name, action })} /> },
              ]}
            />
          </Section>
        )}
      </WhenLoaded>
      {dialog && <VmActionDialog {...dialog} onClose={() => setDialog(undefined)} />}
    </PageFrame>
  );
}
