/** Who loads the host most, of each kind, and where to do something about it. */
import type { QosFlowStatus, VmqStatus } from "../../api/types";
import type { Rates } from "../../live/rates";
import { Facts } from "../../parts/Facts";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { bitRate, iops, percent } from "../../units/units";

function most<T>(all: readonly T[] | undefined, of: (one: T) => number): T | undefined {
  return [...(all ?? [])].sort((a, b) => of(b) - of(a)).find((one) => of(one) > 0);
}

export function Busiest(props: { rates: Rates | undefined; flows: readonly QosFlowStatus[]; vmq: readonly VmqStatus[] }) {
  const { t } = useTexts();
  const disk = most(props.flows, (flow) => flow.last_5_s.delivered_iops);
  const nic = most(props.rates?.nics, (one) => one.rxBps + one.txBps);
  const uplink = most(props.rates?.uplinks, (one) => one.rxBps + one.txBps);
  const queue = most(props.vmq.flatMap((one) => one.queues), (one) => one.load_ppm);
  const worker = most(props.rates?.workers, (one) => one.busyPpm);
  return (
    <Facts
      columns={1}
      of={[
        [t("busiest.disk"), disk ? <a key="d" href={link("disks", disk.disk)}>{`${disk.disk}: ${iops(disk.last_5_s.delivered_iops)}`}</a> : "–"],
        [t("busiest.nic"), nic ? <a key="n" href={link("network")}>{`${nic.name}: ${bitRate(nic.rxBps + nic.txBps)}`}</a> : "–"],
        [t("busiest.uplink"), uplink ? <a key="u" href={link("network")}>{`${uplink.name}: ${bitRate(uplink.rxBps + uplink.txBps)}`}</a> : "–"],
        [t("busiest.queue"), queue ? <a key="q" href={link("vmq")}>{t("busiest.queue.value", { queue: queue.queue, load: percent(queue.load_ppm), worker: queue.worker })}</a> : "–"],
        [t("busiest.worker"), worker ? <a key="p" href={link("vmq")}>{t("busiest.worker.value", { id: worker.id, busy: percent(worker.busyPpm) })}</a> : "–"],
      ]}
    />
  );
}
