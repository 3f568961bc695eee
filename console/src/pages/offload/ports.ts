/** Ports that have offloads: NICs, uplinks, and the host's NICs of internal switches. */
import type { NicStatus, OffloadStatus, SwitchStatus, UplinkStatus } from "../../api/types";

export const OFFLOAD_KEYS = ["tx_checksum", "rx_checksum", "segmentation", "receive_coalescing", "tx_ip_checksum", "rx_ip_checksum"] as const;
export type OffloadKey = (typeof OFFLOAD_KEYS)[number];

export interface OffloadPort {
  id: string;
  kind: "nic" | "uplink" | "switch";
  name: string;
  /** What the command line calls it. */
  word: string;
  path: string;
  /** The key of its configuration that has the switches. */
  section: "offload" | "host_offload";
  config: Partial<Record<OffloadKey, boolean>> | undefined;
  offloads: OffloadStatus[];
}

export function offloadPorts(nics: readonly NicStatus[], uplinks: readonly UplinkStatus[], switches: readonly SwitchStatus[]): OffloadPort[] {
  const taken = new Set([...nics, ...uplinks].map((one) => one.config.name));
  const port = (kind: OffloadPort["kind"], plural: string, name: string, config: OffloadPort["config"], offloads: OffloadStatus[]): OffloadPort => ({
    id: `${kind}/${name}`,
    kind,
    name,
    // A host NIC goes by its switch's name, which a NIC or uplink may have, too.
    word: kind === "switch" && taken.has(name) ? `switch:${name}` : name,
    path: `/1.0/${plural}/${encodeURIComponent(name)}`,
    section: kind === "switch" ? "host_offload" : "offload",
    config,
    offloads,
  });
  return [
    ...nics.map((nic) => port("nic", "nics", nic.config.name, nic.config.offload, nic.offloads)),
    ...uplinks.map((uplink) => port("uplink", "uplinks", uplink.config.name, uplink.config.offload, uplink.offloads ?? [])),
    ...switches
      .filter((one) => one.config.kind === "internal")
      .map((one) => port("switch", "switches", one.config.name, one.config.host_offload, one.host_nic_offloads ?? [])),
  ];
}
