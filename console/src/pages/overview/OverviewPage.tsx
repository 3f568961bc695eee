/** Page "Overview": key figures, problems, charts and latest events of the host. */
import { useTopic } from "../../live/hooks";
import { useEvents } from "../../live/event_log";
import { useRates } from "../../live/history";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { ApiErrorAlert, WhenLoaded } from "../../components/States";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { EventList } from "../events/EventList";
import { attentionItems } from "./attention";
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
  const items = attentionItems({
    nics: nics.data, uplinks: uplinks.data, teams: teams.data, disks: disks.data, stores: stores.data, vms: vms.data,
    power: power.data, cluster: cluster.data, flows: flows.data, rates, events,
  });
  return (
    <PageFrame title={t("overview.title")}>
      <WhenLoaded topics={[nics, uplinks, disks, stores, vms, power]}>
        {() => (
          <>
            <HostTiles nics={nics.data ?? []} uplinks={uplinks.data ?? []} disks={disks.data ?? []} vms={vms.data ?? []} power={power.data} rates={rates} />
            <Section title={t("attention.title")}><AttentionList items={items} /></Section>
            {operations.error && <ApiErrorAlert errors={operations.error.body?.errors ?? []} status={operations.error.status} />}
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
      </WhenLoaded>
    </PageFrame>
  );
}
