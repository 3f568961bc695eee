/** Changes VMQ of a team or uplink while its traffic goes on. */
import { useState } from "react";
import type { VmqStatus } from "../../api/types";
import { changed, command, settings, type Keys } from "../../api/commands";
import { ChangeDialog } from "../../parts/ChangeDialog";
import { ChoiceField, fieldOf, NumberField, numberOf } from "../../parts/fields";
import { useTexts } from "../../texts/texts";

const NUMBERS = ["max_workers", "base_worker", "max_worker_number", "numa_node"] as const;
type NumberKey = (typeof NUMBERS)[number];

export function VmqDialog(props: { vmq: VmqStatus; isTeam: boolean; onClose: () => void }) {
  const { t } = useTexts();
  const [{ uplink, config }] = useState(props.vmq);
  const [enabled, setEnabled] = useState(config.enabled === false ? "off" : "on");
  const [mode, setMode] = useState<string>(config.mode ?? "dynamic");
  const [numbers, setNumbers] = useState<Record<NumberKey, string>>({
    max_workers: fieldOf(config.max_workers),
    base_worker: fieldOf(config.base_worker),
    max_worker_number: fieldOf(config.max_worker_number),
    numa_node: fieldOf(config.numa_node),
  });
  const before: Keys = { enabled: config.enabled ?? true, mode: config.mode ?? "dynamic" };
  const after: Keys = { enabled: enabled === "on", mode };
  let isRight = true;
  for (const key of NUMBERS) {
    const value = numberOf(numbers[key]);
    before[key] = config[key] ?? null;
    if (value === undefined) isRight = false;
    else after[key] = value;
  }
  const keys = changed(before, after);
  const change = isRight && Object.keys(keys).length > 0
    ? {
        method: "PATCH" as const,
        path: `/1.0/${props.isTeam ? "teams" : "uplinks"}/${encodeURIComponent(uplink)}`,
        body: { vmq: keys },
        command: command("vmq", "set", uplink, ...settings(keys)),
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
        <ChoiceField label={t("vmq.mode")} help={t("vmq.mode.about")} value={mode} onChange={setMode} options={[["dynamic", t("word.dynamic")], ["static", t("word.static")]]} />
        <ChoiceField label="VMQ" help={t("vmq.enabled.about")} value={enabled} onChange={setEnabled} options={[["on", t("vmq.on")], ["off", t("vmq.off")]]} />
      </div>
    </ChangeDialog>
  );
}
