/** Changes of the power plan. */
import type { PowerPlanName, PowerStatus } from "../../api/types";
import { changedKeys, command, assignmentArgs, type MergePatch } from "../../api/commands";
import type { Change } from "../../components/ChangeDialog";

/** Value of a select field for keys that the plan determines. */
export const FROM_PLAN = "plan";

/**
 * Returns the change to a plan and its keys; `undefined` without a change. Another plan replaces the configuration
 * (PUT), other keys patch it (PATCH), as in the CLI. Keys that the form does not show keep their values in both cases.
 */
export function planChange(
  config: NonNullable<PowerStatus["config"]> | undefined,
  plan: PowerPlanName,
  min: number | null,
  max: number | null,
  turbo: string,
): Change | undefined {
  const formValues: MergePatch = { performance_percent_min: min, performance_percent_max: max, turbo: turbo === FROM_PLAN ? null : turbo === "on" };
  const { plan: currentPlan, ...otherKeys } = (config ?? { plan: undefined }) as MergePatch & { plan?: string };
  if (currentPlan === plan) {
    const keys = changedKeys(otherKeys, formValues);
    if (Object.keys(keys).length === 0) return undefined;
    return { method: "PATCH", path: "/1.0/power", body: keys, command: command("power", "set", ...assignmentArgs(keys)) };
  }
  const keys = Object.fromEntries(Object.entries({ ...otherKeys, ...formValues }).filter(([, value]) => value !== null)) as MergePatch;
  return { method: "PUT", path: "/1.0/power", body: { plan, ...keys }, command: command("power", "set", plan, ...assignmentArgs(keys)) };
}
