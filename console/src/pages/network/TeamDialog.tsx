/** Dialog that changes a team. */
import { useState } from "react";
import type { TeamStatus } from "../../api/types";
import { changedKeys, command, flagArgs, type MergePatch } from "../../api/commands";
import { ChangeDialog } from "../../components/ChangeDialog";
import { ChoiceField, fieldText, NumberField, parseNumber } from "../../components/fields";
import { useTexts } from "../../texts/texts";

const MODES = ["switch-independent", "static", "lacp"];
const ALGORITHMS = ["dynamic", "hyper-v-port", "transport-ports", "ip-addresses", "mac-addresses"];

export function TeamDialog(props: { team: TeamStatus; onClose: () => void }) {
  const { t } = useTexts();
  const [{ config }] = useState(props.team);
  const [mode, setMode] = useState<string>(config.mode);
  const [algorithm, setAlgorithm] = useState<string>(config.algorithm ?? "dynamic");
  const [minLinks, setMinLinks] = useState(fieldText(config.min_links));
  const links = parseNumber(minLinks);
  const current: MergePatch = { mode: config.mode, algorithm: config.algorithm ?? "dynamic", min_links: config.min_links ?? null };
  const patch = links === undefined ? {} : changedKeys(current, { mode, algorithm, min_links: links });
  return (
    <ChangeDialog
      title={t("team.dialog", { team: config.name })}
      about={t("team.dialog.about")}
      action={t("team.set")}
      danger={mode !== config.mode ? t("team.mode.danger") : undefined}
      change={Object.keys(patch).length === 0 ? undefined : {
        method: "PATCH",
        path: `/1.0/teams/${encodeURIComponent(config.name)}`,
        body: patch,
        command: command("team", "set", config.name, ...flagArgs(patch)),
      }}
      onClose={props.onClose}
    >
      <div className="fields">
        <ChoiceField label={t("team.algorithm")} help={t("team.algorithm.about")} value={algorithm} onChange={setAlgorithm} options={ALGORITHMS.map((algorithm) => [algorithm, algorithm])} />
        <ChoiceField label={t("team.mode")} help={t("team.mode.about")} value={mode} onChange={setMode} options={MODES.map((mode) => [mode, mode])} />
        <NumberField label={t("team.min_links")} help={t("team.min_links.about")} value={minLinks} onChange={setMinLinks} />
      </div>
    </ChangeDialog>
  );
}
