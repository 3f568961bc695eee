/** Stages of a request path in order, each with its value, verdict, explanation and remedy. */
import { Label } from "@patternfly/react-core";
import { Bar } from "../../components/Bar";
import { Command } from "../../components/Command";
import { useTexts } from "../../texts/texts";
import { latency, percent } from "../../units/units";
import type { Stage, Verdict, RequestPath } from "./stage";

const STATUS = { fine: "success", watch: "warning", slow: "danger", idle: "info" } as const;

export function VerdictLabel(props: { verdict: Verdict }) {
  const { t } = useTexts();
  return <Label isCompact variant="outline" status={STATUS[props.verdict]}>{t(`verdict.${props.verdict}`)}</Label>;
}

export function PathView(props: { path: RequestPath }) {
  return (
    <ol className="request-path">
      {props.path.stages.map((stage, index) => <StageView key={index} stage={stage} />)}
    </ol>
  );
}

function StageView(props: { stage: Stage }) {
  const { t } = useTexts();
  const { stage } = props;
  return (
    <li className={`path-stage path-stage-${stage.verdict}`}>
      <div className="row">
        <strong>{t(stage.title, stage.params)}</strong>
        <VerdictLabel verdict={stage.verdict} />
      </div>
      <div className="path-stage-value">{stage.value}</div>
      {stage.loadPpm !== undefined && <Bar ppm={stage.loadPpm} text={percent(stage.loadPpm)} tone={stage.verdict === "slow" ? "bad" : stage.verdict === "watch" ? "high" : "plain"} />}
      {stage.sharePpm !== undefined && (
        <div>
          <Bar ppm={stage.sharePpm} text={percent(stage.sharePpm)} tone={stage.verdict === "slow" ? "bad" : stage.verdict === "watch" ? "high" : "plain"} />
          <span className="faint small share-text">{stage.waitNs === undefined ? t("stage.share.time") : t("stage.share", { wait: latency(stage.waitNs) })}</span>
        </div>
      )}
      <p className="small">{t(stage.explanation, stage.explanationParams)}</p>
      {stage.remedy && (
        <div className="small">
          <a href={stage.remedy.href}>{t(stage.remedy.text, stage.remedy.params)}</a>
          {stage.remedy.command && <Command text={stage.remedy.command} label="" />}
        </div>
      )}
    </li>
  );
}
