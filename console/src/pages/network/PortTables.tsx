/** NICs, uplinks and switches, a line each. */
import { Button } from "@patternfly/react-core";
import type { NicStatus, SwitchStatus, UplinkStatus, VmStatus } from "../../api/types";
import type { PortRate } from "../../live/rates";
import { DataTable, type Column } from "../../parts/DataTable";
import { StateLabel } from "../../parts/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { bitRate, count, frameRate } from "../../units/units";

type Rated = ReadonlyMap<string, PortRate>;

export function byName(rates: readonly PortRate[] | undefined): Rated {
  return new Map(rates?.map((rate) => [rate.name, rate]));
}

function useRateColumns<T>(rates: Rated, name: (row: T) => string): Column<T>[] {
  const { t } = useTexts();
  const rate = (row: T) => rates.get(name(row));
  const column = (title: string, bps: "rxBps" | "txBps", fps: "rxFps" | "txFps"): Column<T> => ({
    title,
    cell: (row) => {
      const of = rate(row);
      return of ? <span className="nowrap" title={frameRate(of[fps])}>{bitRate(of[bps])}</span> : "–";
    },
    sort: (row) => rate(row)?.[bps] ?? -1,
    isNumber: true,
  });
  return [
    column(t("port.rx"), "rxBps", "rxFps"),
    column(t("port.tx"), "txBps", "txFps"),
    { title: t("port.drops"), cell: (row) => count(rate(row)?.dropsPerS ?? 0), sort: (row) => rate(row)?.dropsPerS ?? 0, isNumber: true },
  ];
}

export function NicTable(props: { nics: readonly NicStatus[]; vms: readonly VmStatus[]; rates: Rated; onChange: (nic: NicStatus) => void }) {
  const { t, word } = useTexts();
  const vmOf = new Map(props.vms.flatMap((vm) => (vm.config.nics ?? []).map((nic): [string, string] => [nic, vm.config.name])));
  const rateColumns = useRateColumns<NicStatus>(props.rates, (nic) => nic.config.name);
  return (
    <DataTable
      label={t("network.nics")}
      rows={props.nics}
      id={(nic) => nic.config.name}
      sortedBy={0}
      columns={[
        { title: t("column.name"), cell: (nic) => nic.config.name, sort: (nic) => nic.config.name },
        { title: t("port.switch"), cell: (nic) => nic.config.switch, sort: (nic) => nic.config.switch },
        { title: t("column.state"), cell: (nic) => <Health of={nic.condition} />, sort: (nic) => nic.condition.health },
        {
          title: t("port.vm"),
          cell: (nic) => {
            const vm = vmOf.get(nic.config.name);
            return vm ? <a href={link("vms", vm)}>{vm}</a> : nic.config.netns ?? nic.config.backend;
          },
        },
        { title: t("port.path"), cell: (nic) => word(nic.iov?.path) },
        ...rateColumns,
        { title: t("port.rules"), cell: (nic) => <Rules nic={nic} /> },
        {
          title: "",
          cell: (nic) => (
            <Button variant="link" isInline onClick={() => props.onChange(nic)} aria-label={t("nic.dialog", { nic: nic.config.name })}>{t("action.change")}</Button>
          ),
        },
      ]}
    />
  );
}

function Rules(props: { nic: NicStatus }) {
  const { config } = props.nic;
  const rules = [
    config.vlan != null && `VLAN ${config.vlan}`,
    config.trunk && `trunk ${config.trunk.join(",")}`,
    config.bandwidth_max_bps != null && `≤ ${bitRate(config.bandwidth_max_bps)}`,
    config.storm_limit_fps != null && `storm ≤ ${frameRate(config.storm_limit_fps)}`,
    config.isolated && "isolated",
    config.mac_spoofing && "mac_spoofing",
  ].filter(Boolean);
  return <>{rules.length > 0 ? rules.join(", ") : "–"}</>;
}

export function Health(props: { of: { health: string; reason?: string | null } }) {
  return (
    <>
      <StateLabel state={props.of.health} />
      {props.of.health !== "up" && props.of.reason && <div className="faint small">{props.of.reason}</div>}
    </>
  );
}

export function UplinkTable(props: { uplinks: readonly UplinkStatus[]; teamOf: ReadonlyMap<string, string>; rates: Rated }) {
  const { t, word } = useTexts();
  const rateColumns = useRateColumns<UplinkStatus>(props.rates, (uplink) => uplink.config.name);
  return (
    <DataTable
      label={t("network.uplinks")}
      rows={props.uplinks}
      id={(uplink) => uplink.config.name}
      sortedBy={0}
      columns={[
        { title: t("column.name"), cell: (uplink) => uplink.config.name, sort: (uplink) => uplink.config.name },
        { title: t("port.device"), cell: (uplink) => uplink.config.device },
        { title: t("port.driver"), cell: (uplink) => uplink.config.driver ?? "af_packet" },
        { title: t("port.team"), cell: (uplink) => {
          const team = props.teamOf.get(uplink.config.name);
          return team ? <a href={link("teams", team)}>{team}</a> : uplink.switch ?? "–";
        } },
        { title: t("column.state"), cell: (uplink) => <Health of={uplink.condition} /> },
        ...rateColumns,
        { title: "MTU", cell: (uplink) => uplink.mtu, isNumber: true },
        { title: t("port.steering"), cell: (uplink) => word(uplink.steering?.mode ?? "software") },
      ]}
    />
  );
}

export function SwitchTable(props: { switches: readonly SwitchStatus[] }) {
  const { t, word } = useTexts();
  return (
    <DataTable
      label={t("network.switches")}
      rows={props.switches}
      id={(one) => one.config.name}
      sortedBy={0}
      columns={[
        { title: t("column.name"), cell: (one) => one.config.name, sort: (one) => one.config.name },
        { title: t("column.kind"), cell: (one) => word(one.config.kind) },
        { title: t("column.state"), cell: (one) => <Health of={one.condition} /> },
        { title: t("port.uplink"), cell: (one) => one.config.uplink ?? "–" },
        { title: t("network.nics"), cell: (one) => one.nics.length, isNumber: true },
        { title: t("port.addresses"), cell: (one) => count(one.addresses), isNumber: true },
      ]}
    />
  );
}
