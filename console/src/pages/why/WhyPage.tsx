/** Page "Why is VM NAME slow?": the paths from the guest's queues to the wire and to the storage device. */
import { FormSelect, FormSelectOption } from "@patternfly/react-core";
import type { VmStatus } from "../../api/types";
import { useTopic } from "../../live/hooks";
import { useRates } from "../../live/history";
import { useQueueRates } from "../../live/queue_rates";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Empty, WhenLoaded } from "../../components/States";
import { navigate, link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { diskPath } from "./disk_path";
import { cpuPath } from "./cpu_path";
import { nicPath } from "./nic_path";
import { limitingStages, type RequestPath } from "./stage";
import { VerdictLabel, PathView } from "./PathView";

export function WhyPage(props: { name?: string }) {
  const { t } = useTexts();
  const vms = useTopic("vms");
  const vm = vms.data?.find((vm) => vm.config.name === props.name) ?? (props.name === undefined ? vms.data?.[0] : undefined);
  return (
    <PageFrame title={vm ? t("why.title", { name: vm.config.name }) : t("nav.why")} about={t("why.about")}>
      <WhenLoaded topics={[vms]}>
        {() => (
          <>
            {vms.data && vms.data.length > 0 && (
              <div className="row">
                <label htmlFor="why-vm">VM</label>
                <FormSelect id="why-vm" className="select" value={vm?.config.name ?? ""} onChange={(_event, name) => navigate(link("why", name))}>
                  {vms.data.map((vm) => <FormSelectOption key={vm.config.name} value={vm.config.name} label={vm.config.name} />)}
                </FormSelect>
              </div>
            )}
            {vm ? <Paths vm={vm} /> : <Empty title={t(props.name ? "vm.notfound" : "vms.none", { name: props.name ?? "" })}>{t("vms.none.about")}</Empty>}
          </>
        )}
      </WhenLoaded>
    </PageFrame>
  );
}

function Paths(props: { vm: VmStatus }) {
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
  const paths = (): RequestPath[] => [
    cpuPath(vm),
    ...(nics.data ?? []).filter((nic) => vm.config.nics?.includes(nic.config.name)).map((nic) => {
      const switchStatus = switches.data?.find((switchStatus) => switchStatus.config.name === nic.config.switch);
      return nicPath({
        nic, vm: vm.config.name, switchStatus, queues: queues.rates, workers: rates?.workers ?? [],
        rate: rates?.nics.find((rate) => rate.name === nic.config.name),
        vmq: vmq.data?.find((status) => status.uplink === switchStatus?.config.uplink),
        uplinks: uplinks.data ?? [], teams: teams.data ?? [], uplinkRates: rates?.uplinks ?? [],
      });
    }),
    ...(disks.data ?? []).filter((disk) => vm.config.disks?.includes(disk.config.name)).map((disk) => diskPath({
      disk,
      isAttached: vm.disks?.includes(disk.config.name) ?? false,
      flow: flows.data?.find((flow) => flow.disk === disk.config.name),
      store: stores.data?.find((store) => store.config.name === disk.config.store),
      rate: rates?.disks.find((rate) => rate.name === disk.config.name),
    })),
  ];
  return (
    <WhenLoaded topics={[nics, disks, stores, switches, uplinks, teams, flows, queues.topic]}>
      {() => <Diagnosis paths={paths()} title={t("why.found")} />}
    </WhenLoaded>
  );
}

function Diagnosis(props: { paths: RequestPath[]; title: string }) {
  const { t } = useTexts();
  const limiting = limitingStages(props.paths);
  return (
    <>
      <Section title={props.title}>
        {limiting.length === 0 ? <p>{t("why.nothing")}</p> : (
          <ol className="attention">
            {limiting.map(({ path, stage }, index) => (
              <li key={index} className="limiting-stage">
                <VerdictLabel verdict={stage.verdict} />
                <span>
                  <strong>{t(`why.kind.${path.kind}`, { name: path.name })} · {t(stage.title, stage.params)}</strong>{" "}
                  {t(stage.explanation, stage.explanationParams)}{" "}
                  {stage.remedy && <a href={stage.remedy.href}>{t(stage.remedy.text, stage.remedy.params)}</a>}
                </span>
              </li>
            ))}
          </ol>
        )}
      </Section>
      {props.paths.map((path) => (
        <Section key={`${path.kind}/${path.name}`} title={t(`why.kind.${path.kind}`, { name: path.name })}><PathView path={path} /></Section>
      ))}
    </>
  );
}
