/** Changes the limits of a disk while it is in use. */
import { useState } from "react";
import type { DiskStatus, QosPolicyStatus } from "../../api/types";
import { ChangeDialog } from "../../parts/ChangeDialog";
import { ChoiceField, NumberField } from "../../parts/fields";
import { useTexts } from "../../texts/texts";
import { fieldsOf, LIMIT_KEYS, ownLimits, policyLimits, type LimitFields } from "./limits";

const OWN = "";

export function LimitsDialog(props: {
  disk: DiskStatus;
  policies: readonly QosPolicyStatus[];
  start?: Partial<LimitFields>;
  onClose: () => void;
}) {
  const { t } = useTexts();
  const { disk } = props;
  // What the disk had when the dialog was opened is what the form began with, whatever is heard meanwhile.
  const [at] = useState(disk);
  const [holder, setHolder] = useState(props.start ? OWN : (at.config.qos_policy ?? OWN));
  const [fields, setFields] = useState<LimitFields>({
    ...fieldsOf(at.config.qos_policy ? undefined : at.config.qos),
    ...props.start,
  });
  const change = holder === OWN ? ownLimits(at, fields) : policyLimits(at, holder);
  return (
    <ChangeDialog
      title={t("limits.title", { disk: at.config.name })}
      about={t("limits.about")}
      change={change}
      action={t("limits.action")}
      canForce
      onClose={props.onClose}
    >
      {props.policies.length > 0 && (
        <div className="spaced">
          <ChoiceField
            label={t("limits.holder")}
            value={holder}
            onChange={setHolder}
            options={[
              [OWN, t("limits.own")],
              ...props.policies.map((policy): [string, string] => [policy.config.name, t("limits.policy", { policy: policy.config.name })]),
            ]}
          />
        </div>
      )}
      {holder === OWN && (
        <div className="fields">
          {LIMIT_KEYS.map((key) =>
            <NumberField
              key={key}
              isSize={key === "max_bytes_per_s"}
              label={t(`limits.${key}`)}
              help={t(`limits.${key}.about`)}
              value={fields[key]}
              onChange={(value) => setFields({ ...fields, [key]: value })}
            />,
          )}
        </div>
      )}
    </ChangeDialog>
  );
}
