/** Dialog that changes the limits of a disk. */
import { useState } from "react";
import type { DiskStatus, QosPolicyStatus } from "../../api/types";
import { ChangeDialog } from "../../components/ChangeDialog";
import { ChoiceField, NumberField } from "../../components/fields";
import { useTexts } from "../../texts/texts";
import { limitFields, LIMIT_KEYS, ownLimits, policyLimits, type LimitFields } from "./limits";

const OWN_LIMITS = "";

export function LimitsDialog(props: {
  disk: DiskStatus;
  policies: readonly QosPolicyStatus[];
  start?: Partial<LimitFields>;
  onClose: () => void;
}) {
  const { t } = useTexts();
  const { disk } = props;
  // The form keeps the state of the disk at its opening; later updates of the topic do not change it.
  const [initialDisk] = useState(disk);
  const [holder, setHolder] = useState(props.start ? OWN_LIMITS : (initialDisk.config.qos_policy ?? OWN_LIMITS));
  const [fields, setFields] = useState<LimitFields>({
    ...limitFields(initialDisk.config.qos_policy ? undefined : initialDisk.config.qos),
    ...props.start,
  });
  const change = holder === OWN_LIMITS ? ownLimits(initialDisk, fields) : policyLimits(initialDisk, holder);
  return (
    <ChangeDialog
      title={t("limits.title", { disk: initialDisk.config.name })}
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
              [OWN_LIMITS, t("limits.own")],
              ...props.policies.map((policy): [string, string] => [policy.config.name, t("limits.policy", { policy: policy.config.name })]),
            ]}
          />
        </div>
      )}
      {holder === OWN_LIMITS && (
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
