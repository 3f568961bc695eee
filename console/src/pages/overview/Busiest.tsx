/** Disk, NIC, uplink, queue and worker with the highest load, with links to their pages. */
import type { QosFlowStatus, VmqStatus } from "../../api/types";
import type { Rates } from "../../live/rates";
import { PropertyList } from "../../components/PropertyList";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { bitRate, iops, percent } from "../../units/units";

/** Returns the item with the highest value above 0. */
function highest<T>(items: readonly T[] | undefined, value: (item: T) => number): T | undefined {
  return [...(items ?? [])].sort((a, b) => value(b) - value(a)).find((item) => value(item) > 0);
}

export function Busiest(props: { rates: Rates | undefined; flows: readonly QosFlowStatus[]; vmq: readonly VmqStatus[] }) {
  const { t } = useTexts();
  const disk = highest(props.flows, (flow) => flow.last_5_s.delivered_iops);
  const nic = highest(props.rates?.nics, (rate) => rate.rxBps + rate.txBps);
  const uplink = highest(props.rates?.uplinks, (rate) => rate.rxBps + rate.txBps);
  const queue = highest(props.vmq.flatMap((status) => status.queues), (queue) => queue.load_ppm);
  const worker = highest(props.rates?.workers, (worker) => worker.busyPpm);
  return (
    <PropertyList
      columns={1}
      items={[
        [t("busiest.disk"), disk ? <a key="d" href={link("disks", disk.disk)}>{`${disk.disk}: ${iops(disk.last_5_s.delivered_iops)}`}</a> : "–"],
        [t("busiest.nic"), nic ? <a key="n" href={link("network")}>{`${nic.name}: ${bitRate(nic.rxBps + nic.txBps)}`}</a> : "–"],
        [t("busiest.uplink"), uplink ? <a key="u" href={link("network")}>{`${uplink.name}: ${bitRate(uplink.rxBps + uplink.txBps)}`}</a> : "–"],
        [t("busiest.queue"), queue ? <a key="q" href={link("vmq")}>{t("busiest.queue.value", { queue: queue.queue, load: percent(queue.load_ppm), worker: queue.worker })}</a> : "–"],
        [t("busiest.worker"), worker ? <a key="p" href={link("vmq")}>{t("busiest.worker.value", { id: worker.id, busy: percent(worker.busyPpm) })}</a> : "–"],
      ]}
    />
  );
}
