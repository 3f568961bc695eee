/** Disks and Storage QoS: who is entitled to what, wants it, and gets it. */
import { useState } from "react";
import type { DiskStatus } from "../../api/types";
import { useTopic } from "../../live/hooks";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { Empty, WhenHeard } from "../../parts/States";
import { useTexts } from "../../texts/texts";
import { sharesByStore } from "./displacement";
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
      <WhenHeard of={[disks, stores, flows]}>
        {() => {
          const all = disks.data ?? [];
          if (all.length === 0 && stores.data?.length === 0) return <Empty title={t("disks.none")}>{t("disks.none.about")}</Empty>;
          const shares = new Map(sharesByStore(flows.data ?? []).map((one) => [one.store, one]));
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
                    shares={shares.get(store.config.name)}
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
      </WhenHeard>
      {changing && (
        <LimitsDialog disk={changing.disk} policies={policies.data ?? []} start={changing.start} onClose={() => setChanging(undefined)} />
      )}
    </PageFrame>
  );
}
