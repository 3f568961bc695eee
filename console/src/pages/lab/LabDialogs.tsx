import { Alert, Checkbox } from "@patternfly/react-core";
import { useState, type ReactNode } from "react";
import type { LabPlan, LabScale, LabStatus, LabWords } from "../../api/types";
import { ChangeDialog } from "../../parts/ChangeDialog";
import { ChoiceField } from "../../parts/fields";
import { useTexts } from "../../texts/texts";
import { age } from "../../units/units";
import { atScale, inLanguage, labCommand, proposedScale } from "./runs";

const SCALES = ["auto", "quick", "full"] as const satisfies readonly LabScale[];

/** Asks for a run of a plan. */
export function RunDialog(props: { plan: LabPlan; lab: LabStatus | undefined; onClose: () => void }) {
  const { t, language } = useTexts();
  const [plan] = useState(props.plan);
  const [scale, setScale] = useState<LabScale>(proposedScale(plan) ?? "auto");
  const [profile, setProfile] = useState(false);
  const { seconds, missing } = atScale(plan, scale);
  return (
    <ChangeDialog
      title={t("lab.run.title", { plan: inLanguage(plan.title, language) })}
      about={t("lab.run.about")}
      action={t("lab.run")}
      done={t("lab.run.asked")}
      withoutPreview
      change={{ method: "POST", path: "/1.0/lab/runs", body: { plan: plan.id, scale, profile }, command: labCommand(props.lab, "run", plan.id, "--scale", scale, ...(profile ? ["--profile"] : [])) }}
      cannot={missing.length === 0 ? undefined : (
        <Alert component="p" isInline variant="warning" title={t("lab.missing.at.scale")}>
          <Lacking words={missing} />
        </Alert>
      )}
      onClose={props.onClose}
    >
      <ChoiceField
        label={t("lab.scale")}
        help={`${t(`lab.scale.${scale}.about`)} ${t("lab.takes")}: ${age(seconds)}`}
        value={scale}
        onChange={(value) => setScale(value as LabScale)}
        options={SCALES.map((one) => [one, t(`lab.scale.${one}`)])}
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

/** What a plan needs that is not here; `children` say more of it. */
export function Lacking(props: { words: readonly LabWords[]; children?: ReactNode }) {
  const { language } = useTexts();
  return (
    <ul className="plain-list">
      {props.words.map((one) => <li key={one.en}>{inLanguage(one, language)}</li>)}
      {props.children}
    </ul>
  );
}

/** Ends a run, or withdraws what waits. */
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
