/** Page "Lab": plans, active runs, results, and the comparison of two runs. */
import { Alert, Button } from "@patternfly/react-core";
import { useState } from "react";
import type { LabPlan, LabStatus } from "../../api/types";
import { useTopic } from "../../live/hooks";
import { Command } from "../../components/Command";
import { DataTable } from "../../components/DataTable";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Empty, WhenLoaded } from "../../components/States";
import { useTexts } from "../../texts/texts";
import { duration } from "../../units/units";
import { Comparison } from "./Comparison";
import { MissingRequirements, RunDialog, StopDialog } from "./LabDialogs";
import { ActiveRunList } from "./ActiveRunList";
import { RunTable } from "./RunTable";
import { planAtScale, inLanguage, labCommand, lastFailedRequest, activeRuns, proposedScale } from "./runs";

export function LabPage(props: { query: URLSearchParams }) {
  const { t } = useTexts();
  const lab = useTopic("lab");
  const runs = useTopic("lab/runs");
  const [plan, setPlan] = useState<LabPlan>();
  const [stoppedRequest, setStoppedRequest] = useState<string>();
  const [a, b] = [props.query.get("a"), props.query.get("b")];
  return (
    <PageFrame title={t("lab.title")} about={t("lab.about")}>
      <WhenLoaded topics={[lab, runs]}>
        {() => lab.data && runs.data && (
          <>
            {lab.data.remedy && <NoWorkerAlert lab={lab.data} />}
            <FailedRequestAlert lab={lab.data} />
            {a && b && <Comparison a={a} b={b} lab={lab.data} />}
            <ActiveRunList runs={activeRuns(lab.data, runs.data)} plans={lab.data.plans} onStop={setStoppedRequest} />
            {runs.data.length > 0 && <Section title={t("lab.runs")}><RunTable runs={runs.data} plans={lab.data.plans} /></Section>}
            <Section title={t("lab.plans")}>
              {lab.data.plans.length === 0
                ? <Empty title={t("lab.plans.none")}>{t("lab.plans.none.about")}</Empty>
                : <Plans plans={lab.data.plans} canRun={lab.data.worker != null} onRun={setPlan} />}
            </Section>
            {runs.data.length === 0 && <Section title={t("lab.runs")}><Empty title={t("lab.runs.none")}>{t("lab.runs.none.about")}</Empty></Section>}
          </>
        )}
      </WhenLoaded>
      {plan && <RunDialog plan={plan} lab={lab.data} onClose={() => setPlan(undefined)} />}
      {stoppedRequest !== undefined && <StopDialog request={stoppedRequest} lab={lab.data} onClose={() => setStoppedRequest(undefined)} />}
    </PageFrame>
  );
}

function NoWorkerAlert(props: { lab: LabStatus }) {
  const { t } = useTexts();
  return (
    <Alert component="p" isInline variant="warning" title={t("lab.worker.none")}>
      <p>{t("lab.worker.none.about")}</p>
      <Command label={t("lab.worker.once")} text={labCommand(props.lab, "work")} />
      <Command label={t("lab.worker.unit")} text="systemctl enable --now suimon-lab" />
    </Alert>
  );
}

/** Error of the latest request, if it failed without a run. */
function FailedRequestAlert(props: { lab: LabStatus }) {
  const { t } = useTexts();
  const failed = lastFailedRequest(props.lab);
  if (!failed) return null;
  return <Alert component="p" isInline variant="info" title={t("lab.request.failed")}>{failed.error}</Alert>;
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
        { title: t("lab.duration"), cell: (plan) => <span className="nowrap">{duration(planAtScale(plan, "auto").seconds)}</span>, sort: (plan) => planAtScale(plan, "auto").seconds, isNumber: true },
        {
          title: t("lab.missing"),
          cell: (plan) => <PlanRequirements plan={plan} />,
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

/** Missing requirements of the default scale, and whether the quick scale can be run. */
function PlanRequirements(props: { plan: LabPlan }) {
  const { t } = useTexts();
  const { missing } = planAtScale(props.plan, "auto");
  if (missing.length === 0) return <>{t("lab.missing.none")}</>;
  return (
    <MissingRequirements requirements={missing}>
      {proposedScale(props.plan) === "quick" && <li className="faint">{t("lab.missing.quick")}</li>}
    </MissingRequirements>
  );
}
