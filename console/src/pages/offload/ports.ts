/** Ports with offloads: NICs, uplinks and the host NICs of internal switches. */
import type { NicStatus, OffloadStatus, SwitchStatus, UplinkStatus } from "../../api/types";

export const OFFLOAD_KEYS = ["tx_checksum", "rx_checksum", "segmentation", "receive_coalescing", "tx_ip_checksum", "rx_ip_checksum"] as const;
export type OffloadKey = (typeof OFFLOAD_KEYS)[number];

export interface OffloadPort {
  id: string;
  kind: "nic" | "uplink" | "switch";
  name: string;
  /** Name of the port in CLI commands. */
  cliName: string;
  path: string;
  /** Key of the configuration that contains the offload settings. */
  section: "offload" | "host_offload";
  config: Partial<Record<OffloadKey, boolean>> | undefined;
  offloads: OffloadStatus[];
}

export function offloadPorts(nics: readonly NicStatus[], uplinks: readonly UplinkStatus[], switches: readonly SwitchStatus[]): OffloadPort[] {
  const usedNames = new Set([...nics, ...uplinks].map((object) => object.config.name));
  const port = (kind: OffloadPort["kind"], plural: string, name: string, config: OffloadPort["config"], offloads: OffloadStatus[]): OffloadPort => ({
    id: `${kind}/${name}`,
    kind,
    name,
    // A host NIC has the name of its switch. The prefix distinguishes it from a NIC or uplink of the same name.
    cliName: kind === "switch" && usedNames.has(name) ? `switch:${name}` : name,
    path: `/1.0/${plural}/${encodeURIComponent(name)}`,
    section: kind === "switch" ? "host_offload" : "offload",
    config,
    offloads,
  });
  return [
    ...nics.map((nic) => port("nic", "nics", nic.config.name, nic.config.offload, nic.offloads)),
    ...uplinks.map((uplink) => port("uplink", "uplinks", uplink.config.name, uplink.config.offload, uplink.offloads ?? [])),
    ...switches
      .filter((switchStatus) => switchStatus.config.kind === "internal")
      .map((switchStatus) => port("switch", "switches", switchStatus.config.name, switchStatus.config.host_offload, switchStatus.host_nic_offloads ?? [])),
  ];
}
