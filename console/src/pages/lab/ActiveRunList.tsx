/** List of pending and running lab runs. */
import { Button, Progress } from "@patternfly/react-core";
import type { LabPlan, LabRun } from "../../api/types";
import { useNow } from "../../live/hooks";
import { Section } from "../../components/Section";
import { StateLabel } from "../../components/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { duration } from "../../units/units";
import { inLanguage, percentDone, secondsLeft, type ActiveRun } from "./runs";

export function ActiveRunList(props: { runs: readonly ActiveRun[]; plans: readonly LabPlan[]; onStop: (request: string) => void }) {
  const { t } = useTexts();
  if (props.runs.length === 0) return null;
  return (
    <Section title={t("lab.active")}>
      <ul className="attention lab-active">
        {props.runs.map((run) => <ActiveRunItem key={run.id} active={run} plans={props.plans} onStop={props.onStop} />)}
      </ul>
    </Section>
  );
}

function ActiveRunItem(props: { active: ActiveRun; plans: readonly LabPlan[]; onStop: (request: string) => void }) {
  const { t, language } = useTexts();
  const { request, run } = props.active;
  const planId = run?.plan ?? request?.plan ?? "";
  const labPlan = props.plans.find((labPlan) => labPlan.id === planId);
  const title = labPlan ? inLanguage(labPlan.title, language) : planId;
  const state = request?.state === "waiting" || request?.state === "stopping" ? request.state : "under-way";
  const scale = run?.scale ?? request?.scale;
  return (
    <li>
      <div className="row">
        {run ? <a href={link("lab", run.id)}>{title}</a> : <strong>{title}</strong>}
        {scale && <span className="faint">{scale}</span>}
        <StateLabel state={state} text={t(`lab.state.${state}`)} />
        {request && state !== "stopping" && (
          <Button variant="secondary" size="sm" isDanger aria-label={t("lab.stop.of", { plan: planId })} onClick={() => props.onStop(request.id)}>{t("lab.stop")}</Button>
        )}
      </div>
      {run && <RunProgress run={run} />}
    </li>
  );
}

/** Progress of a run: current case and estimated remaining time. */
export function RunProgress(props: { run: LabRun }) {
  const { t, language } = useTexts();
  const now = useNow();
  const { run } = props;
  if (!run.progress) return <p className="faint">{t("lab.preparing")}</p>;
  const text = t("lab.progress", {
    case: inLanguage(run.progress.case, language),
    repetition: run.progress.repetition,
    left: duration(secondsLeft(run.progress, now)),
  });
  return <Progress aria-label={t("change.progress")} title={text} size="sm" value={Math.round(percentDone(run, now) ?? 0)} />;
}
