/** Confirmation dialog for an action on a VM. */
import { Checkbox } from "@patternfly/react-core";
import { useState } from "react";
import { ChangeDialog } from "../../components/ChangeDialog";
import { NumberField, parseNumber } from "../../components/fields";
import { useTexts } from "../../texts/texts";
import { isDestructive, vmChange, type VmAction } from "./actions";

export function VmActionDialog(props: { name: string; action: VmAction; onClose: () => void }) {
  const { t } = useTexts();
  const { action, name } = props;
  const [seconds, setSeconds] = useState("60");
  const [force, setForce] = useState(false);
  const parsedSeconds = parseNumber(seconds);
  const isValid = action !== "stop" || (parsedSeconds !== undefined && parsedSeconds !== null);
  const isDangerous = isDestructive(action) || (action === "stop" && force);
  return (
    <ChangeDialog
      title={t(`vm.${action}.title`, { name })}
      about={t(`vm.${action}.about`)}
      action={t(`vm.${action}`)}
      danger={isDangerous ? t("vm.danger") : undefined}
      withoutPreview
      change={isValid ? vmChange(action, name, { seconds: parsedSeconds ?? 60, force }) : undefined}
      onClose={props.onClose}
    >
      {action === "stop" && (
        <>
          <NumberField label={t("vm.stop.seconds")} value={seconds} onChange={setSeconds} />
          <Checkbox id="stop-force" className="spaced" label={t("vm.stop.force")} isChecked={force} onChange={(_event, checked) => setForce(checked)} />
        </>
      )}
    </ChangeDialog>
  );
}
