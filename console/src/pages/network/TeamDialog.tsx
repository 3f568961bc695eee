/** Changes a team while its traffic goes on. */
import { useState } from "react";
import type { TeamStatus } from "../../api/types";
import { changed, command, flags, type Keys } from "../../api/commands";
import { ChangeDialog } from "../../parts/ChangeDialog";
import { ChoiceField, fieldOf, NumberField, numberOf } from "../../parts/fields";
import { useTexts } from "../../texts/texts";

const MODES = ["switch-independent", "static", "lacp"];
const ALGORITHMS = ["dynamic", "hyper-v-port", "transport-ports", "ip-addresses", "mac-addresses"];

export function TeamDialog(props: { team: TeamStatus; onClose: () => void }) {
  const { t } = useTexts();
  const [{ config }] = useState(props.team);
  const [mode, setMode] = useState<string>(config.mode);
  const [algorithm, setAlgorithm] = useState<string>(config.algorithm ?? "dynamic");
  const [minLinks, setMinLinks] = useState(fieldOf(config.min_links));
  const links = numberOf(minLinks);
  const before: Keys = { mode: config.mode, algorithm: config.algorithm ?? "dynamic", min_links: config.min_links ?? null };
  const keys = links === undefined ? {} : changed(before, { mode, algorithm, min_links: links });
  return (
    <ChangeDialog
      title={t("team.dialog", { team: config.name })}
      about={t("team.dialog.about")}
      action={t("team.set")}
      danger={mode !== config.mode ? t("team.mode.danger") : undefined}
      change={Object.keys(keys).length === 0 ? undefined : {
        method: "PATCH",
        path: `/1.0/teams/${encodeURIComponent(config.name)}`,
        body: keys,
        command: command("team", "set", config.name, ...flags(keys)),
      }}
      onClose={props.onClose}
    >
      <div className="fields">
        <ChoiceField label={t("team.algorithm")} help={t("team.algorithm.about")} value={algorithm} onChange={setAlgorithm} options={ALGORITHMS.map((one) => [one, one])} />
        <ChoiceField label={t("team.mode")} help={t("team.mode.about")} value={mode} onChange={setMode} options={MODES.map((one) => [one, one])} />
        <NumberField label={t("team.min_links")} help={t("team.min_links.about")} value={minLinks} onChange={setMinLinks} />
      </div>
    </ChangeDialog>
  );
}
