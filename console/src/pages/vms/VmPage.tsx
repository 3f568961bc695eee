/** Page of a VM: properties, guest report, serial console, events and actions. */
import { Alert, Button, Progress } from "@patternfly/react-core";
import { useState } from "react";
import type { VmGuest, VmStatus } from "../../api/types";
import { useEvents } from "../../live/event_log";
import { useRequest, useTopic } from "../../live/hooks";
import { DataTable } from "../../components/DataTable";
import { PropertyList } from "../../components/PropertyList";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Empty, ErrorAlert, WhenLoaded } from "../../components/States";
import { StateLabel } from "../../components/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { duration, parseBytes, size } from "../../units/units";
import { EventList } from "../events/EventList";
import { isDestructive, isPossible, VM_ACTIONS, type VmAction } from "./actions";
import { SerialConsole } from "./SerialConsole";
import { VmActionDialog } from "./VmActionDialog";

export function VmPage(props: { name: string }) {
  const { t } = useTexts();
  const vms = useTopic("vms");
  const [action, setAction] = useState<VmAction>();
  const events = (useEvents() ?? []).filter((event) => event.subject === `vm/${props.name}`).slice(-10).reverse();
  const vm = vms.data?.find((vm) => vm.config.name === props.name);
  return (
    <PageFrame
      title={t("vm.title", { name: props.name })}
      about={<span className="row"><a href={link("vms")}>{t("vms.all")}</a> <a href={link("why", props.name)}>{t("vm.diagnose.link")}</a></span>}
      actions={vm && (
        <div className="row">
          {VM_ACTIONS.filter((action) => isPossible(action, vm)).map((action) => (
            <Button key={action} size="sm" variant={isDestructive(action) ? "danger" : action === "start" ? "primary" : "secondary"} onClick={() => setAction(action)}>
              {t(`vm.${action}`)}
            </Button>
          ))}
        </div>
      )}
    >
      <WhenLoaded topics={[vms]}>
        {() => vm ? (
          <>
            <Alerts vm={vm} />
            <div className="grid-wide">
              <Section title={t("vm.properties")}><Properties vm={vm} /></Section>
              <Section title={t("vm.guest")}><Guest vm={vm} /></Section>
            </div>
            <SerialConsole vm={props.name} isRunning={vm.state === "running" || vm.state === "paused"} />
            <Section title={t("events.title")}><EventList events={events} showFields /></Section>
          </>
        ) : <Empty title={t("vm.notfound", { name: props.name })} />}
      </WhenLoaded>
      {action && <VmActionDialog name={props.name} action={action} onClose={() => setAction(undefined)} />}
    </PageFrame>
  );
}

function Alerts(props: { vm: VmStatus }) {
  const { t, label } = useTexts();
  const { vm } = props;
  const migration = vm.migration;
  const total = migration ? migration.disk_bytes_copied + migration.disk_bytes_left + migration.memory_bytes_copied + migration.memory_bytes_left : 0;
  return (
    <>
      {vm.reason && <Alert component="p" isInline variant={vm.state === "running" ? "info" : "warning"} title={vm.reason} />}
      {(vm.waits_for_start?.length ?? 0) > 0 && <Alert component="p" isInline variant="info" title={t("vm.pending", { keys: (vm.waits_for_start ?? []).join(", ") })} />}
      {migration && (
        <Section title={t(migration.is_outgoing ? "vm.migration.outgoing" : "vm.migration.incoming", { node: migration.node, phase: label(migration.phase) })}>
          <Progress
            aria-label={t("change.progress")}
            value={total > 0 ? (100 * (migration.disk_bytes_copied + migration.memory_bytes_copied)) / total : 0}
            title={t("vm.migration.remaining", { disks: size(migration.disk_bytes_left), memory: size(migration.memory_bytes_left) })}
          />
        </Section>
      )}
    </>
  );
}

function Properties(props: { vm: VmStatus }) {
  const { t, label } = useTexts();
  const { vm } = props;
  const links = (names: readonly string[] | undefined, page: string) =>
    names && names.length > 0 ? <span className="row">{names.map((name) => <a key={name} href={page === "disks" ? link("disks", name) : link(page)}>{name}</a>)}</span> : "–";
  return (
    <PropertyList
      items={[
        [t("column.state"), <StateLabel key="s" state={vm.state} />],
        [t("vm.uptime"), vm.uptime_s == null ? "–" : duration(vm.uptime_s)],
        [t("vm.cpus"), t("vm.cpus.value", { now: vm.cpus ?? vm.config.cpus ?? 1, most: vm.config.cpus_max ?? vm.config.cpus ?? 1 })],
        [t("vm.memory"), size(parseBytes(vm.config.memory_bytes) ?? 0)],
        [t("network.nics"), links(vm.config.nics, "network")],
        [t("column.disks"), links(vm.config.disks, "disks")],
        [t("vm.accelerator"), label(vm.accelerator ?? vm.config.accelerator)],
        ["QEMU", vm.qemu_version ?? "–"],
        [t("vm.firmware"), vm.config.firmware ?? "bios"],
        [t("vm.autostart"), t(vm.config.autostart ? "yes" : "no")],
        [t("vm.process"), vm.process ?? "–"],
        [t("vm.user"), vm.user ?? "–"],
      ]}
    />
  );
}

function Guest(props: { vm: VmStatus }) {
  const { t } = useTexts();
  const { vm } = props;
  const hasAgent = vm.state === "running" && vm.agent === true;
  const guest = useRequest<VmGuest>(hasAgent ? `/1.0/vms/${encodeURIComponent(vm.config.name)}/guest` : undefined);
  if (!hasAgent) return <p>{t("vm.guest.none")}</p>;
  if (guest.error) return <ErrorAlert error={guest.error} />;
  if (!guest.data) return <p>{t("state.loading")}</p>;
  return (
    <>
      <PropertyList items={[
        [t("vm.guest.name"), guest.data.host_name ?? "–"],
        [t("vm.guest.system"), guest.data.system ?? "–"],
        [t("vm.guest.kernel"), guest.data.kernel ?? "–"],
        [t("vm.guest.agent"), guest.data.agent_version ?? "–"],
      ]} />
      <DataTable
        label={t("vm.guest.addresses")}
        rows={guest.data.interfaces}
        id={(networkInterface) => networkInterface.name}
        columns={[
          { title: t("column.name"), cell: (networkInterface) => networkInterface.name },
          { title: "MAC", cell: (networkInterface) => networkInterface.mac ?? "–" },
          { title: t("vm.guest.addresses"), cell: (networkInterface) => networkInterface.addresses.join(", ") || "–" },
        ]}
      />
    </>
  );
}
