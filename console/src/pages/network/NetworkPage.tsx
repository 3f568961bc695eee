/** Page "Network": switches, NICs, uplinks and teams, and a diagram of the traffic of each switch. */
import { useState } from "react";
import type { NicStatus, SwitchStatus } from "../../api/types";
import { useTopic } from "../../live/hooks";
import { useRates } from "../../live/history";
import { useQueueRates } from "../../live/queue_rates";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Empty, WhenLoaded } from "../../components/States";
import { useTexts } from "../../texts/texts";
import { NicDialog } from "./NicDialog";
import { switchDiagram } from "./switch_diagram";
import { SwitchDiagram } from "./SwitchDiagram";
import { ratesByName, NicTable, SwitchTable, UplinkTable } from "./PortTables";
import { TeamTable } from "./TeamTable";

export function NetworkPage() {
  const { t } = useTexts();
  const switches = useTopic("switches");
  const nics = useTopic("nics");
  const uplinks = useTopic("uplinks");
  const teams = useTopic("teams");
  const vms = useTopic("vms");
  const top = useTopic("top");
  const vmq = useTopic("vmq");
  const queues = useQueueRates();
  const rates = useRates();
  const [editedNic, setEditedNic] = useState<NicStatus>();
  const loadByQueue = new Map(vmq.data?.flatMap((status) => status.queues.map((queue): [string, number] => [queue.queue, queue.load_ppm])));
  const busyByWorker = new Map(rates?.workers.map((worker): [number, number] => [worker.id, worker.busyPpm]));
  const teamByUplink = new Map(teams.data?.flatMap((team) => team.members.map((member): [string, string] => [member.uplink, team.config.name])));
  const diagramOf = (switchStatus: SwitchStatus) => switchDiagram({
    switchStatus, nics: nics.data ?? [], vms: vms.data ?? [], uplinks: uplinks.data ?? [], teams: teams.data ?? [],
    queues: queues.rates, workers: top.data?.workers ?? [], loadByQueue, busyByWorker,
  });
  return (
    <PageFrame title={t("network.title")} about={t("network.about")}>
      <WhenLoaded topics={[switches, nics, uplinks, teams, vms, queues.topic]}>
        {() => switches.data?.length === 0 ? (
          <Empty title={t("network.none")}>{t("network.none.about")}</Empty>
        ) : (
          <>
            {switches.data?.filter((switchStatus) => switchStatus.nics.length > 0).map((switchStatus) => (
              <Section key={switchStatus.config.name} title={t("path.title", { name: switchStatus.config.name })}>
                <SwitchDiagram diagram={diagramOf(switchStatus)} title={t("path.title", { name: switchStatus.config.name })} />
              </Section>
            ))}
            <Section title={t("network.nics")}>
              <NicTable nics={nics.data ?? []} vms={vms.data ?? []} rates={ratesByName(rates?.nics)} onChange={setEditedNic} />
            </Section>
            {teams.data && teams.data.length > 0 && <Section title={t("network.teams")}><TeamTable teams={teams.data} /></Section>}
            <Section title={t("network.uplinks")}>
              <UplinkTable uplinks={uplinks.data ?? []} teamByUplink={teamByUplink} rates={ratesByName(rates?.uplinks)} />
            </Section>
            <Section title={t("network.switches")}><SwitchTable switches={switches.data ?? []} /></Section>
          </>
        )}
      </WhenLoaded>
      {editedNic && <NicDialog nic={editedNic} onClose={() => setEditedNic(undefined)} />}
    </PageFrame>
  );
}
