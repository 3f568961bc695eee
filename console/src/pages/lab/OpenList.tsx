/** What is made and what waits. */
import { Button, Progress } from "@patternfly/react-core";
import type { LabPlan, LabRun } from "../../api/types";
import { useNow } from "../../live/hooks";
import { Section } from "../../parts/Section";
import { StateLabel } from "../../parts/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { age } from "../../units/units";
import { inLanguage, percentDone, secondsLeft, type Open } from "./runs";

export function OpenList(props: { open: readonly Open[]; plans: readonly LabPlan[]; onStop: (request: string) => void }) {
  const { t } = useTexts();
  if (props.open.length === 0) return null;
  return (
    <Section title={t("lab.open")}>
      <ul className="attention lab-open">
        {props.open.map((one) => <OpenRun key={one.id} open={one} plans={props.plans} onStop={props.onStop} />)}
      </ul>
    </Section>
  );
}

function OpenRun(props: { open: Open; plans: readonly LabPlan[]; onStop: (request: string) => void }) {
  const { t, language } = useTexts();
  const { request, run } = props.open;
  const plan = run?.plan ?? request?.plan ?? "";
  const known = props.plans.find((one) => one.id === plan);
  const title = known ? inLanguage(known.title, language) : plan;
  const state = request?.state === "waiting" || request?.state === "stopping" ? request.state : "under-way";
  const scale = run?.scale ?? request?.scale;
  return (
    <li className="lab-open-run">
      <div className="row">
        {run ? <a href={link("lab", run.id)}>{title}</a> : <strong>{title}</strong>}
        {scale && <span className="faint">{scale}</span>}
        <StateLabel state={state} text={t(`lab.state.${state}`)} />
        {request && state !== "stopping" && (
          <Button variant="secondary" size="sm" isDanger aria-label={t("lab.stop.of", { plan })} onClick={() => props.onStop(request.id)}>{t("lab.stop")}</Button>
        )}
      </div>
      {run && <RunProgress run={run} />}
    </li>
  );
}

/** Which case is measured, and about how long the run still takes. */
export function RunProgress(props: { run: LabRun }) {
  const { t, language } = useTexts();
  const now = useNow();
  const { run } = props;
  if (!run.progress) return <p className="faint">{t("lab.preparing")}</p>;
  const text = t("lab.progress", {
    case: inLanguage(run.progress.case, language),
    repetition: run.progress.repetition,
    left: age(secondsLeft(run.progress, now)),
  });
  return <Progress aria-label={t("change.progress")} title={text} size="sm" value={Math.round(percentDone(run, now) ?? 0)} />;
}
