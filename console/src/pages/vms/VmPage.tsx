/** One VM: what it does and has, and its life. */
import { Alert, Button, Progress } from "@patternfly/react-core";
import { useState } from "react";
import type { VmGuest, VmStatus } from "../../api/types";
import { useEvents } from "../../live/event_log";
import { useAnswer, useTopic } from "../../live/hooks";
import { DataTable } from "../../parts/DataTable";
import { Facts } from "../../parts/Facts";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { Empty, Errors, WhenHeard } from "../../parts/States";
import { StateLabel } from "../../parts/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { age, bytesOf, size } from "../../units/units";
import { EventList } from "../events/EventList";
import { isDestructive, isPossible, VM_ACTIONS, type VmAction } from "./actions";
import { SerialConsole } from "./SerialConsole";
import { VmActionDialog } from "./VmActionDialog";

export function VmPage(props: { name: string }) {
  const { t } = useTexts();
  const vms = useTopic("vms");
  const [asked, setAsked] = useState<VmAction>();
  const events = (useEvents() ?? []).filter((event) => event.subject === `vm/${props.name}`).slice(-10).reverse();
  const vm = vms.data?.find((one) => one.config.name === props.name);
  return (
    <PageFrame
      title={t("vm.title", { name: props.name })}
      about={<span className="row"><a href={link("vms")}>{t("vms.all")}</a> <a href={link("why", props.name)}>{t("vm.why.of")}</a></span>}
      actions={vm && (
        <div className="row">
          {VM_ACTIONS.filter((action) => isPossible(action, vm)).map((action) => (
            <Button key={action} size="sm" variant={isDestructive(action) ? "danger" : action === "start" ? "primary" : "secondary"} onClick={() => setAsked(action)}>
              {t(`vm.${action}`)}
            </Button>
          ))}
        </div>
      )}
    >
      <WhenHeard of={[vms]}>
        {() => vm ? (
          <>
            <Notes vm={vm} />
            <div className="grid-wide">
              <Section title={t("vm.is")}><Is vm={vm} /></Section>
              <Section title={t("vm.guest")}><Guest vm={vm} /></Section>
            </div>
            <SerialConsole vm={props.name} runs={vm.state === "running" || vm.state === "paused"} />
            <Section title={t("events.title")}><EventList events={events} withFields /></Section>
          </>
        ) : <Empty title={t("vm.gone", { name: props.name })} />}
      </WhenHeard>
      {asked && <VmActionDialog name={props.name} action={asked} onClose={() => setAsked(undefined)} />}
    </PageFrame>
  );
}

function Notes(props: { vm: VmStatus }) {
  const { t, word } = useTexts();
  const { vm } = props;
  const move = vm.migration;
  const total = move ? move.disk_bytes_copied + move.disk_bytes_left + move.memory_bytes_copied + move.memory_bytes_left : 0;
  return (
    <>
      {vm.reason && <Alert component="p" isInline variant={vm.state === "running" ? "info" : "warning"} title={vm.reason} />}
      {(vm.waits_for_start?.length ?? 0) > 0 && <Alert component="p" isInline variant="info" title={t("vm.waits", { keys: (vm.waits_for_start ?? []).join(", ") })} />}
      {move && (
        <Section title={t(move.is_outgoing ? "vm.goes" : "vm.comes", { node: move.node, phase: word(move.phase) })}>
          <Progress
            aria-label={t("change.progress")}
            value={total > 0 ? (100 * (move.disk_bytes_copied + move.memory_bytes_copied)) / total : 0}
            title={t("vm.move.left", { disks: size(move.disk_bytes_left), memory: size(move.memory_bytes_left) })}
          />
        </Section>
      )}
    </>
  );
}

function Is(props: { vm: VmStatus }) {
  const { t, word } = useTexts();
  const { vm } = props;
  const links = (names: readonly string[] | undefined, page: string) =>
    names && names.length > 0 ? <span className="row">{names.map((name) => <a key={name} href={page === "disks" ? link("disks", name) : link(page)}>{name}</a>)}</span> : "–";
  return (
    <Facts
      of={[
        [t("column.state"), <StateLabel key="s" state={vm.state} />],
        [t("vm.up"), vm.uptime_s == null ? "–" : age(vm.uptime_s)],
        [t("vm.cpus"), t("vm.cpus.value", { now: vm.cpus ?? vm.config.cpus ?? 1, most: vm.config.cpus_max ?? vm.config.cpus ?? 1 })],
        [t("vm.memory"), size(bytesOf(vm.config.memory_bytes) ?? 0)],
        [t("network.nics"), links(vm.config.nics, "network")],
        [t("column.disks"), links(vm.config.disks, "disks")],
        [t("vm.by"), word(vm.accelerator ?? vm.config.accelerator)],
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
  const asks = vm.state === "running" && vm.agent === true;
  const guest = useAnswer<VmGuest>(asks ? `/1.0/vms/${encodeURIComponent(vm.config.name)}/guest` : undefined);
  if (!asks) return <p>{t("vm.guest.none")}</p>;
  if (guest.error) return <Errors error={guest.error} />;
  if (!guest.data) return <p>{t("state.loading")}</p>;
  return (
    <>
      <Facts of={[
        [t("vm.guest.name"), guest.data.host_name ?? "–"],
        [t("vm.guest.system"), guest.data.system ?? "–"],
        [t("vm.guest.kernel"), guest.data.kernel ?? "–"],
        [t("vm.guest.agent"), guest.data.agent_version ?? "–"],
      ]} />
      <DataTable
        label={t("vm.guest.addresses")}
        rows={guest.data.interfaces}
        id={(one) => one.name}
        columns={[
          { title: t("column.name"), cell: (one) => one.name },
          { title: "MAC", cell: (one) => one.mac ?? "–" },
          { title: t("vm.guest.addresses"), cell: (one) => one.addresses.join(", ") || "–" },
        ]}
      />
    </>
  );
}
