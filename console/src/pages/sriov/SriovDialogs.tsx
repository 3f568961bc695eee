import { useState } from "react";
import type { SriovAdapter } from "../../api/types";
import { changedKeys, type MergePatch } from "../../api/commands";
import { ChangeDialog } from "../../components/ChangeDialog";
import { ChoiceField, fieldText, NumberField, parseNumber } from "../../components/fields";
import { useTexts } from "../../texts/texts";
import { adapterArg, enableVfs, setVf, type PfConfig } from "./changes";

type Vf = SriovAdapter["vfs"][number];

/** Dialog that sets the number of VFs of an adapter. */
export function EnableDialog(props: { adapter: SriovAdapter; config: PfConfig | undefined; onClose: () => void }) {
  const { t } = useTexts();
  const [adapter] = useState(props.adapter);
  const [count, setCount] = useState(String(adapter.vfs_enabled));
  const number = parseNumber(count);
  const change = number == null || number === adapter.vfs_enabled ? undefined : enableVfs(adapter, props.config, number);
  return (
    <ChangeDialog
      title={t("sriov.enable.title", { adapter: adapterArg(adapter) })}
      about={t("sriov.enable.about")}
      action={t("sriov.enable")}
      danger={adapter.vfs_enabled > 0 ? t("sriov.enable.danger") : undefined}
      change={change}
      onClose={props.onClose}
    >
      <NumberField label={t("sriov.count")} help={t("sriov.count.about", { supported: adapter.vfs_supported })} value={count} onChange={setCount} />
    </ChangeDialog>
  );
}

const NUMBERS = ["vlan", "bandwidth_min_bps", "bandwidth_max_bps"] as const;
const SWITCHES = ["spoof_check", "trust"] as const;
const UNCHANGED = "";

/** Dialog that configures a VF. Empty fields leave settings unchanged. */
export function VfDialog(props: { adapter: SriovAdapter; vf: Vf; config: PfConfig | undefined; onClose: () => void }) {
  const { t } = useTexts();
  const [{ adapter, vf }] = useState(props);
  const [vfConfig] = useState(() => props.config?.vf?.find((other) => other.index === vf.index));
  const [numbers, setNumbers] = useState(() => Object.fromEntries(NUMBERS.map((key) => [key, fieldText(vfConfig?.[key])])) as Record<(typeof NUMBERS)[number], string>);
  const [switches, setSwitches] = useState(() => Object.fromEntries(SWITCHES.map((key) => [key, vfConfig?.[key] == null ? UNCHANGED : vfConfig[key] ? "on" : "off"])) as Record<(typeof SWITCHES)[number], string>);
  const current: MergePatch = {};
  const updated: MergePatch = {};
  let isValid = true;
  for (const key of NUMBERS) {
    current[key] = vfConfig?.[key] ?? null;
    const value = parseNumber(numbers[key]);
    if (value === undefined) isValid = false;
    else updated[key] = value;
  }
  for (const key of SWITCHES) {
    current[key] = vfConfig?.[key] ?? null;
    updated[key] = switches[key] === UNCHANGED ? null : switches[key] === "on";
  }
  return (
    <ChangeDialog
      title={t("vf.dialog", { vf: vf.index })}
      about={t("vf.dialog.about")}
      action={t("nic.set")}
      change={isValid ? setVf(adapter, props.config, vf.index, changedKeys(current, updated)) : undefined}
      onClose={props.onClose}
    >
      <div className="fields">
        {NUMBERS.map((key) => <NumberField key={key} label={t(`vf.${key}`)} value={numbers[key]} onChange={(value) => setNumbers({ ...numbers, [key]: value })} />)}
        {SWITCHES.map((key) => (
          <ChoiceField
            key={key}
            label={t(`vf.${key}`)}
            value={switches[key]}
            onChange={(value) => setSwitches({ ...switches, [key]: value })}
            options={[[UNCHANGED, t("vf.unchanged")], ["on", t("vmq.on")], ["off", t("vmq.off")]]}
          />
        ))}
      </div>
    </ChangeDialog>
  );
}
