import { Alert, Checkbox } from "@patternfly/react-core";
import { useState, type ReactNode } from "react";
import type { LabPlan, LabScale, LabStatus, LabWords } from "../../api/types";
import { ChangeDialog } from "../../components/ChangeDialog";
import { ChoiceField } from "../../components/fields";
import { useTexts } from "../../texts/texts";
import { duration } from "../../units/units";
import { planAtScale, inLanguage, labCommand, proposedScale } from "./runs";

const SCALES = ["auto", "quick", "full"] as const satisfies readonly LabScale[];

/** Dialog that requests a run of a plan. */
export function RunDialog(props: { plan: LabPlan; lab: LabStatus | undefined; onClose: () => void }) {
  const { t, language } = useTexts();
  const [plan] = useState(props.plan);
  const [scale, setScale] = useState<LabScale>(proposedScale(plan) ?? "auto");
  const [profile, setProfile] = useState(false);
  const { seconds, missing } = planAtScale(plan, scale);
  return (
    <ChangeDialog
      title={t("lab.run.title", { plan: inLanguage(plan.title, language) })}
      about={t("lab.run.about")}
      action={t("lab.run")}
      doneMessage={t("lab.run.requested")}
      withoutPreview
      change={{ method: "POST", path: "/1.0/lab/runs", body: { plan: plan.id, scale, profile }, command: labCommand(props.lab, "run", plan.id, "--scale", scale, ...(profile ? ["--profile"] : [])) }}
      disabledReason={missing.length === 0 ? undefined : (
        <Alert component="p" isInline variant="warning" title={t("lab.missing.at.scale")}>
          <MissingRequirements requirements={missing} />
        </Alert>
      )}
      onClose={props.onClose}
    >
      <ChoiceField
        label={t("lab.scale")}
        help={`${t(`lab.scale.${scale}.about`)} ${t("lab.duration")}: ${duration(seconds)}`}
        value={scale}
        onChange={(value) => setScale(value as LabScale)}
        options={SCALES.map((scaleName) => [scaleName, t(`lab.scale.${scaleName}`)])}
      />
      <Checkbox
        id="lab-profile"
        className="spaced"
        label={t("lab.profile")}
        description={t("lab.profile.about")}
        isChecked={profile}
        onChange={(_event, checked) => setProfile(checked)}
      />
    </ChangeDialog>
  );
}

/** List of requirements that this host does not meet. `children` are further list items. */
export function MissingRequirements(props: { requirements: readonly LabWords[]; children?: ReactNode }) {
  const { language } = useTexts();
  return (
    <ul className="plain-list">
      {props.requirements.map((requirement) => <li key={requirement.en}>{inLanguage(requirement, language)}</li>)}
      {props.children}
    </ul>
  );
}

/** Dialog that stops a run or withdraws a pending request. */
export function StopDialog(props: { request: string; lab: LabStatus | undefined; onClose: () => void }) {
  const { t } = useTexts();
  const [request] = useState(props.request);
  return (
    <ChangeDialog
      title={t("lab.stop.title")}
      about={t("lab.stop.about")}
      action={t("lab.stop")}
      danger={t("lab.stop.danger")}
      withoutPreview
      change={{ method: "DELETE", path: `/1.0/lab/requests/${encodeURIComponent(request)}`, command: labCommand(props.lab, "stop", request) }}
      onClose={props.onClose}
    />
  );
}
