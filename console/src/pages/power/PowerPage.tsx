/** Page "Power": CPU settings of the power plan, their state, and power consumption. */
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { PowerStatus } from "../../api/types";
import { command } from "../../api/commands";
import { useTopic } from "../../live/hooks";
import { rateHistory, useRingBuffer } from "../../live/history";
import { ChangeDialog } from "../../components/ChangeDialog";
import { Chart } from "../../components/Chart";
import { DataTable } from "../../components/DataTable";
import { PropertyList } from "../../components/PropertyList";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { WhenLoaded } from "../../components/States";
import { StateLabel } from "../../components/StateLabel";
import { useTexts } from "../../texts/texts";
import { frequency, watts } from "../../units/units";
import { groupCpus, formatRanges } from "./group_cpus";
import { PlanDialog } from "./PlanDialog";

export function PowerPage() {
  const { t } = useTexts();
  const power = useTopic("power");
  const [dialog, setDialog] = useState<"plan" | "unset">();
  return (
    <PageFrame
      title={t("power.title")}
      about={t("power.about")}
      actions={
        <div className="row">
          <Button onClick={() => setDialog("plan")}>{t("power.select")}</Button>
          {power.data?.config && <Button variant="secondary" onClick={() => setDialog("unset")}>{t("power.unset")}</Button>}
        </div>
      }
    >
      <WhenLoaded topics={[power]}>{() => power.data && <PowerDetails power={power.data} />}</WhenLoaded>
      {dialog === "plan" && power.data && <PlanDialog power={power.data} onClose={() => setDialog(undefined)} />}
      {dialog === "unset" && (
        <ChangeDialog
          title={t("power.unset.title")}
          about={t("power.unset.about")}
          action={t("power.unset")}
          danger={t("power.unset.danger")}
          change={{ method: "DELETE", path: "/1.0/power", command: command("power", "unset") }}
          onClose={() => setDialog(undefined)}
        />
      )}
    </PageFrame>
  );
}

function PowerDetails(props: { power: PowerStatus }) {
  const { t, label } = useTexts();
  const { power } = props;
  const dataPlane = power.data_plane;
  return (
    <>
      <Section title={t("power.now")}>
        <PropertyList
          columns={3}
          items={[
            [t("power.plan"), power.config ? label(power.config.plan) : t("power.plan.none")],
            [t("power.effect"), <StateLabel key="e" state={power.effect} text={label(`effect-${power.effect}`)} />],
            [t("power.energy"), power.energy.milliwatts == null ? (power.energy.unavailable_reason ?? "–") : watts(power.energy.milliwatts)],
            [t("power.parking"), t(dataPlane.parking ? "yes" : "no")],
            [t("power.poll"), `${dataPlane.poll_us} µs`],
            [t("power.marks"), t("power.marks.value", { high: dataPlane.vmq_high_percent, low: dataPlane.vmq_low_percent })],
          ]}
        />
      </Section>
      {power.energy.milliwatts != null && <Section title={t("power.energy")}><PowerChart /></Section>}
      <Section title={t("power.settings")}>
        {power.settings.length === 0 ? <p>{t("power.settings.none")}</p> : (
          <DataTable
            label={t("power.settings")}
            rows={groupCpus(power.settings, (setting) => JSON.stringify([setting.setting, setting.required, setting.in_effect, setting.now, setting.reason]), (setting) => setting.cpus)}
            id={({ item: setting, cpus }) => `${setting.setting} ${cpus.join(",")}`}
            columns={[
              { title: t("power.setting"), cell: ({ item: setting }) => <code>{setting.setting}</code> },
              { title: "CPU", cell: ({ cpus }) => (cpus.length === 0 ? t("power.host") : formatRanges(cpus)) },
              { title: t("power.required"), cell: ({ item: setting }) => setting.required },
              { title: t("power.current"), cell: ({ item: setting }) => setting.now ?? "–" },
              { title: t("power.effect"), cell: ({ item: setting }) => <StateLabel state={setting.in_effect ? "active" : "none"} text={t(setting.in_effect ? "yes" : "no")} /> },
              { title: t("power.reason"), cell: ({ item: setting }) => setting.reason ?? "–" },
            ]}
          />
        )}
      </Section>
      <Section title="CPU">
        <DataTable
          label="CPU"
          rows={groupCpus(power.cpus, ({ cpu: _, ...rest }) => JSON.stringify(rest), (cpu) => [cpu.cpu])}
          id={({ cpus }) => cpus.join(",")}
          columns={[
            { title: "CPU", cell: ({ cpus }) => formatRanges(cpus) },
            { title: t("power.online"), cell: ({ item: cpu }) => t(cpu.online ? "yes" : "no") },
            { title: t("port.driver"), cell: ({ item: cpu }) => cpu.driver ?? "–" },
            { title: t("power.governor"), cell: ({ item: cpu }) => cpu.governor ?? "–" },
            { title: t("power.preference"), cell: ({ item: cpu }) => cpu.energy_preference ?? "–" },
            { title: t("power.frequency"), cell: ({ item: cpu }) => cpu.khz_min == null || cpu.khz_max == null ? "–" : `${frequency(cpu.khz_min)} – ${frequency(cpu.khz_max)}` },
            { title: t("power.idle"), cell: ({ item: cpu }) => cpu.idle_states.join(", ") || "–" },
          ]}
        />
      </Section>
      {power.changed.length > 0 && (
        <Section title={t("power.changed")}>
          <DataTable
            label={t("power.changed")}
            rows={power.changed}
            id={(change) => change.file}
            columns={[
              { title: t("disk.file"), cell: (change) => <code>{change.file}</code> },
              { title: t("power.before"), cell: (change) => change.before },
              { title: t("power.written"), cell: (change) => change.written },
              { title: t("power.current"), cell: (change) => change.now ?? "–" },
            ]}
          />
        </Section>
      )}
    </>
  );
}

function PowerChart() {
  const { t } = useTexts();
  const history = useRingBuffer(rateHistory);
  return (
    <Chart
      label={t("power.energy")}
      timesMs={history.map((rates) => rates.timeMs)}
      format={watts}
      series={[{ label: t("power.energy"), values: history.map((rates) => rates.milliwatts) }]}
    />
  );
}
