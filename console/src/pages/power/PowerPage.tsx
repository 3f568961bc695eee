/** Power: what is wanted of CPUs, what of it is so and why not, and energy. */
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { PowerStatus } from "../../api/types";
import { command } from "../../api/commands";
import { useTopic } from "../../live/hooks";
import { rateHistory, useRing } from "../../live/history";
import { ChangeDialog } from "../../parts/ChangeDialog";
import { Chart } from "../../parts/Chart";
import { DataTable } from "../../parts/DataTable";
import { Facts } from "../../parts/Facts";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { WhenHeard } from "../../parts/States";
import { StateLabel } from "../../parts/StateLabel";
import { useTexts } from "../../texts/texts";
import { frequency, watts } from "../../units/units";
import { alike, ranges } from "./alike";
import { PlanDialog } from "./PlanDialog";

export function PowerPage() {
  const { t } = useTexts();
  const power = useTopic("power");
  const [asked, setAsked] = useState<"plan" | "unset">();
  return (
    <PageFrame
      title={t("power.title")}
      about={t("power.about")}
      actions={
        <div className="row">
          <Button onClick={() => setAsked("plan")}>{t("power.choose")}</Button>
          {power.data?.config && <Button variant="secondary" onClick={() => setAsked("unset")}>{t("power.unset")}</Button>}
        </div>
      }
    >
      <WhenHeard of={[power]}>{() => power.data && <Shown power={power.data} />}</WhenHeard>
      {asked === "plan" && power.data && <PlanDialog power={power.data} onClose={() => setAsked(undefined)} />}
      {asked === "unset" && (
        <ChangeDialog
          title={t("power.unset.title")}
          about={t("power.unset.about")}
          action={t("power.unset")}
          danger={t("power.unset.danger")}
          change={{ method: "DELETE", path: "/1.0/power", command: command("power", "unset") }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </PageFrame>
  );
}

function Shown(props: { power: PowerStatus }) {
  const { t, word } = useTexts();
  const { power } = props;
  const plane = power.data_plane;
  return (
    <>
      <Section title={t("power.now")}>
        <Facts
          columns={3}
          of={[
            [t("power.plan"), power.config ? word(power.config.plan) : t("power.noplan")],
            [t("power.effect"), <StateLabel key="e" state={power.effect} text={word(`effect-${power.effect}`)} />],
            [t("power.energy"), power.energy.milliwatts == null ? (power.energy.unavailable_reason ?? "–") : watts(power.energy.milliwatts)],
            [t("power.parking"), t(plane.parking ? "yes" : "no")],
            [t("power.poll"), `${plane.poll_us} µs`],
            [t("power.marks"), t("power.marks.value", { high: plane.vmq_high_percent, low: plane.vmq_low_percent })],
          ]}
        />
      </Section>
      {power.energy.milliwatts != null && <Section title={t("power.energy")}><Watts /></Section>}
      <Section title={t("power.settings")}>
        {power.settings.length === 0 ? <p>{t("power.settings.none")}</p> : (
          <DataTable
            label={t("power.settings")}
            rows={alike(power.settings, (one) => JSON.stringify([one.setting, one.required, one.in_effect, one.now, one.reason]), (one) => one.cpus)}
            id={({ one, cpus }) => `${one.setting} ${cpus.join(",")}`}
            columns={[
              { title: t("power.setting"), cell: ({ one }) => <code>{one.setting}</code> },
              { title: "CPU", cell: ({ cpus }) => (cpus.length === 0 ? t("power.host") : ranges(cpus)) },
              { title: t("power.wanted"), cell: ({ one }) => one.required },
              { title: t("power.is"), cell: ({ one }) => one.now ?? "–" },
              { title: t("power.effect"), cell: ({ one }) => <StateLabel state={one.in_effect ? "active" : "none"} text={t(one.in_effect ? "yes" : "no")} /> },
              { title: t("power.whynot"), cell: ({ one }) => one.reason ?? "–" },
            ]}
          />
        )}
      </Section>
      <Section title="CPU">
        <DataTable
          label="CPU"
          rows={alike(power.cpus, ({ cpu: _, ...rest }) => JSON.stringify(rest), (one) => [one.cpu])}
          id={({ cpus }) => cpus.join(",")}
          columns={[
            { title: "CPU", cell: ({ cpus }) => ranges(cpus) },
            { title: t("power.online"), cell: ({ one }) => t(one.online ? "yes" : "no") },
            { title: t("port.driver"), cell: ({ one }) => one.driver ?? "–" },
            { title: t("power.governor"), cell: ({ one }) => one.governor ?? "–" },
            { title: t("power.preference"), cell: ({ one }) => one.energy_preference ?? "–" },
            { title: t("power.frequency"), cell: ({ one }) => one.khz_min == null || one.khz_max == null ? "–" : `${frequency(one.khz_min)} – ${frequency(one.khz_max)}` },
            { title: t("power.idle"), cell: ({ one }) => one.idle_states.join(", ") || "–" },
          ]}
        />
      </Section>
      {power.changed.length > 0 && (
        <Section title={t("power.changed")}>
          <DataTable
            label={t("power.changed")}
            rows={power.changed}
            id={(one) => one.file}
            columns={[
              { title: t("disk.file"), cell: (one) => <code>{one.file}</code> },
              { title: t("power.before"), cell: (one) => one.before },
              { title: t("power.written"), cell: (one) => one.written },
              { title: t("power.is"), cell: (one) => one.now ?? "–" },
            ]}
          />
        </Section>
      )}
    </>
  );
}

function Watts() {
  const { t } = useTexts();
  const history = useRing(rateHistory);
  return (
    <Chart
      label={t("power.energy")}
      timesMs={history.map((rates) => rates.timeMs)}
      format={watts}
      series={[{ label: t("power.energy"), values: history.map((rates) => rates.milliwatts) }]}
    />
  );
}
