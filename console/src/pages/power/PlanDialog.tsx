/** Chooses a power plan. */
import { useState } from "react";
import type { PowerPlanName, PowerStatus } from "../../api/types";
import { ChangeDialog } from "../../parts/ChangeDialog";
import { ChoiceField, fieldOf, NumberField, numberOf } from "../../parts/fields";
import { useTexts } from "../../texts/texts";
import { AS_PLAN, planChange } from "./plan_change";

const PLANS: readonly PowerPlanName[] = ["balanced", "high-performance", "power-saver", "custom"];

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
