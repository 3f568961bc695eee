/** The stages of a way, one after another, each with its wait and share and what would change it. */
import { Label } from "@patternfly/react-core";
import { Bar } from "../../parts/Bar";
import { Command } from "../../parts/Command";
import { useTexts } from "../../texts/texts";
import { latency, percent } from "../../units/units";
import type { Stage, Verdict, Way } from "./stage";

const STATUS = { fine: "success", watch: "warning", slow: "danger", idle: "info" } as const;

export function VerdictLabel(props: { verdict: Verdict }) {
  const { t } = useTexts();
  return <Label isCompact variant="outline" status={STATUS[props.verdict]}>{t(`verdict.${props.verdict}`)}</Label>;
}

export function WayView(props: { way: Way }) {
  return (
    <ol className="way">
      {props.way.stages.map((stage, at) => <StageView key={at} stage={stage} />)}
    </ol>
  );
}

function StageView(props: { stage: Stage }) {
  const { t } = useTexts();
  const { stage } = props;
  return (
    <li className={`way-stage way-${stage.verdict}`}>
      <div className="row">
        <strong>{t(stage.title, stage.params)}</strong>
        <VerdictLabel verdict={stage.verdict} />
      </div>
      <div className="way-now">{stage.now}</div>
      {stage.loadPpm !== undefined && <Bar ppm={stage.loadPpm} text={percent(stage.loadPpm)} tone={stage.verdict === "slow" ? "bad" : stage.verdict === "watch" ? "high" : "plain"} />}
      {stage.sharePpm !== undefined && (
        <div>
          <Bar ppm={stage.sharePpm} text={percent(stage.sharePpm)} tone={stage.verdict === "slow" ? "bad" : stage.verdict === "watch" ? "high" : "plain"} />
          <span className="faint small share-text">{stage.waitNs === undefined ? t("stage.share.time") : t("stage.share", { wait: latency(stage.waitNs) })}</span>
        </div>
      )}
      <p className="small">{t(stage.why, stage.whyParams)}</p>
      {stage.remedy && (
        <div className="small">
          <a href={stage.remedy.href}>{t(stage.remedy.text, stage.remedy.params)}</a>
          {stage.remedy.command && <Command text={stage.remedy.command} label="" />}
        </div>
      )}
    </li>
  );
}
