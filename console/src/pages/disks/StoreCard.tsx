/** Card of a store: capacity, reserved and delivered IOPS, and the state of the minimums of its disks. */
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { StoreStatus } from "../../api/types";
import { command } from "../../api/commands";
import { Bar } from "../../components/Bar";
import { ChangeDialog } from "../../components/ChangeDialog";
import { PropertyList } from "../../components/PropertyList";
import { Section } from "../../components/Section";
import { StateLabel, StorageStateLabel } from "../../components/StateLabel";
import { useTexts } from "../../texts/texts";
import { count, iops, latency, size } from "../../units/units";
import type { StoreDelivery } from "./delivery";
import { StoreChart } from "./FlowCharts";

/** Ratio of delivered IOPS to capacity from which the card recommends to measure the store. */
const EXCEEDS_CAPACITY_FACTOR = 1.5;

export function StoreCard(props: { store: StoreStatus; delivery: StoreDelivery | undefined; disks: string[] }) {
  const { t, label } = useTexts();
  const { store } = props;
  const [isMeasuring, setIsMeasuring] = useState(false);
  const name = store.config.name;
  const capacity = store.capacity_iops ?? undefined;
  const shareOfCapacityPpm = (value: number) => (capacity ? (1e6 * value) / capacity : 0);
  const exceedsCapacity = capacity !== undefined && store.delivered_iops > EXCEEDS_CAPACITY_FACTOR * capacity;
  return (
    <Section
      title={<span className="row">{t("stores.title", { store: name })} <StorageStateLabel object={store} /></span>}
      actions={<Button variant="secondary" size="sm" onClick={() => setIsMeasuring(true)}>{t("stores.measure")}</Button>}
    >
      {store.reason && <p className="spaced">{store.reason}</p>}
      {store.stale && <p className="spaced">{t("stores.stale")}</p>}
      <PropertyList
        items={[
          [t("stores.capacity"), capacity === undefined
            ? t("stores.unknown")
            : `${iops(capacity)} (${label(store.capacity_source)})`],
          [t("stores.reserved"), <Bar key="reserved" ppm={shareOfCapacityPpm(store.reserved_iops)} marks={capacity ? [900_000] : []} tone={shareOfCapacityPpm(store.reserved_iops) > 900_000 ? "bad" : "plain"} text={count(store.reserved_iops)} />],
          [t("stores.delivered"), <Bar key="delivered" ppm={shareOfCapacityPpm(store.delivered_iops)} tone="plain" text={count(store.delivered_iops)} />],
          [t("stores.latency"), store.latency_ns == null ? "–" : latency(store.latency_ns)],
          [t("stores.depth"), t("stores.depth.value", { depth: store.depth, allowed: store.depth_allowed })],
          [t("stores.free"), store.free_bytes == null ? "–" : t("stores.free.value", { free: size(store.free_bytes), total: size(store.total_bytes ?? 0) })],
        ]}
      />
      {exceedsCapacity && <p className="spaced">{t("stores.more", { does: iops(store.delivered_iops), can: iops(capacity ?? 0) })}</p>}
      <MinimumStatus delivery={props.delivery} />
      {props.disks.length > 0 && <StoreChart store={name} disks={props.disks} />}
      {isMeasuring && (
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
          onClose={() => setIsMeasuring(false)}
        />
      )}
    </Section>
  );
}

function MinimumStatus(props: { delivery: StoreDelivery | undefined }) {
  const { t } = useTexts();
  const { delivery } = props;
  if (!delivery || delivery.disks.length === 0) return null;
  if (delivery.unmet.length > 0) {
    return (
      <ul className="spaced plain-list">
        {delivery.unmet.map((disk) => (
          <li key={disk.disk}>
            <StateLabel state="unmet" />{" "}
            {t("delivery.line", { disk: disk.disk, lacks: count(disk.shortfall) })}{" "}
            {disk.excessDisks.length > 0
              ? t("delivery.by", { who: disk.excessDisks.map((other) => `${other.disk} (+${count(other.excess)})`).join(", ") })
              : t("delivery.nobody")}
          </li>
        ))}
      </ul>
    );
  }
  const aboveGuarantee = delivery.disks.filter((disk) => disk.excess > 0);
  return (
    <p className="spaced">
      <StateLabel state="met" />{" "}
      {aboveGuarantee.length > 0
        ? t("delivery.none", { who: aboveGuarantee.map((disk) => `${disk.disk} (+${count(disk.excess)})`).join(", ") })
        : t("delivery.idle")}
    </p>
  );
}
