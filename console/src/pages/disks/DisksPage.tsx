/** Page "Disks and QoS": guaranteed IOPS, demand and delivered IOPS of disks, and their stores and policies. */
import { useState } from "react";
import type { DiskStatus } from "../../api/types";
import { useTopic } from "../../live/hooks";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Empty, WhenLoaded } from "../../components/States";
import { useTexts } from "../../texts/texts";
import { deliveryByStore } from "./delivery";
import { FlowTable } from "./FlowTable";
import type { LimitFields } from "./limits";
import { LimitsDialog } from "./LimitsDialog";
import { Policies } from "./Policies";
import { StoreCard } from "./StoreCard";
import { WhatIf } from "./WhatIf";

export function DisksPage() {
  const { t } = useTexts();
  const disks = useTopic("disks");
  const stores = useTopic("stores");
  const flows = useTopic("qos/flows");
  const policies = useTopic("qos-policies");
  const [changing, setChanging] = useState<{ disk: DiskStatus; start?: Partial<LimitFields> }>();
  return (
    <PageFrame title={t("disks.title")} about={t("disks.about")}>
      <WhenLoaded topics={[disks, stores, flows]}>
        {() => {
          const all = disks.data ?? [];
          if (all.length === 0 && stores.data?.length === 0) return <Empty title={t("disks.none")}>{t("disks.none.about")}</Empty>;
          const deliveries = new Map(deliveryByStore(flows.data ?? []).map((delivery) => [delivery.store, delivery]));
          return (
            <>
              <Section title={t("disks.table")}>
                <FlowTable disks={all} flows={flows.data ?? []} onLimits={(disk) => setChanging({ disk })} />
              </Section>
              <div className="grid-wide">
                {stores.data?.map((store) => (
                  <StoreCard
                    key={store.config.name}
                    store={store}
                    delivery={deliveries.get(store.config.name)}
                    disks={all.filter((disk) => disk.config.store === store.config.name).map((disk) => disk.config.name)}
                  />
                ))}
              </div>
              {all.length > 0 && (
                <Section title={t("whatif.title")}>
                  <WhatIf disks={all} onSet={(disk, minimum) => setChanging({ disk, start: { min_iops: minimum } })} />
                </Section>
              )}
              {policies.data && policies.data.length > 0 && (
                <Section title={t("policies.title")}><Policies policies={policies.data} /></Section>
              )}
            </>
          );
        }}
      </WhenLoaded>
      {changing && (
        <LimitsDialog disk={changing.disk} policies={policies.data ?? []} start={changing.start} onClose={() => setChanging(undefined)} />
      )}
    </PageFrame>
  );
}
