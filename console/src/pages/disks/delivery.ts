/** Delivered IOPS of disks compared with their guarantees, by store. All rates are normalised IOPS. */
import type { QosFlowStatus } from "../../api/types";

export interface DiskDelivery {
  disk: string;
  guaranteed: number;
  demand: number;
  delivered: number;
  /** Delivered IOPS above the guarantee. */
  excess: number;
  /** Guaranteed IOPS that have demand but are not delivered. */
  shortfall: number;
}

export interface StoreDelivery {
  store: string;
  delivered: number;
  disks: DiskDelivery[];
  /** Disks with a shortfall, each with the other disks above their guarantees, highest excess first. */
  unmet: { disk: string; shortfall: number; excessDisks: { disk: string; excess: number }[] }[];
}

/** A smaller shortfall, as a fraction of the guarantee, is within the accuracy of a 5 s mean. */
const TOLERANCE = 0.05;

export function deliveryByStore(flows: readonly QosFlowStatus[]): StoreDelivery[] {
  const stores = new Map<string, DiskDelivery[]>();
  for (const flow of flows) {
    const { guaranteed_iops: guaranteed, demand_iops: demand, delivered_iops: delivered } = flow.last_5_s;
    const missing = Math.max(0, Math.min(guaranteed, demand) - delivered);
    const delivery: DiskDelivery = {
      disk: flow.disk,
      guaranteed,
      demand,
      delivered,
      excess: Math.max(0, delivered - guaranteed),
      shortfall: missing > guaranteed * TOLERANCE ? missing : 0,
    };
    stores.set(flow.store, [...(stores.get(flow.store) ?? []), delivery]);
  }
  return [...stores].map(([store, disks]) => {
    const sorted = [...disks].sort((a, b) => b.delivered - a.delivered || a.disk.localeCompare(b.disk));
    const excessDisks = sorted
      .filter((disk) => disk.excess > 0)
      .sort((a, b) => b.excess - a.excess)
      .map(({ disk, excess }) => ({ disk, excess }));
    return {
      store,
      delivered: sorted.reduce((sum, disk) => sum + disk.delivered, 0),
      disks: sorted,
      unmet: sorted
        .filter((disk) => disk.shortfall > 0)
        .map((disk) => ({ disk: disk.disk, shortfall: disk.shortfall, excessDisks: excessDisks.filter((other) => other.disk !== disk.disk) })),
    };
  });
}
