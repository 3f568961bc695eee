/** Changes of SR-IOV adapters and their virtual functions. */
import type { components } from "../../api/schema";
import type { SriovAdapter } from "../../api/types";
import { command, assignmentArgs, type MergePatch } from "../../api/commands";
import type { Change } from "../../components/ChangeDialog";

export type PfConfig = components["schemas"]["PfConfig"];
type VfConfig = components["schemas"]["VfConfig"];

/** Valid name of an object. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** Returns the CLI argument that selects an adapter. */
export function adapterArg(adapter: SriovAdapter): string {
  return adapter.pf ?? (adapter.netns == null ? adapter.device : undefined) ?? adapter.address;
}

/** Returns a new configuration for an adapter without one. */
function newPf(adapter: SriovAdapter, vfs: number): PfConfig {
  const device = (adapter.netns == null ? adapter.device : undefined) ?? adapter.address;
  return { name: NAME.test(device) ? device : adapter.address.replaceAll(":", "-"), device, vfs };
}

/** Returns the change to another number of VFs. Removes the configuration of VFs that no longer exist. */
export function enableVfs(adapter: SriovAdapter, config: PfConfig | undefined, count: number): Change {
  const commandText = command("vf", "enable", adapterArg(adapter), "--count", String(count));
  if (!config) return { method: "POST", path: "/1.0/pfs", body: newPf(adapter, count), command: commandText };
  return {
    method: "PATCH",
    path: `/1.0/pfs/${encodeURIComponent(config.name)}`,
    body: { vfs: count, vf: (config.vf ?? []).filter((vf) => vf.index < count) },
    command: commandText,
  };
}

/** Returns the change of the configuration of a VF; `undefined` if the patch is empty. */
export function setVf(adapter: SriovAdapter, config: PfConfig | undefined, index: number, patch: MergePatch): Change | undefined {
  if (Object.keys(patch).length === 0) return undefined;
  const commandText = command("vf", "set", adapterArg(adapter), String(index), ...assignmentArgs(patch));
  const base = config ?? newPf(adapter, adapter.vfs_enabled);
  const current = base.vf?.find((vf) => vf.index === index) ?? { index };
  const updated = Object.fromEntries(Object.entries({ ...current, ...patch }).filter(([, value]) => value !== null)) as unknown as VfConfig;
  const vf = [...(base.vf ?? []).filter((other) => other.index !== index), updated].sort((a, b) => a.index - b.index);
  return config
    ? { method: "PATCH", path: `/1.0/pfs/${encodeURIComponent(config.name)}`, body: { vf }, command: commandText }
    : { method: "POST", path: "/1.0/pfs", body: { ...base, vf }, command: commandText };
}
