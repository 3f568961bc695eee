/** Whether two runs differ, measure by measure. */
import { Alert, Button } from "@patternfly/react-core";
import type { LabComparison, LabStatus } from "../../api/types";
import { useAnswer } from "../../live/hooks";
import { Command } from "../../parts/Command";
import { DataTable } from "../../parts/DataTable";
import { Facts } from "../../parts/Facts";
import { Section } from "../../parts/Section";
import { Errors, Loading } from "../../parts/States";
import { StateLabel } from "../../parts/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { measured } from "../../units/units";
import { inLanguage, labCommand } from "./runs";

export function Compared(props: { a: string; b: string; lab: LabStatus }) {
  const { t } = useTexts();
  const query = new URLSearchParams({ a: props.a, b: props.b }).toString();
  const answer = useAnswer<LabComparison>(`/1.0/lab/compare?${query}`);
  return (
    <Section
      title={t("lab.compared")}
      actions={<Button component="a" variant="link" isInline href={link("lab")}>{t("action.close")}</Button>}
    >
      <Facts of={[["A", <a key="a" href={link("lab", props.a)}>{props.a}</a>], ["B", <a key="b" href={link("lab", props.b)}>{props.b}</a>]]} />
      {answer.error && <Errors error={answer.error} />}
      {answer.data ? <Findings of={answer.data} /> : !answer.error && <Loading />}
      <Command text={labCommand(props.lab, "compare", props.a, props.b, "--all")} />
    </Section>
  );
}

function Findings(props: { of: LabComparison }) {
  const { t, language } = useTexts();
  const percent = (value: number | null | undefined) => (value == null ? "–" : `${value > 0 ? "+" : ""}${measured(value, 1)} %`);
  const withUnit = (value: number, unit: string) => `${measured(value)}${unit && ` ${unit}`}`;
  return (
    <>
      {props.of.other_machine && <Alert component="p" isInline variant="warning" title={t("lab.other.machine")} className="spaced" />}
      <DataTable
        label={t("lab.compared")}
        rows={props.of.compared}
        id={(one) => `${one.case}/${one.measure}`}
        columns={[
          { title: t("lab.case"), cell: (one) => inLanguage(one.case_words, language) },
          { title: t("lab.measure"), cell: (one) => inLanguage(one.measure_words, language) },
          { title: "A", cell: (one) => withUnit(one.a.mean, one.unit), isNumber: true },
          { title: "B", cell: (one) => withUnit(one.b.mean, one.unit), isNumber: true },
          { title: t("lab.difference"), cell: (one) => percent(one.more_percent), sort: (one) => one.more_percent ?? 0, isNumber: true },
          { title: "p", cell: (one) => measured(one.p, 3), sort: (one) => one.p, isNumber: true },
          { title: t("lab.finding"), cell: (one) => <StateLabel state={one.finding} text={t(`lab.finding.${one.finding}`)} /> },
        ]}
      />
      <p className="faint small">{t("lab.compared.about")}</p>
    </>
  );
}
