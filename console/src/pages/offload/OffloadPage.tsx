/** Page "Offload": offloads of a port, whether they are supported, enabled and used, and the reason. */
import { FormSelect, FormSelectOption, Switch } from "@patternfly/react-core";
import { useState } from "react";
import type { OffloadStatus } from "../../api/types";
import { command, assignmentArgs } from "../../api/commands";
import { useTopic } from "../../live/hooks";
import { ChangeDialog, type Change } from "../../components/ChangeDialog";
import { DataTable } from "../../components/DataTable";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Empty, WhenLoaded } from "../../components/States";
import { StateLabel } from "../../components/StateLabel";
import { useTexts } from "../../texts/texts";
import { OFFLOAD_KEYS, offloadPorts, type OffloadKey, type OffloadPort } from "./ports";

export function OffloadPage(props: { name?: string }) {
  const { t } = useTexts();
  const nics = useTopic("nics");
  const uplinks = useTopic("uplinks");
  const switches = useTopic("switches");
  const [selected, setSelected] = useState(props.name);
  const [change, setChange] = useState<Change & { key: OffloadKey; on: boolean; port: string }>();
  const ports = offloadPorts(nics.data ?? [], uplinks.data ?? [], switches.data ?? []);
  const port = ports.find((candidate) => candidate.id === selected || candidate.name === selected) ?? ports[0];
  const toggle = (target: OffloadPort, key: OffloadKey, on: boolean) => setChange({
    key, on, port: target.name,
    method: "PATCH", path: target.path, body: { [target.section]: { [key]: on } },
    command: command("offload", "set", target.cliName, ...assignmentArgs({ [key]: on })),
  });
  return (
    <PageFrame title={t("offload.title")} about={t("offload.about")}>
      <WhenLoaded topics={[nics, uplinks, switches]}>
        {() => port ? (
          <>
            <div className="row">
              <label htmlFor="offload-port">{t("offload.port")}</label>
              <FormSelect id="offload-port" className="select" value={port.id} onChange={(_event, value) => setSelected(value)}>
                {ports.map((port) => <FormSelectOption key={port.id} value={port.id} label={t(`offload.kind.${port.kind}`, { name: port.name })} />)}
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
            <Section title={t("offload.effect")}><OffloadTable offloads={port.offloads} /></Section>
          </>
        ) : <Empty title={t("offload.none")} />}
      </WhenLoaded>
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

function OffloadTable(props: { offloads: readonly OffloadStatus[] }) {
  const { t, label } = useTexts();
  const yesOrNo = (value: boolean | null | undefined) => (value == null ? "–" : t(value ? "yes" : "no"));
  return (
    <DataTable
      label={t("offload.effect")}
      rows={props.offloads}
      id={(offload) => offload.name}
      columns={[
        { title: t("offload.name"), cell: (offload) => <code>{offload.name}</code>, sort: (offload) => offload.name },
        { title: t("offload.supported"), cell: (offload) => yesOrNo(offload.supported) },
        { title: t("offload.enabled"), cell: (offload) => yesOrNo(offload.enabled) },
        { title: t("offload.effective"), cell: (offload) => <StateLabel state={offload.effective ? "active" : "off"} text={t(offload.effective ? "yes" : "no")} />, sort: (offload) => Number(offload.effective) },
        { title: t("offload.by"), cell: (offload) => label(offload.by), sort: (offload) => offload.by },
        { title: t("offload.why"), cell: (offload) => offload.reason },
      ]}
    />
  );
}
