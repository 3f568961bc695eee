/** Tables of NICs, uplinks and switches. */
import { Button } from "@patternfly/react-core";
import type { NicStatus, SwitchStatus, UplinkStatus, VmStatus } from "../../api/types";
import type { PortRate } from "../../live/rates";
import { DataTable, type Column } from "../../components/DataTable";
import { StateLabel } from "../../components/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { bitRate, count, frameRate } from "../../units/units";

type RatesByName = ReadonlyMap<string, PortRate>;

export function ratesByName(rates: readonly PortRate[] | undefined): RatesByName {
  return new Map(rates?.map((rate) => [rate.name, rate]));
}

function useRateColumns<T>(rates: RatesByName, name: (row: T) => string): Column<T>[] {
  const { t } = useTexts();
  const rateOf = (row: T) => rates.get(name(row));
  const column = (title: string, bps: "rxBps" | "txBps", fps: "rxFps" | "txFps"): Column<T> => ({
    title,
    cell: (row) => {
      const portRate = rateOf(row);
      return portRate ? <span className="nowrap" title={frameRate(portRate[fps])}>{bitRate(portRate[bps])}</span> : "–";
    },
    sort: (row) => rateOf(row)?.[bps] ?? -1,
    isNumber: true,
  });
  return [
    column(t("port.rx"), "rxBps", "rxFps"),
    column(t("port.tx"), "txBps", "txFps"),
    { title: t("port.drops"), cell: (row) => count(rateOf(row)?.dropsPerS ?? 0), sort: (row) => rateOf(row)?.dropsPerS ?? 0, isNumber: true },
  ];
}

export function NicTable(props: { nics: readonly NicStatus[]; vms: readonly VmStatus[]; rates: RatesByName; onChange: (nic: NicStatus) => void }) {
  const { t, label } = useTexts();
  const vmByNic = new Map(props.vms.flatMap((vm) => (vm.config.nics ?? []).map((nic): [string, string] => [nic, vm.config.name])));
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
        { title: t("column.state"), cell: (nic) => <Health condition={nic.condition} />, sort: (nic) => nic.condition.health },
        {
          title: t("port.vm"),
          cell: (nic) => {
            const vm = vmByNic.get(nic.config.name);
            return vm ? <a href={link("vms", vm)}>{vm}</a> : nic.config.netns ?? nic.config.backend;
          },
        },
        { title: t("port.path"), cell: (nic) => label(nic.iov?.path) },
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

export function Health(props: { condition: { health: string; reason?: string | null } }) {
  return (
    <>
      <StateLabel state={props.condition.health} />
      {props.condition.health !== "up" && props.condition.reason && <div className="faint small">{props.condition.reason}</div>}
    </>
  );
}

export function UplinkTable(props: { uplinks: readonly UplinkStatus[]; teamByUplink: ReadonlyMap<string, string>; rates: RatesByName }) {
  const { t, label } = useTexts();
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
          const team = props.teamByUplink.get(uplink.config.name);
          return team ? <a href={link("teams", team)}>{team}</a> : uplink.switch ?? "–";
        } },
        { title: t("column.state"), cell: (uplink) => <Health condition={uplink.condition} /> },
        ...rateColumns,
        { title: "MTU", cell: (uplink) => uplink.mtu, isNumber: true },
        { title: t("port.steering"), cell: (uplink) => label(uplink.steering?.mode ?? "software") },
      ]}
    />
  );
}

export function SwitchTable(props: { switches: readonly SwitchStatus[] }) {
  const { t, label } = useTexts();
  return (
    <DataTable
      label={t("network.switches")}
      rows={props.switches}
      id={(switchStatus) => switchStatus.config.name}
      sortedBy={0}
      columns={[
        { title: t("column.name"), cell: (switchStatus) => switchStatus.config.name, sort: (switchStatus) => switchStatus.config.name },
        { title: t("column.kind"), cell: (switchStatus) => label(switchStatus.config.kind) },
        { title: t("column.state"), cell: (switchStatus) => <Health condition={switchStatus.condition} /> },
        { title: t("port.uplink"), cell: (switchStatus) => switchStatus.config.uplink ?? "–" },
        { title: t("network.nics"), cell: (switchStatus) => switchStatus.nics.length, isNumber: true },
        { title: t("port.addresses"), cell: (switchStatus) => count(switchStatus.addresses), isNumber: true },
      ]}
    />
  );
}
