/** Comparison of two runs by measure. */
import { Alert, Button } from "@patternfly/react-core";
import type { LabComparison, LabStatus } from "../../api/types";
import { useRequest } from "../../live/hooks";
import { Command } from "../../components/Command";
import { DataTable } from "../../components/DataTable";
import { PropertyList } from "../../components/PropertyList";
import { Section } from "../../components/Section";
import { ErrorAlert, Loading } from "../../components/States";
import { StateLabel } from "../../components/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { labValue } from "../../units/units";
import { inLanguage, labCommand } from "./runs";

export function Comparison(props: { a: string; b: string; lab: LabStatus }) {
  const { t } = useTexts();
  const query = new URLSearchParams({ a: props.a, b: props.b }).toString();
  const response = useRequest<LabComparison>(`/1.0/lab/compare?${query}`);
  return (
    <Section
      title={t("lab.comparison")}
      actions={<Button component="a" variant="link" isInline href={link("lab")}>{t("action.close")}</Button>}
    >
      <PropertyList items={[["A", <a key="a" href={link("lab", props.a)}>{props.a}</a>], ["B", <a key="b" href={link("lab", props.b)}>{props.b}</a>]]} />
      {response.error && <ErrorAlert error={response.error} />}
      {response.data ? <ComparisonTable comparison={response.data} /> : !response.error && <Loading />}
      <Command text={labCommand(props.lab, "compare", props.a, props.b, "--all")} />
    </Section>
  );
}

function ComparisonTable(props: { comparison: LabComparison }) {
  const { t, language } = useTexts();
  const formatPercent = (value: number | null | undefined) => (value == null ? "–" : `${value > 0 ? "+" : ""}${labValue(value, 1)} %`);
  const withUnit = (value: number, unit: string) => `${labValue(value)}${unit && ` ${unit}`}`;
  return (
    <>
      {props.comparison.other_machine && <Alert component="p" isInline variant="warning" title={t("lab.other.machine")} className="spaced" />}
      <DataTable
        label={t("lab.comparison")}
        rows={props.comparison.compared}
        id={(row) => `${row.case}/${row.measure}`}
        columns={[
          { title: t("lab.case"), cell: (row) => inLanguage(row.case_words, language) },
          { title: t("lab.measure"), cell: (row) => inLanguage(row.measure_words, language) },
          { title: "A", cell: (row) => withUnit(row.a.mean, row.unit), isNumber: true },
          { title: "B", cell: (row) => withUnit(row.b.mean, row.unit), isNumber: true },
          { title: t("lab.difference"), cell: (row) => formatPercent(row.more_percent), sort: (row) => row.more_percent ?? 0, isNumber: true },
          { title: "p", cell: (row) => labValue(row.p, 3), sort: (row) => row.p, isNumber: true },
          { title: t("lab.finding"), cell: (row) => <StateLabel state={row.finding} text={t(`lab.finding.${row.finding}`)} /> },
        ]}
      />
      <p className="faint small">{t("lab.comparison.about")}</p>
    </>
  );
}
