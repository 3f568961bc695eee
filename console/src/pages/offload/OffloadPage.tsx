/** What each port offloads: whether the other side could, whether it is on, whether it is used, and why. */
import { FormSelect, FormSelectOption, Switch } from "@patternfly/react-core";
import { useState } from "react";
import type { OffloadStatus } from "../../api/types";
import { command, settings } from "../../api/commands";
import { useTopic } from "../../live/hooks";
import { ChangeDialog, type Change } from "../../parts/ChangeDialog";
import { DataTable } from "../../parts/DataTable";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { Empty, WhenHeard } from "../../parts/States";
import { StateLabel } from "../../parts/StateLabel";
import { useTexts } from "../../texts/texts";
import { OFFLOAD_KEYS, offloadPorts, type OffloadKey, type OffloadPort } from "./ports";

export function OffloadPage(props: { name?: string }) {
  const { t } = useTexts();
  const nics = useTopic("nics");
  const uplinks = useTopic("uplinks");
  const switches = useTopic("switches");
  const [chosen, setChosen] = useState(props.name);
  const [change, setChange] = useState<Change & { key: OffloadKey; on: boolean; port: string }>();
  const ports = offloadPorts(nics.data ?? [], uplinks.data ?? [], switches.data ?? []);
  const port = ports.find((one) => one.id === chosen || one.name === chosen) ?? ports[0];
  const toggle = (of: OffloadPort, key: OffloadKey, on: boolean) => setChange({
    key, on, port: of.name,
    method: "PATCH", path: of.path, body: { [of.section]: { [key]: on } },
    command: command("offload", "set", of.word, ...settings({ [key]: on })),
  });
  return (
    <PageFrame title={t("offload.title")} about={t("offload.about")}>
      <WhenHeard of={[nics, uplinks, switches]}>
        {() => port ? (
          <>
            <div className="row">
              <label htmlFor="offload-port">{t("offload.port")}</label>
              <FormSelect id="offload-port" className="select" value={port.id} onChange={(_event, value) => setChosen(value)}>
                {ports.map((one) => <FormSelectOption key={one.id} value={one.id} label={t(`offload.kind.${one.kind}`, { name: one.name })} />)}
              </FormSelect>
            </div>
            <Section title={t("offload.switches", { port: port.name })}>
              <div className="toggles">
                {OFFLOAD_KEYS.map((key) => (
                  <Switch
                    key={key}
                    id={`offload-${key}`}
                    label={t(`offload.key.${key}`)}
                    isChecked={port.config?.[key] !== false}
                    onChange={(_event, on) => toggle(port, key, on)}
                  />
                ))}
              </div>
            </Section>
            <Section title={t("offload.effect")}><Effects of={port.offloads} /></Section>
          </>
        ) : <Empty title={t("offload.none")} />}
      </WhenHeard>
      {change && (
        <ChangeDialog
          title={t(change.on ? "offload.turn.on" : "offload.turn.off", { key: t(`offload.key.${change.key}`), port: change.port })}
          about={t("offload.turn.about")}
          action={t(change.on ? "offload.on" : "offload.off")}
          change={change}
          onClose={() => setChange(undefined)}
        />
      )}
    </PageFrame>
  );
}

function Effects(props: { of: readonly OffloadStatus[] }) {
  const { t, word } = useTexts();
  const answer = (yes: boolean | null | undefined) => (yes == null ? "–" : t(yes ? "yes" : "no"));
  return (
    <DataTable
      label={t("offload.effect")}
      rows={props.of}
      id={(one) => one.name}
      columns={[
        { title: t("offload.name"), cell: (one) => <code>{one.name}</code>, sort: (one) => one.name },
        { title: t("offload.supported"), cell: (one) => answer(one.supported) },
        { title: t("offload.enabled"), cell: (one) => answer(one.enabled) },
        { title: t("offload.effective"), cell: (one) => <StateLabel state={one.effective ? "active" : "off"} text={t(one.effective ? "yes" : "no")} />, sort: (one) => Number(one.effective) },
        { title: t("offload.by"), cell: (one) => word(one.by), sort: (one) => one.by },
        { title: t("offload.why"), cell: (one) => one.reason },
      ]}
    />
  );
}
