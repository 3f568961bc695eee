/** Another power plan, or other keys beside it. */
import type { PowerPlanName, PowerStatus } from "../../api/types";
import { changed, command, settings, type Keys } from "../../api/commands";
import type { Change } from "../../parts/ChangeDialog";

/** What a choice says where nothing is to be beside the plan. */
export const AS_PLAN = "plan";

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
