/** Steps of a change, from a dry run. */
import { List, ListItem } from "@patternfly/react-core";
import type { Plan, PlanStep } from "../api/types";
import { useTexts } from "../texts/texts";

export function PlanSteps(props: { plan: Plan }) {
  const { t, label } = useTexts();
  if (props.plan.steps.length === 0) return <p>{t("change.nothing")}</p>;
  return (
    <List isPlain isBordered>
      {props.plan.steps.map((step) => (
        <ListItem key={`${step.action} ${step.resource}`}>
          <strong>{label(step.action)}</strong> <code>{step.resource}</code>
          {step.changes?.map((change) => (
            <div key={change.field} className="plan-change">
              <code>{change.field}</code>: {formatValue(change.from)} → {formatValue(change.to)}
            </div>
          ))}
          {step.note && <div className="faint">{step.note}</div>}
        </ListItem>
      ))}
    </List>
  );
}

type Value = NonNullable<PlanStep["changes"]>[number]["from"];

function formatValue(value: Value): string {
  return value === undefined || value === null ? "–" : JSON.stringify(value);
}
