/** The host at a glance, and what needs attention. */
import { useTopic } from "../../live/hooks";
import { useEvents } from "../../live/event_log";
import { useRates } from "../../live/history";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { WhenHeard } from "../../parts/States";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { EventList } from "../events/EventList";
import { attention } from "./attention";
import { AttentionList } from "./AttentionList";
import { Busiest } from "./Busiest";
import { HostCharts } from "./HostCharts";
import { HostTiles } from "./HostTiles";
import { Operations } from "./Operations";

export function OverviewPage() {
  const { t } = useTexts();
  const nics = useTopic("nics");
  const uplinks = useTopic("uplinks");
  const teams = useTopic("teams");
  const disks = useTopic("disks");
  const stores = useTopic("stores");
  const vms = useTopic("vms");
  const power = useTopic("power");
  const cluster = useTopic("cluster");
  const flows = useTopic("qos/flows");
  const vmq = useTopic("vmq");
  const operations = useTopic("operations");
  const rates = useRates();
  const events = useEvents();
  const found = attention({
    nics: nics.data, uplinks: uplinks.data, teams: teams.data, disks: disks.data, stores: stores.data, vms: vms.data,
    power: power.data, cluster: cluster.data, flows: flows.data, rates, events,
  });
  return (
    <PageFrame title={t("overview.title")}>
      <WhenHeard of={[nics, uplinks, disks, stores, vms, power]}>
        {() => (
          <>
            <HostTiles nics={nics.data ?? []} uplinks={uplinks.data ?? []} disks={disks.data ?? []} vms={vms.data ?? []} power={power.data} rates={rates} />
            <Section title={t("attention.title")}><AttentionList found={found} /></Section>
            <Operations operations={operations.data ?? []} />
            <HostCharts />
            <div className="grid-wide">
              <Section title={t("busiest.title")}>
                <Busiest rates={rates} flows={flows.data ?? []} vmq={vmq.data ?? []} />
              </Section>
              <Section title={t("overview.events")} actions={<a href={link("events")}>{t("overview.events.all")}</a>}>
                <EventList events={(events ?? []).slice(-8).reverse()} />
              </Section>
            </div>
          </>
        )}
      </WhenHeard>
    </PageFrame>
  );
}
