/** The lab: plans, runs under way, what came out, and whether two runs differ. */
import { Alert, Button } from "@patternfly/react-core";
import { useState } from "react";
import type { LabPlan, LabStatus } from "../../api/types";
import { useTopic } from "../../live/hooks";
import { Command } from "../../parts/Command";
import { DataTable } from "../../parts/DataTable";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { Empty, WhenHeard } from "../../parts/States";
import type { PageProps } from "../../shell/PageAt";
import { useTexts } from "../../texts/texts";
import { age } from "../../units/units";
import { Compared } from "./Compared";
import { Lacking, RunDialog, StopDialog } from "./LabDialogs";
import { OpenList } from "./OpenList";
import { RunTable } from "./RunTable";
import { atScale, inLanguage, labCommand, lastFailed, openOnes, proposedScale } from "./runs";

export function LabPage(props: PageProps) {
  const { t } = useTexts();
  const lab = useTopic("lab");
  const runs = useTopic("lab/runs");
  const [plan, setPlan] = useState<LabPlan>();
  const [stopped, setStopped] = useState<string>();
  const [a, b] = [props.query.get("a"), props.query.get("b")];
  return (
    <PageFrame title={t("lab.title")} about={t("lab.about")}>
      <WhenHeard of={[lab, runs]}>
        {() => lab.data && runs.data && (
          <>
            {lab.data.remedy && <Nobody lab={lab.data} />}
            <Failed lab={lab.data} />
            {a && b && <Compared a={a} b={b} lab={lab.data} />}
            <OpenList open={openOnes(lab.data, runs.data)} plans={lab.data.plans} onStop={setStopped} />
            {runs.data.length > 0 && <Section title={t("lab.runs")}><RunTable runs={runs.data} plans={lab.data.plans} /></Section>}
            <Section title={t("lab.plans")}>
              {lab.data.plans.length === 0
                ? <Empty title={t("lab.plans.none")}>{t("lab.plans.none.about")}</Empty>
                : <Plans plans={lab.data.plans} canRun={lab.data.worker != null} onRun={setPlan} />}
            </Section>
            {runs.data.length === 0 && <Section title={t("lab.runs")}><Empty title={t("lab.runs.none")}>{t("lab.runs.none.about")}</Empty></Section>}
          </>
        )}
      </WhenHeard>
      {plan && <RunDialog plan={plan} lab={lab.data} onClose={() => setPlan(undefined)} />}
      {stopped !== undefined && <StopDialog request={stopped} lab={lab.data} onClose={() => setStopped(undefined)} />}
    </PageFrame>
  );
}

function Nobody(props: { lab: LabStatus }) {
  const { t } = useTexts();
  return (
    <Alert component="p" isInline variant="warning" title={t("lab.nobody")}>
      <p>{t("lab.nobody.about")}</p>
      <Command label={t("lab.nobody.now")} text={labCommand(props.lab, "work")} />
      <Command label={t("lab.nobody.unit")} text="systemctl enable --now suimon-lab" />
    </Alert>
  );
}

/** What was asked for last, if it came to nothing. */
function Failed(props: { lab: LabStatus }) {
  const { t } = useTexts();
  const failed = lastFailed(props.lab);
  if (!failed) return null;
  return <Alert component="p" isInline variant="info" title={t("lab.failed")}>{failed.error}</Alert>;
}

function Plans(props: { plans: readonly LabPlan[]; canRun: boolean; onRun: (plan: LabPlan) => void }) {
  const { t, language } = useTexts();
  return (
    <DataTable
      label={t("lab.plans")}
      rows={props.plans}
      id={(plan) => plan.id}
      columns={[
        {
          title: t("lab.plan"),
          cell: (plan) => (
            <>
              <strong>{inLanguage(plan.title, language)}</strong> <code className="small">{plan.id}</code>
              <p className="faint small">{inLanguage(plan.question, language)}</p>
            </>
          ),
          sort: (plan) => plan.id,
        },
        { title: t("lab.takes"), cell: (plan) => <span className="nowrap">{age(atScale(plan, "auto").seconds)}</span>, sort: (plan) => atScale(plan, "auto").seconds, isNumber: true },
        {
          title: t("lab.missing"),
          cell: (plan) => <Missing plan={plan} />,
        },
        {
          title: "",
          cell: (plan) => (
            <Button
              variant="secondary"
              size="sm"
              isDisabled={!props.canRun || proposedScale(plan) === undefined}
              aria-label={t("lab.run.of", { plan: plan.id })}
              onClick={() => props.onRun(plan)}
            >
              {t("lab.run")}
            </Button>
          ),
        },
      ]}
    />
  );
}

/** What the usual scale needs that is not here, and whether a smaller one does without. */
function Missing(props: { plan: LabPlan }) {
  const { t } = useTexts();
  const { missing } = atScale(props.plan, "auto");
  if (missing.length === 0) return <>{t("lab.missing.none")}</>;
  return (
    <Lacking words={missing}>
      {proposedScale(props.plan) === "quick" && <li className="faint">{t("lab.missing.but.quick")}</li>}
    </Lacking>
  );
}
