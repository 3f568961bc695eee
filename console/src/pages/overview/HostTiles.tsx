/** Tiles with key figures of the host, each with a link to its page. */
import { Card, CardBody } from "@patternfly/react-core";
import type { DiskStatus, HostStatus, NicStatus, PowerStatus, UplinkStatus, VmStatus } from "../../api/types";
import { useRequest } from "../../live/hooks";
import type { Rates } from "../../live/rates";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { duration, bitRate, count, percent, watts } from "../../units/units";

interface Tile {
  name: string;
  value: string;
  details: string;
  href: string;
}

export function HostTiles(props: {
  nics: NicStatus[]; uplinks: UplinkStatus[]; disks: DiskStatus[]; vms: VmStatus[]; power: PowerStatus | undefined; rates: Rates | undefined;
}) {
  const { t, label } = useTexts();
  const host = useRequest<HostStatus>("/1.0", 15_000).data;
  const { rates, power } = props;
  const sum = (values: number[] | undefined) => (values ?? []).reduce((total, value) => total + value, 0);
  const busiest = Math.max(0, ...(rates?.workers ?? []).map((worker) => worker.busyPpm));
  const tiles: Tile[] = [
    {
      name: t("tile.vms"),
      value: t("tile.of", { part: props.vms.filter((vm) => vm.state === "running").length, all: props.vms.length }),
      details: t("tile.vms.more"),
      href: link("vms"),
    },
    {
      name: t("tile.network"),
      value: bitRate(sum(rates?.nics.map((nic) => nic.rxBps + nic.txBps))),
      details: t("tile.network.more", { up: props.nics.filter((nic) => nic.condition.health === "up").length, nics: props.nics.length, uplinks: props.uplinks.length }),
      href: link("network"),
    },
    {
      name: t("tile.disks"),
      value: t("tile.requests", { rate: count(sum(rates?.disks.map((disk) => disk.readsPerS + disk.writesPerS))) }),
      details: t("tile.disks.more", { ready: props.disks.filter((disk) => disk.state === "ready").length, disks: props.disks.length }),
      href: link("disks"),
    },
    {
      name: t("tile.workers"),
      value: percent(busiest),
      details: t("tile.workers.more", { workers: rates?.workers.length ?? 0, working: (rates?.workers ?? []).filter((worker) => worker.queues > 0).length }),
      href: link("vmq"),
    },
    {
      name: t("tile.power"),
      value: rates?.milliwatts === undefined ? label(power?.config?.plan ?? "no-plan") : watts(rates.milliwatts),
      details: power?.config ? t("tile.power.more", { plan: label(power.config.plan), effect: label(`effect-${power.effect}`) }) : t("tile.power.none"),
      href: link("power"),
    },
    {
      name: t("tile.uptime"),
      value: host ? duration(host.uptime_s) : "–",
      details: host ? t("tile.uptime.more", { version: host.version, confinement: label(`confined-${host.confinement?.mode ?? "off"}`) }) : "",
      href: link("events"),
    },
  ];
  return (
    <div className="tiles">
      {tiles.map((tile) => (
        <Card key={tile.name} isCompact className="tile">
          <CardBody>
            <a className="tile-name" href={tile.href}>{tile.name}</a>
            <div className="tile-value">{tile.value}</div>
            <div className="faint">{tile.details}</div>
          </CardBody>
        </Card>
      ))}
    </div>
  );
}
