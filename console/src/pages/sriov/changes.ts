/** Changes of adapters with SR-IOV and of their virtual functions. */
import type { components } from "../../api/schema";
import type { SriovAdapter } from "../../api/types";
import { command, settings, type Keys } from "../../api/commands";
import type { Change } from "../../parts/ChangeDialog";

export type PfConfig = components["schemas"]["PfConfig"];
type VfConfig = components["schemas"]["VfConfig"];

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** What the command line calls an adapter. */
export function adapterWord(adapter: SriovAdapter): string {
  return adapter.pf ?? (adapter.netns == null ? adapter.device : undefined) ?? adapter.address;
}

/** What is desired of an adapter of which nothing was. */
function newPf(adapter: SriovAdapter, vfs: number): PfConfig {
  const device = (adapter.netns == null ? adapter.device : undefined) ?? adapter.address;
  return { name: NAME.test(device) ? device : adapter.address.replaceAll(":", "-"), device, vfs };
}

/** Another number of VFs; what was said of VFs that are no more goes with them. */
export function enableVfs(adapter: SriovAdapter, config: PfConfig | undefined, count: number): Change {
  const words = command("vf", "enable", adapterWord(adapter), "--count", String(count));
  if (!config) return { method: "POST", path: "/1.0/pfs", body: newPf(adapter, count), command: words };
  return {
    method: "PATCH",
    path: `/1.0/pfs/${encodeURIComponent(config.name)}`,
    body: { vfs: count, vf: (config.vf ?? []).filter((vf) => vf.index < count) },
    command: words,
  };
}

/** Another set-up of one VF. */
export function setVf(adapter: SriovAdapter, config: PfConfig | undefined, index: number, keys: Keys): Change | undefined {
  if (Object.keys(keys).length === 0) return undefined;
  const words = command("vf", "set", adapterWord(adapter), String(index), ...settings(keys));
  const of = config ?? newPf(adapter, adapter.vfs_enabled);
  const before = of.vf?.find((vf) => vf.index === index) ?? { index };
  const after = Object.fromEntries(Object.entries({ ...before, ...keys }).filter(([, value]) => value !== null)) as unknown as VfConfig;
  const vf = [...(of.vf ?? []).filter((one) => one.index !== index), after].sort((a, b) => a.index - b.index);
  return config
    ? { method: "PATCH", path: `/1.0/pfs/${encodeURIComponent(config.name)}`, body: { vf }, command: words }
    : { method: "POST", path: "/1.0/pfs", body: { ...of, vf }, command: words };
}
