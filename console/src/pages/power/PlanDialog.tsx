/** Dialog that sets the power plan. */
import { useState } from "react";
import type { PowerPlanName, PowerStatus } from "../../api/types";
import { ChangeDialog } from "../../components/ChangeDialog";
import { ChoiceField, fieldText, NumberField, parseNumber } from "../../components/fields";
import { useTexts } from "../../texts/texts";
import { FROM_PLAN, planChange } from "./plan_change";

const PLANS: readonly PowerPlanName[] = ["balanced", "high-performance", "power-saver", "custom"];

export function PlanDialog(props: { power: PowerStatus; onClose: () => void }) {
  const { t, label } = useTexts();
  const [config] = useState(props.power.config);
  const [plan, setPlan] = useState<string>(config?.plan ?? "balanced");
  const [lowest, setLowest] = useState(fieldText(config?.performance_percent_min));
  const [highest, setHighest] = useState(fieldText(config?.performance_percent_max));
  const [turbo, setTurbo] = useState(config?.turbo == null ? FROM_PLAN : config.turbo ? "on" : "off");
  const [min, max] = [parseNumber(lowest), parseNumber(highest)];
  const change = min === undefined || max === undefined ? undefined : planChange(config ?? undefined, plan as PowerPlanName, min, max, turbo);
  return (
    <ChangeDialog title={t("power.select")} about={t("power.select.about")} action={t("power.set")} change={change} onClose={props.onClose}>
      <div className="fields">
        <ChoiceField label={t("power.plan")} help={t("power.plan.about")} value={plan} onChange={setPlan} options={PLANS.map((name) => [name, label(name)])} />
        <ChoiceField label={t("power.turbo")} value={turbo} onChange={setTurbo} options={[[FROM_PLAN, t("power.from_plan")], ["on", t("vmq.on")], ["off", t("vmq.off")]]} />
        <NumberField label={t("power.min")} help={t("power.min.about")} value={lowest} onChange={setLowest} />
        <NumberField label={t("power.max")} help={t("power.max.about")} value={highest} onChange={setHighest} />
      </div>
    </ChangeDialog>
  );
}
