/** Chooses a power plan. */
import { useState } from "react";
import type { PowerPlanName, PowerStatus } from "../../api/types";
import { changed, command, settings, type Keys } from "../../api/commands";
import { ChangeDialog, type Change } from "../../parts/ChangeDialog";
import { ChoiceField, fieldOf, NumberField, numberOf } from "../../parts/fields";
import { useTexts } from "../../texts/texts";

const PLANS: readonly PowerPlanName[] = ["balanced", "high-performance", "power-saver", "custom"];
const AS_PLAN = "plan";

export function PlanDialog(props: { power: PowerStatus; onClose: () => void }) {
  const { t, word } = useTexts();
  const [config] = useState(props.power.config);
  const [plan, setPlan] = useState<string>(config?.plan ?? "balanced");
  const [lowest, setLowest] = useState(fieldOf(config?.performance_percent_min));
  const [highest, setHighest] = useState(fieldOf(config?.performance_percent_max));
  const [turbo, setTurbo] = useState(config?.turbo == null ? AS_PLAN : config.turbo ? "on" : "off");
  const [min, max] = [numberOf(lowest), numberOf(highest)];
  const change = min === undefined || max === undefined ? undefined : planChange(config ?? undefined, plan as PowerPlanName, min, max, turbo);
  return (
    <ChangeDialog title={t("power.choose")} about={t("power.choose.about")} action={t("power.set")} change={change} onClose={props.onClose}>
      <div className="fields">
        <ChoiceField label={t("power.plan")} help={t("power.plan.about")} value={plan} onChange={setPlan} options={PLANS.map((one) => [one, word(one)])} />
        <ChoiceField label={t("power.turbo")} value={turbo} onChange={setTurbo} options={[[AS_PLAN, t("power.asplan")], ["on", t("vmq.on")], ["off", t("vmq.off")]]} />
        <NumberField label={t("power.min")} help={t("power.min.about")} value={lowest} onChange={setLowest} />
        <NumberField label={t("power.max")} help={t("power.max.about")} value={highest} onChange={setHighest} />
      </div>
    </ChangeDialog>
  );
}

/**
 * As the command line has it: a plan's name asks for it with the keys beside it and no others, and
 * keys alone change those. Keys that this form does not show stay as they are either way.
 */
export function planChange(
  config: NonNullable<PowerStatus["config"]> | undefined,
  plan: PowerPlanName,
  min: number | null,
  max: number | null,
  turbo: string,
): Change | undefined {
  const shown: Keys = { performance_percent_min: min, performance_percent_max: max, turbo: turbo === AS_PLAN ? null : turbo === "on" };
  const { plan: before, ...beside } = (config ?? { plan: undefined }) as Keys & { plan?: string };
  if (before === plan) {
    const keys = changed(beside, shown);
    if (Object.keys(keys).length === 0) return undefined;
    return { method: "PATCH", path: "/1.0/power", body: keys, command: command("power", "set", ...settings(keys)) };
  }
  const keys = Object.fromEntries(Object.entries({ ...beside, ...shown }).filter(([, value]) => value !== null)) as Keys;
  return { method: "PUT", path: "/1.0/power", body: { plan, ...keys }, command: command("power", "set", plan, ...settings(keys)) };
}
