/** A store: what it can do, what is promised of it and what it does; and who gets what. */
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { StoreStatus } from "../../api/types";
import { command } from "../../api/commands";
import { Bar } from "../../parts/Bar";
import { ChangeDialog } from "../../parts/ChangeDialog";
import { Facts } from "../../parts/Facts";
import { Section } from "../../parts/Section";
import { StateLabel, StorageStateLabel } from "../../parts/StateLabel";
import { useTexts } from "../../texts/texts";
import { count, iops, latency, size } from "../../units/units";
import type { StoreShares } from "./displacement";
import { StoreChart } from "./FlowCharts";

/** A store that does so much more than was said can be promised more. */
const FAR_MORE = 1.5;

export function StoreCard(props: { store: StoreStatus; shares: StoreShares | undefined; disks: string[] }) {
  const { t, word } = useTexts();
  const { store } = props;
  const [measuring, setMeasuring] = useState(false);
  const name = store.config.name;
  const capability = store.capacity_iops ?? undefined;
  const ofCapability = (value: number) => (capability ? (1e6 * value) / capability : 0);
  const doesMore = capability !== undefined && store.delivered_iops > FAR_MORE * capability;
  return (
    <Section
      title={<span className="row">{t("stores.title", { store: name })} <StorageStateLabel of={store} /></span>}
      actions={<Button variant="secondary" size="sm" onClick={() => setMeasuring(true)}>{t("stores.measure")}</Button>}
    >
      {store.reason && <p className="spaced">{store.reason}</p>}
      {store.stale && <p className="spaced">{t("stores.stale")}</p>}
      <Facts
        of={[
          [t("stores.capacity"), capability === undefined
            ? t("stores.unknown")
            : `${iops(capability)} (${word(store.capacity_source)})`],
          [t("stores.reserved"), <Bar key="promised" ppm={ofCapability(store.reserved_iops)} marks={capability ? [900_000] : []} tone={ofCapability(store.reserved_iops) > 900_000 ? "bad" : "plain"} text={count(store.reserved_iops)} />],
          [t("stores.delivered"), <Bar key="delivered" ppm={ofCapability(store.delivered_iops)} tone="plain" text={count(store.delivered_iops)} />],
          [t("stores.latency"), store.latency_ns == null ? "–" : latency(store.latency_ns)],
          [t("stores.depth"), t("stores.depth.value", { depth: store.depth, allowed: store.depth_allowed })],
          [t("stores.free"), store.free_bytes == null ? "–" : t("stores.free.value", { free: size(store.free_bytes), total: size(store.total_bytes ?? 0) })],
        ]}
      />
      {doesMore && <p className="spaced">{t("stores.more", { does: iops(store.delivered_iops), can: iops(capability ?? 0) })}</p>}
      <Displaced shares={props.shares} />
      {props.disks.length > 0 && <StoreChart store={name} disks={props.disks} />}
      {measuring && (
        <ChangeDialog
          title={t("stores.measure.title", { store: name })}
          about={t("stores.measure.about")}
          action={t("stores.measure")}
          withoutPreview
          change={{
            method: "POST",
            path: `/1.0/stores/${encodeURIComponent(name)}/measure`,
            body: {},
            command: command("store", "measure", name),
          }}
          onClose={() => setMeasuring(false)}
        />
      )}
    </Section>
  );
}

function Displaced(props: { shares: StoreShares | undefined }) {
  const { t } = useTexts();
  const { shares } = props;
  if (!shares || shares.shares.length === 0) return null;
  if (shares.displaced.length > 0) {
    return (
      <ul className="spaced plain-list">
        {shares.displaced.map((one) => (
          <li key={one.disk}>
            <StateLabel state="unmet" />{" "}
            {t("displaced.line", { disk: one.disk, lacks: count(one.lacks) })}{" "}
            {one.by.length > 0
              ? t("displaced.by", { who: one.by.map((by) => `${by.disk} (+${count(by.beyond)})`).join(", ") })
              : t("displaced.nobody")}
          </li>
        ))}
      </ul>
    );
  }
  const beyond = shares.shares.filter((share) => share.beyond > 0);
  return (
    <p className="spaced">
      <StateLabel state="met" />{" "}
      {beyond.length > 0
        ? t("displaced.none", { who: beyond.map((share) => `${share.disk} (+${count(share.beyond)})`).join(", ") })
        : t("displaced.idle")}
    </p>
  );
}
