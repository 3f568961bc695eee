/** One run: how far it is, what came out, and its report. */
import { Alert, Button } from "@patternfly/react-core";
import { useEffect, useState } from "react";
import { openInTab, ticketed } from "../../api/ticket";
import type { LabFigure, LabRunDetails, LabStatus } from "../../api/types";
import { useAnswer, useTopic } from "../../live/hooks";
import { Command } from "../../parts/Command";
import { DataTable } from "../../parts/DataTable";
import { Facts } from "../../parts/Facts";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { Errors, Loading } from "../../parts/States";
import { StateLabel } from "../../parts/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { measured, moment } from "../../units/units";
import { RunProgress } from "./OpenList";
import { inLanguage, labCommand } from "./runs";

const REREAD_MS = 3000;

export function LabRunPage(props: { name: string }) {
  const { t, language } = useTexts();
  const lab = useTopic("lab");
  const path = `/1.0/lab/runs/${encodeURIComponent(props.name)}`;
  const details = useAnswer<LabRunDetails>(path, REREAD_MS);
  const plan = lab.data?.plans.find((one) => one.id === details.data?.plan);
  return (
    <PageFrame
      title={plan ? inLanguage(plan.title, language) : (details.data?.plan ?? props.name)}
      about={plan && inLanguage(plan.question, language)}
      actions={<Button component="a" variant="secondary" href={link("lab")}>{t("lab.back")}</Button>}
    >
      {details.error && <Errors error={details.error} />}
      {details.data ? <Shown of={details.data} lab={lab.data} path={path} /> : !details.error && <Loading />}
    </PageFrame>
  );
}

function Shown(props: { of: LabRunDetails; lab: LabStatus | undefined; path: string }) {
  const { t, language } = useTexts();
  const { of } = props;
  return (
    <>
      <Section title={<span className="row"><code>{of.id}</code> <StateLabel state={of.state} text={t(`lab.state.${of.state}`)} /></span>}>
        {of.error && <Alert component="p" isInline variant="danger" title={of.error} className="spaced" />}
        {of.verdict && <p className="verdict">{inLanguage(of.verdict, language)}</p>}
        {of.state === "under-way" && <RunProgress run={of} />}
        <Facts
          columns={3}
          of={[
            [t("lab.origin"), t(of.simulated ? "lab.simulated" : "lab.real")],
            [t("lab.scale"), of.scale],
            [t("lab.began"), of.began ? moment(Date.parse(of.began)) : "–"],
          ]}
        />
        {of.state === "interrupted" && <Command label={t("lab.resume")} text={labCommand(props.lab, "run", "--resume", of.id)} />}
        <Command label={t("lab.report.again")} text={labCommand(props.lab, "report", of.id)} />
      </Section>
      {of.figures.length > 0 && !of.simulated && <Section title={t("lab.figures")}><Figures of={of.figures} /></Section>}
      {of.has_report && <Report path={`${props.path}/report`} />}
    </>
  );
}

function Report(props: { path: string }) {
  const { t, language } = useTexts();
  const [address, setAddress] = useState<string>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let current = true;
    setAddress(undefined);
    setError(undefined);
    ticketed(props.path).then(
      (found) => current && setAddress(`${found}#${language}`),
      (failure: unknown) => current && setError(failure),
    );
    return () => {
      current = false;
    };
  }, [props.path, language]);
  const open = () => void openInTab(props.path, language).catch(setError);
  return (
    <Section title={t("lab.report")} actions={<Button variant="link" isInline onClick={open}>{t("lab.report.tab")}</Button>}>
      {error !== undefined && <Errors error={error} />}
      {address && <iframe key={address} className="report" title={t("lab.report")} src={address} sandbox="allow-scripts" tabIndex={0} />}
    </Section>
  );
}

function Figures(props: { of: readonly LabFigure[] }) {
  const { t, language } = useTexts();
  return (
    <DataTable
      label={t("lab.figures")}
      rows={props.of}
      id={(figure) => figure.id}
      columns={[
        { title: t("lab.figure"), cell: (figure) => inLanguage(figure.of, language) },
        { title: t("lab.published"), cell: (figure) => inLanguage(figure.published, language) },
        { title: t("lab.measured"), cell: valueOf },
        { title: t("lab.simulated.column"), cell: (figure) => figure.simulated?.ours ?? "–" },
        { title: t("lab.agreement"), cell: (figure) => <Agreement figure={figure} /> },
      ]}
    />
  );
}

function valueOf(figure: LabFigure): string {
  const { measured: of, digits, unit } = figure;
  if (!of) return "–";
  const [low = of.mean, high = of.mean] = of.interval ?? [];
  const half = high > low ? ` ± ${measured((high - low) / 2, digits)}` : "";
  return `${measured(of.mean, digits)}${half}${unit && ` ${unit}`}`;
}

function Agreement(props: { figure: LabFigure }) {
  const { t } = useTexts();
  const { agreement, bar } = props.figure;
  if (agreement === "shown") return null;
  const isJudged = agreement === "agrees" || agreement === "differs";
  return <StateLabel state={agreement} text={bar && isJudged ? t(`lab.bar.${agreement}`) : t(`lab.agreement.${agreement}`)} />;
}
