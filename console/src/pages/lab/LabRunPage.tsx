/** Page of a lab run: progress, verdict, figures and report. */
import { Alert, Button } from "@patternfly/react-core";
import { useEffect, useState } from "react";
import { openInTab, urlWithTicket } from "../../api/ticket";
import type { LabFigure, LabRunDetails, LabStatus } from "../../api/types";
import { useRequest, useTopic } from "../../live/hooks";
import { Command } from "../../components/Command";
import { DataTable } from "../../components/DataTable";
import { PropertyList } from "../../components/PropertyList";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { ErrorAlert, Loading } from "../../components/States";
import { StateLabel } from "../../components/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { labValue, dateTime } from "../../units/units";
import { RunProgress } from "./ActiveRunList";
import { inLanguage, labCommand } from "./runs";

const REFRESH_MS = 3000;

export function LabRunPage(props: { name: string }) {
  const { t, language } = useTexts();
  const lab = useTopic("lab");
  const path = `/1.0/lab/runs/${encodeURIComponent(props.name)}`;
  const details = useRequest<LabRunDetails>(path, REFRESH_MS);
  const plan = lab.data?.plans.find((plan) => plan.id === details.data?.plan);
  return (
    <PageFrame
      title={plan ? inLanguage(plan.title, language) : (details.data?.plan ?? props.name)}
      about={plan && inLanguage(plan.question, language)}
      actions={<Button component="a" variant="secondary" href={link("lab")}>{t("lab.back")}</Button>}
    >
      {details.error && <ErrorAlert error={details.error} />}
      {details.data ? <RunDetails run={details.data} lab={lab.data} path={path} /> : !details.error && <Loading />}
    </PageFrame>
  );
}

function RunDetails(props: { run: LabRunDetails; lab: LabStatus | undefined; path: string }) {
  const { t, language } = useTexts();
  const { run } = props;
  return (
    <>
      <Section title={<span className="row"><code>{run.id}</code> <StateLabel state={run.state} text={t(`lab.state.${run.state}`)} /></span>}>
        {run.error && <Alert component="p" isInline variant="danger" title={run.error} className="spaced" />}
        {run.verdict && <p className="verdict">{inLanguage(run.verdict, language)}</p>}
        {run.state === "under-way" && <RunProgress run={run} />}
        <PropertyList
          columns={3}
          items={[
            [t("lab.origin"), t(run.simulated ? "lab.simulated" : "lab.real")],
            [t("lab.scale"), run.scale],
            [t("lab.start"), run.began ? dateTime(Date.parse(run.began)) : "–"],
          ]}
        />
        {run.state === "interrupted" && <Command label={t("lab.resume")} text={labCommand(props.lab, "run", "--resume", run.id)} />}
        <Command label={t("lab.report.create")} text={labCommand(props.lab, "report", run.id)} />
      </Section>
      {run.figures.length > 0 && !run.simulated && <Section title={t("lab.figures")}><Figures figures={run.figures} /></Section>}
      {run.has_report && <Report path={`${props.path}/report`} />}
    </>
  );
}

function Report(props: { path: string }) {
  const { t, language } = useTexts();
  const [url, setUrl] = useState<string>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let isCurrent = true;
    setUrl(undefined);
    setError(undefined);
    urlWithTicket(props.path).then(
      (url) => isCurrent && setUrl(`${url}#${language}`),
      (failure: unknown) => isCurrent && setError(failure),
    );
    return () => {
      isCurrent = false;
    };
  }, [props.path, language]);
  const openReport = () => void openInTab(props.path, language).catch(setError);
  return (
    <Section title={t("lab.report")} actions={<Button variant="link" isInline onClick={openReport}>{t("lab.report.tab")}</Button>}>
      {error !== undefined && <ErrorAlert error={error} />}
      {url && <iframe key={url} className="report" title={t("lab.report")} src={url} sandbox="allow-scripts" tabIndex={0} />}
    </Section>
  );
}

function Figures(props: { figures: readonly LabFigure[] }) {
  const { t, language } = useTexts();
  return (
    <DataTable
      label={t("lab.figures")}
      rows={props.figures}
      id={(figure) => figure.id}
      columns={[
        { title: t("lab.figure"), cell: (figure) => inLanguage(figure.of, language) },
        { title: t("lab.published"), cell: (figure) => inLanguage(figure.published, language) },
        { title: t("lab.measured"), cell: formatMeasured },
        { title: t("lab.simulated.column"), cell: (figure) => figure.simulated?.ours ?? "–" },
        { title: t("lab.agreement"), cell: (figure) => <Agreement figure={figure} /> },
      ]}
    />
  );
}

function formatMeasured(figure: LabFigure): string {
  const { measured: measurement, digits, unit } = figure;
  if (!measurement) return "–";
  const [low = measurement.mean, high = measurement.mean] = measurement.interval ?? [];
  const half = high > low ? ` ± ${labValue((high - low) / 2, digits)}` : "";
  return `${labValue(measurement.mean, digits)}${half}${unit && ` ${unit}`}`;
}

function Agreement(props: { figure: LabFigure }) {
  const { t } = useTexts();
  const { agreement, bar } = props.figure;
  if (agreement === "shown") return null;
  const isDecided = agreement === "agrees" || agreement === "differs";
  return <StateLabel state={agreement} text={bar && isDecided ? t(`lab.bar.${agreement}`) : t(`lab.agreement.${agreement}`)} />;
}
