/** Table of runs, with a selection of two runs to compare. */
import { Button, Checkbox } from "@patternfly/react-core";
import { useState } from "react";
import type { LabPlan, LabRun } from "../../api/types";
import { DataTable } from "../../components/DataTable";
import { StateLabel } from "../../components/StateLabel";
import { navigate, link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { dateTime } from "../../units/units";
import { updateSelection, inLanguage } from "./runs";

export function RunTable(props: { runs: readonly LabRun[]; plans: readonly LabPlan[] }) {
  const { t, language } = useTexts();
  const [selected, setSelected] = useState<readonly string[]>([]);
  const title = (run: LabRun) => {
    const plan = props.plans.find((plan) => plan.id === run.plan);
    return plan ? inLanguage(plan.title, language) : run.plan;
  };
  const compare = () => {
    const [a, b] = [...selected].sort((first, second) => startMs(props.runs, first) - startMs(props.runs, second));
    if (a && b) navigate(`${link("lab")}?${new URLSearchParams({ a, b }).toString()}`);
  };
  return (
    <>
      <div className="row spaced">
        <Button variant="secondary" isDisabled={selected.length !== 2} onClick={compare}>{t("lab.compare")}</Button>
        <span className="faint">{t("lab.compare.about")}</span>
      </div>
      <DataTable
        label={t("lab.runs")}
        rows={props.runs}
        id={(run) => run.id}
        columns={[
          {
            title: t("lab.select"),
            cell: (run) => (
              <Checkbox
                id={`pick-${run.id}`}
                aria-label={t("lab.select.of", { run: run.id })}
                isDisabled={run.state !== "whole"}
                isChecked={selected.includes(run.id)}
                onChange={(_event, checked) => setSelected(updateSelection(selected, run.id, checked))}
              />
            ),
          },
          { title: t("lab.run.one"), cell: (run) => <a href={link("lab", run.id)} aria-label={`${title(run)}, ${run.id}`}>{title(run)}</a>, sort: title },
          { title: t("lab.origin"), cell: (run) => `${t(run.simulated ? "lab.simulated" : "lab.real")}${run.scale && !run.simulated ? `, ${run.scale}` : ""}` },
          { title: t("lab.start"), cell: (run) => (run.began ? dateTime(Date.parse(run.began)) : "–"), sort: (run) => run.began ?? "" },
          { title: t("lab.state"), cell: (run) => <StateLabel state={run.state} text={t(`lab.state.${run.state}`)} /> },
          { title: t("lab.verdict"), cell: (run) => run.error ?? (run.verdict ? inLanguage(run.verdict, language) : "–") },
        ]}
      />
    </>
  );
}

function startMs(runs: readonly LabRun[], id: string): number {
  return Date.parse(runs.find((run) => run.id === id)?.began ?? "") || 0;
}
