/** Dialog that changes a NIC. */
import { useState } from "react";
import type { NicStatus } from "../../api/types";
import { changedKeys, command, flagArgs, type MergePatch } from "../../api/commands";
import { ChangeDialog } from "../../components/ChangeDialog";
import { fieldText, NumberField, parseNumber } from "../../components/fields";
import { useTexts } from "../../texts/texts";

const NUMBERS = ["vlan", "bandwidth_max_bps", "storm_limit_fps", "vmq_weight", "iov_weight"] as const;
type NumberKey = (typeof NUMBERS)[number];

export function NicDialog(props: { nic: NicStatus; onClose: () => void }) {
  const { t } = useTexts();
  const [config] = useState(props.nic.config);
  const [fields, setFields] = useState(
    () => Object.fromEntries(NUMBERS.map((key) => [key, fieldText(config[key])])) as Record<NumberKey, string>,
  );
  const current: MergePatch = {};
  const updated: MergePatch = {};
  let isValid = true;
  for (const key of NUMBERS) {
    current[key] = config[key] ?? null;
    const value = parseNumber(fields[key]);
    if (value === undefined) isValid = false;
    else updated[key] = value;
  }
  const patch = changedKeys(current, updated);
  return (
    <ChangeDialog
      title={t("nic.dialog", { nic: config.name })}
      about={t("nic.dialog.about")}
      action={t("nic.set")}
      change={isValid && Object.keys(patch).length > 0 ? {
        method: "PATCH",
        path: `/1.0/nics/${encodeURIComponent(config.name)}`,
        body: patch,
        command: command("nic", "set", config.name, ...flagArgs(patch)),
      } : undefined}
      onClose={props.onClose}
    >
      <div className="fields">
        {NUMBERS.map((key) => (
          <NumberField key={key} label={t(`nic.${key}`)} help={t(`nic.${key}.about`)} value={fields[key]} onChange={(value) => setFields({ ...fields, [key]: value })} />
        ))}
      </div>
    </ChangeDialog>
  );
}
