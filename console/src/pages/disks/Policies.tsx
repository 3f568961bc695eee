/** Table of QoS policies, and the dialog that changes one. */
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { QosPolicyStatus } from "../../api/types";
import { changedKeys, command, flagArgs, type MergePatch } from "../../api/commands";
import { ChangeDialog } from "../../components/ChangeDialog";
import { DataTable } from "../../components/DataTable";
import { NumberField } from "../../components/fields";
import { useTexts } from "../../texts/texts";
import { count } from "../../units/units";
import { limitFields, parseLimits, LIMIT_KEYS, formatLimits, type LimitFields } from "./limits";

export function Policies(props: { policies: readonly QosPolicyStatus[] }) {
  const { t, label } = useTexts();
  const [changing, setChanging] = useState<QosPolicyStatus>();
  return (
    <>
      <DataTable
        label={t("policies.title")}
        rows={props.policies}
        id={(policy) => policy.config.name}
        columns={[
          { title: t("column.name"), cell: (policy) => policy.config.name, sort: (policy) => policy.config.name },
          { title: t("column.kind"), cell: (policy) => label(policy.config.kind) },
          { title: t("column.disks"), cell: (policy) => policy.disks.join(", ") || "–" },
          { title: t("stores.reserved"), cell: (policy) => count(policy.reserved_iops), isNumber: true },
          { title: t("disks.delivered"), cell: (policy) => count(policy.delivered_iops), isNumber: true },
          {
            title: t("disks.limits"),
            cell: (policy) => (
              <span className="row">
                {formatLimits(policy.config)}
                <Button variant="link" isInline onClick={() => setChanging(policy)} aria-label={t("policies.change.of", { policy: policy.config.name })}>
                  {t("action.change")}
                </Button>
              </span>
            ),
          },
        ]}
      />
      {changing && <PolicyDialog policy={changing} onClose={() => setChanging(undefined)} />}
    </>
  );
}

function PolicyDialog(props: { policy: QosPolicyStatus; onClose: () => void }) {
  const { t } = useTexts();
  const { config } = props.policy;
  const [fields, setFields] = useState<LimitFields>(limitFields(config));
  const [before] = useState(() => parseLimits(limitFields(config)) ?? {});
  const after = parseLimits(fields);
  const keys: MergePatch = after ? changedKeys(before, after) : {};
  return (
    <ChangeDialog
      title={t("policies.change.of", { policy: config.name })}
      about={t("policies.about", { disks: props.policy.disks.join(", ") || "–" })}
      action={t("limits.action")}
      canForce
      change={Object.keys(keys).length === 0 ? undefined : {
        method: "PATCH",
        path: `/1.0/qos-policies/${encodeURIComponent(config.name)}`,
        body: keys,
        command: command("qos", "policy", "set", config.name, ...flagArgs(keys)),
      }}
      onClose={props.onClose}
    >
      <div className="fields">
        {LIMIT_KEYS.map((key) => (
          <NumberField
            key={key}
            isSize={key === "max_bytes_per_s"}
            label={t(`limits.${key}`)}
            help={t(`limits.${key}.about`)}
            value={fields[key]}
            onChange={(value) => setFields({ ...fields, [key]: value })}
          />
        ))}
      </div>
    </ChangeDialog>
  );
}
