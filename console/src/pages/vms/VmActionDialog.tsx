/** Asks before a VM's life is changed. */
import { Checkbox } from "@patternfly/react-core";
import { useState } from "react";
import { ChangeDialog } from "../../parts/ChangeDialog";
import { NumberField, numberOf } from "../../parts/fields";
import { useTexts } from "../../texts/texts";
import { isDestructive, vmChange, type VmAction } from "./actions";

export function VmActionDialog(props: { name: string; action: VmAction; onClose: () => void }) {
  const { t } = useTexts();
  const { action, name } = props;
  const [seconds, setSeconds] = useState("60");
  const [force, setForce] = useState(false);
  const given = numberOf(seconds);
  const isRight = action !== "stop" || (given !== undefined && given !== null);
  const isDangerous = isDestructive(action) || (action === "stop" && force);
  return (
    <ChangeDialog
      title={t(`vm.${action}.title`, { name })}
      about={t(`vm.${action}.about`)}
      action={t(`vm.${action}`)}
      danger={isDangerous ? t("vm.danger") : undefined}
      withoutPreview
      change={isRight ? vmChange(action, name, { seconds: given ?? 60, force }) : undefined}
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
