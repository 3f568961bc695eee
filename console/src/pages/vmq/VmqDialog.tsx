/** Dialog that changes VMQ of a team or uplink. */
import { useState } from "react";
import type { VmqStatus } from "../../api/types";
import { changedKeys, command, assignmentArgs, type MergePatch } from "../../api/commands";
import { ChangeDialog } from "../../components/ChangeDialog";
import { ChoiceField, fieldText, NumberField, parseNumber } from "../../components/fields";
import { useTexts } from "../../texts/texts";

const NUMBERS = ["max_workers", "base_worker", "max_worker_number", "numa_node"] as const;
type NumberKey = (typeof NUMBERS)[number];

export function VmqDialog(props: { vmq: VmqStatus; isTeam: boolean; onClose: () => void }) {
  const { t } = useTexts();
  const [{ uplink, config }] = useState(props.vmq);
  const [enabled, setEnabled] = useState(config.enabled === false ? "off" : "on");
  const [mode, setMode] = useState<string>(config.mode ?? "dynamic");
  const [numbers, setNumbers] = useState<Record<NumberKey, string>>({
    max_workers: fieldText(config.max_workers),
    base_worker: fieldText(config.base_worker),
    max_worker_number: fieldText(config.max_worker_number),
    numa_node: fieldText(config.numa_node),
  });
  const current: MergePatch = { enabled: config.enabled ?? true, mode: config.mode ?? "dynamic" };
  const updated: MergePatch = { enabled: enabled === "on", mode };
  let isValid = true;
  for (const key of NUMBERS) {
    const value = parseNumber(numbers[key]);
    current[key] = config[key] ?? null;
    if (value === undefined) isValid = false;
    else updated[key] = value;
  }
  const patch = changedKeys(current, updated);
  const change = isValid && Object.keys(patch).length > 0
    ? {
        method: "PATCH" as const,
        path: `/1.0/${props.isTeam ? "teams" : "uplinks"}/${encodeURIComponent(uplink)}`,
        body: { vmq: patch },
        command: command("vmq", "set", uplink, ...assignmentArgs(patch)),
      }
    : undefined;
  return (
    <ChangeDialog title={t("vmq.dialog", { uplink })} about={t("vmq.dialog.about")} action={t("vmq.set")} change={change} onClose={props.onClose}>
      <div className="fields">
        {NUMBERS.map((key) => (
          <NumberField
            key={key}
            label={t(`vmq.${key}`)}
            help={t(`vmq.${key}.about`)}
            value={numbers[key]}
            onChange={(value) => setNumbers({ ...numbers, [key]: value })}
          />
        ))}
        <ChoiceField label={t("vmq.mode")} help={t("vmq.mode.about")} value={mode} onChange={setMode} options={[["dynamic", t("label.dynamic")], ["static", t("label.static")]]} />
        <ChoiceField label="VMQ" help={t("vmq.enabled.about")} value={enabled} onChange={setEnabled} options={[["on", t("vmq.on")], ["off", t("vmq.off")]]} />
      </div>
    </ChangeDialog>
  );
}
