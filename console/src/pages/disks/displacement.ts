/** Who gets what others are entitled to, on one store. Rates are normalised operations per second. */
import type { QosFlowStatus } from "../../api/types";

export interface Share {
  disk: string;
  entitled: number;
  wanted: number;
  got: number;
  /** What of it is beyond what it is entitled to. */
  beyond: number;
  /** What it lacks of what it is entitled to and wants. */
  lacks: number;
}

export interface StoreShares {
  store: string;
  got: number;
  shares: Share[];
  /** Disks that lack something, and those that get more than they are entitled to meanwhile, most first. */
  displaced: { disk: string; lacks: number; by: { disk: string; beyond: number }[] }[];
}

/** What is less than this part of an entitlement is the inaccuracy of five seconds' counting. */
const TOLERANCE = 0.05;

export function sharesByStore(flows: readonly QosFlowStatus[]): StoreShares[] {
  const stores = new Map<string, Share[]>();
  for (const flow of flows) {
    const { guaranteed_iops: entitled, demand_iops: wanted, delivered_iops: got } = flow.last_5_s;
    const lack = Math.max(0, Math.min(entitled, wanted) - got);
    const share: Share = {
      disk: flow.disk,
      entitled,
      wanted,
      got,
      beyond: Math.max(0, got - entitled),
      lacks: lack > entitled * TOLERANCE ? lack : 0,
    };
    stores.set(flow.store, [...(stores.get(flow.store) ?? []), share]);
  }
  return [...stores].map(([store, shares]) => {
    const sorted = [...shares].sort((a, b) => b.got - a.got || a.disk.localeCompare(b.disk));
    const by = sorted
      .filter((share) => share.beyond > 0)
      .sort((a, b) => b.beyond - a.beyond)
      .map(({ disk, beyond }) => ({ disk, beyond }));
    return {
      store,
      got: sorted.reduce((sum, share) => sum + share.got, 0),
      shares: sorted,
      displaced: sorted
        .filter((share) => share.lacks > 0)
        .map((share) => ({ disk: share.disk, lacks: share.lacks, by: by.filter((one) => one.disk !== share.disk) })),
    };
  });
}
