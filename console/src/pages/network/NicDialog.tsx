/** Changes a NIC while its traffic goes on. */
import { useState } from "react";
import type { NicStatus } from "../../api/types";
import { changed, command, flags, type Keys } from "../../api/commands";
import { ChangeDialog } from "../../parts/ChangeDialog";
import { fieldOf, NumberField, numberOf } from "../../parts/fields";
import { useTexts } from "../../texts/texts";

const NUMBERS = ["vlan", "bandwidth_max_bps", "storm_limit_fps", "vmq_weight", "iov_weight"] as const;
type NumberKey = (typeof NUMBERS)[number];

export function NicDialog(props: { nic: NicStatus; onClose: () => void }) {
  const { t } = useTexts();
  const [config] = useState(props.nic.config);
  const [fields, setFields] = useState(
    () => Object.fromEntries(NUMBERS.map((key) => [key, fieldOf(config[key])])) as Record<NumberKey, string>,
  );
  const before: Keys = {};
  const after: Keys = {};
  let isRight = true;
  for (const key of NUMBERS) {
    before[key] = config[key] ?? null;
    const value = numberOf(fields[key]);
    if (value === undefined) isRight = false;
    else after[key] = value;
  }
  const keys = changed(before, after);
  return (
    <ChangeDialog
      title={t("nic.dialog", { nic: config.name })}
      about={t("nic.dialog.about")}
      action={t("nic.set")}
      change={isRight && Object.keys(keys).length > 0 ? {
        method: "PATCH",
        path: `/1.0/nics/${encodeURIComponent(config.name)}`,
        body: keys,
        command: command("nic", "set", config.name, ...flags(keys)),
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
