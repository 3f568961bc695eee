/** Switches, NICs, uplinks and teams, and the way of frames between them. */
import { useState } from "react";
import type { NicStatus, SwitchStatus } from "../../api/types";
import { useTopic } from "../../live/hooks";
import { useRates } from "../../live/history";
import { useQueueRates } from "../../live/queue_rates";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { Empty, WhenHeard } from "../../parts/States";
import { useTexts } from "../../texts/texts";
import { NicDialog } from "./NicDialog";
import { pathPicture } from "./path";
import { PathPicture } from "./PathPicture";
import { byName, NicTable, SwitchTable, UplinkTable } from "./PortTables";
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
  const [changing, setChanging] = useState<NicStatus>();
  const loads = new Map(vmq.data?.flatMap((one) => one.queues.map((queue): [string, number] => [queue.queue, queue.load_ppm])));
  const busy = new Map(rates?.workers.map((one): [number, number] => [one.id, one.busyPpm]));
  const teamOf = new Map(teams.data?.flatMap((team) => team.members.map((member): [string, string] => [member.uplink, team.config.name])));
  const picture = (of: SwitchStatus) => pathPicture({
    of, nics: nics.data ?? [], vms: vms.data ?? [], uplinks: uplinks.data ?? [], teams: teams.data ?? [],
    queues: queues.rates, workers: top.data?.workers ?? [], loads, busy,
  });
  return (
    <PageFrame title={t("network.title")} about={t("network.about")}>
      <WhenHeard of={[switches, nics, uplinks, teams, vms, queues.heard]}>
        {() => switches.data?.length === 0 ? (
          <Empty title={t("network.none")}>{t("network.none.about")}</Empty>
        ) : (
          <>
            {switches.data?.filter((one) => one.nics.length > 0).map((one) => (
              <Section key={one.config.name} title={t("path.title", { name: one.config.name })}>
                <PathPicture picture={picture(one)} title={t("path.title", { name: one.config.name })} />
              </Section>
            ))}
            <Section title={t("network.nics")}>
              <NicTable nics={nics.data ?? []} vms={vms.data ?? []} rates={byName(rates?.nics)} onChange={setChanging} />
            </Section>
            {teams.data && teams.data.length > 0 && <Section title={t("network.teams")}><TeamTable teams={teams.data} /></Section>}
            <Section title={t("network.uplinks")}>
              <UplinkTable uplinks={uplinks.data ?? []} teamOf={teamOf} rates={byName(rates?.uplinks)} />
            </Section>
            <Section title={t("network.switches")}><SwitchTable switches={switches.data ?? []} /></Section>
          </>
        )}
      </WhenHeard>
      {changing && <NicDialog nic={changing} onClose={() => setChanging(undefined)} />}
    </PageFrame>
  );
}
