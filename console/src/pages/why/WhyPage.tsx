/** Why is this VM slow? Its way from the guest's queues to the wire and to the device. */
import { FormSelect, FormSelectOption } from "@patternfly/react-core";
import type { VmStatus } from "../../api/types";
import { useTopic } from "../../live/hooks";
import { useRates } from "../../live/history";
import { useQueueRates } from "../../live/queue_rates";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { Empty, WhenHeard } from "../../parts/States";
import { go, link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { diskWay } from "./disk_way";
import { hostWay } from "./host_stage";
import { nicWay } from "./nic_way";
import { suspects, type Way } from "./stage";
import { VerdictLabel, WayView } from "./WayView";

export function WhyPage(props: { name?: string }) {
  const { t } = useTexts();
  const vms = useTopic("vms");
  const vm = vms.data?.find((one) => one.config.name === props.name) ?? (props.name === undefined ? vms.data?.[0] : undefined);
  return (
    <PageFrame title={vm ? t("why.title", { name: vm.config.name }) : t("nav.why")} about={t("why.about")}>
      <WhenHeard of={[vms]}>
        {() => (
          <>
            {vms.data && vms.data.length > 0 && (
              <div className="row">
                <label htmlFor="why-vm">VM</label>
                <FormSelect id="why-vm" className="select" value={vm?.config.name ?? ""} onChange={(_event, name) => go(link("why", name))}>
                  {vms.data.map((one) => <FormSelectOption key={one.config.name} value={one.config.name} label={one.config.name} />)}
                </FormSelect>
              </div>
            )}
            {vm ? <Ways vm={vm} /> : <Empty title={t(props.name ? "vm.gone" : "vms.none", { name: props.name ?? "" })}>{t("vms.none.about")}</Empty>}
          </>
        )}
      </WhenHeard>
    </PageFrame>
  );
}

function Ways(props: { vm: VmStatus }) {
  const { t } = useTexts();
  const nics = useTopic("nics");
  const disks = useTopic("disks");
  const stores = useTopic("stores");
  const switches = useTopic("switches");
  const uplinks = useTopic("uplinks");
  const teams = useTopic("teams");
  const flows = useTopic("qos/flows");
  const vmq = useTopic("vmq");
  const queues = useQueueRates();
  const rates = useRates();
  const { vm } = props;
  const ways = (): Way[] => [
    hostWay(vm),
    ...(nics.data ?? []).filter((nic) => vm.config.nics?.includes(nic.config.name)).map((nic) => {
      const of = switches.data?.find((one) => one.config.name === nic.config.switch);
      return nicWay({
        nic, vm: vm.config.name, of, queues: queues.rates, workers: rates?.workers ?? [],
        rate: rates?.nics.find((one) => one.name === nic.config.name),
        vmq: vmq.data?.find((one) => one.uplink === of?.config.uplink),
        uplinks: uplinks.data ?? [], teams: teams.data ?? [], uplinkRates: rates?.uplinks ?? [],
      });
    }),
    ...(disks.data ?? []).filter((disk) => vm.config.disks?.includes(disk.config.name)).map((disk) => diskWay({
      disk,
      isPlugged: vm.disks?.includes(disk.config.name) ?? false,
      flow: flows.data?.find((one) => one.disk === disk.config.name),
      store: stores.data?.find((one) => one.config.name === disk.config.store),
      rate: rates?.disks.find((one) => one.name === disk.config.name),
    })),
  ];
  return (
    <WhenHeard of={[nics, disks, stores, switches, uplinks, teams, flows, queues.heard]}>
      {() => <Shown ways={ways()} title={t("why.found")} />}
    </WhenHeard>
  );
}

function Shown(props: { ways: Way[]; title: string }) {
  const { t } = useTexts();
  const found = suspects(props.ways);
  return (
    <>
      <Section title={props.title}>
        {found.length === 0 ? <p>{t("why.nothing")}</p> : (
          <ol className="attention">
            {found.map(({ way, stage }, at) => (
              <li key={at} className="why-suspect">
                <VerdictLabel verdict={stage.verdict} />
                <span>
                  <strong>{t(`why.kind.${way.kind}`, { name: way.name })} · {t(stage.title, stage.params)}</strong>{" "}
                  {t(stage.why, stage.whyParams)}{" "}
                  {stage.remedy && <a href={stage.remedy.href}>{t(stage.remedy.text, stage.remedy.params)}</a>}
                </span>
              </li>
            ))}
          </ol>
        )}
      </Section>
      {props.ways.map((way) => (
        <Section key={`${way.kind}/${way.name}`} title={t(`why.kind.${way.kind}`, { name: way.name })}><WayView way={way} /></Section>
      ))}
    </>
  );
}
