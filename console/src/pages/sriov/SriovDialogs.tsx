import { useState } from "react";
import type { SriovAdapter } from "../../api/types";
import { changed, type Keys } from "../../api/commands";
import { ChangeDialog } from "../../parts/ChangeDialog";
import { ChoiceField, fieldOf, NumberField, numberOf } from "../../parts/fields";
import { useTexts } from "../../texts/texts";
import { adapterWord, enableVfs, setVf, type PfConfig } from "./changes";

type Vf = SriovAdapter["vfs"][number];

/** How many VFs an adapter has. */
export function EnableDialog(props: { adapter: SriovAdapter; config: PfConfig | undefined; onClose: () => void }) {
  const { t } = useTexts();
  const [adapter] = useState(props.adapter);
  const [count, setCount] = useState(String(adapter.vfs_enabled));
  const number = numberOf(count);
  const change = number == null || number === adapter.vfs_enabled ? undefined : enableVfs(adapter, props.config, number);
  return (
    <ChangeDialog
      title={t("sriov.enable.title", { adapter: adapterWord(adapter) })}
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
const LEFT = "";

/** How one VF is set up; what is left empty is left alone. */
export function VfDialog(props: { adapter: SriovAdapter; vf: Vf; config: PfConfig | undefined; onClose: () => void }) {
  const { t } = useTexts();
  const [{ adapter, vf }] = useState(props);
  const [wanted] = useState(() => props.config?.vf?.find((one) => one.index === vf.index));
  const [numbers, setNumbers] = useState(() => Object.fromEntries(NUMBERS.map((key) => [key, fieldOf(wanted?.[key])])) as Record<(typeof NUMBERS)[number], string>);
  const [switches, setSwitches] = useState(() => Object.fromEntries(SWITCHES.map((key) => [key, wanted?.[key] == null ? LEFT : wanted[key] ? "on" : "off"])) as Record<(typeof SWITCHES)[number], string>);
  const before: Keys = {};
  const after: Keys = {};
  let isRight = true;
  for (const key of NUMBERS) {
    before[key] = wanted?.[key] ?? null;
    const value = numberOf(numbers[key]);
    if (value === undefined) isRight = false;
    else after[key] = value;
  }
  for (const key of SWITCHES) {
    before[key] = wanted?.[key] ?? null;
    after[key] = switches[key] === LEFT ? null : switches[key] === "on";
  }
  return (
    <ChangeDialog
      title={t("vf.dialog", { vf: vf.index })}
      about={t("vf.dialog.about")}
      action={t("nic.set")}
      change={isRight ? setVf(adapter, props.config, vf.index, changed(before, after)) : undefined}
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
            options={[[LEFT, t("vf.left")], ["on", t("vmq.on")], ["off", t("vmq.off")]]}
          />
        ))}
      </div>
    </ChangeDialog>
  );
}
