/** Whether a promise could be kept, before it is made. */
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { DiskStatus, WhatIfAnswer, WhatIfRequest } from "../../api/types";
import { request } from "../../api/client";
import { command } from "../../api/commands";
import { Command } from "../../parts/Command";
import { ChoiceField, NumberField, numberOf } from "../../parts/fields";
import { Errors } from "../../parts/States";
import { StateLabel } from "../../parts/StateLabel";
import { useTexts } from "../../texts/texts";

export function WhatIf(props: { disks: readonly DiskStatus[]; onSet: (disk: DiskStatus, minimum: string) => void }) {
  const { t } = useTexts();
  const [name, setName] = useState(props.disks[0]?.config.name ?? "");
  const [minimum, setMinimum] = useState("500");
  const [answer, setAnswer] = useState<WhatIfAnswer>();
  const [error, setError] = useState<unknown>();
  const min = numberOf(minimum);
  const disk = props.disks.find((one) => one.config.name === name);
  if (!disk) return <p>{t("disks.none")}</p>;

  const ask = async () => {
    const body: WhatIfRequest = {
      proposals: [{ disk: { name, qos: { ...disk.config.qos, min_iops: min ?? null } } }],
    };
    setError(undefined);
    try {
      setAnswer(await request<WhatIfAnswer>("POST", "/1.0/qos/what-if", body));
    } catch (failure) {
      setAnswer(undefined);
      setError(failure);
    }
  };
  const forget = () => {
    setAnswer(undefined);
    setError(undefined);
  };

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (min !== undefined) void ask();
      }}
    >
      <div className="row-wide">
        <ChoiceField
          label={t("column.disk")}
          value={name}
          onChange={(value) => { setName(value); forget(); }}
          options={props.disks.map((one) => [one.config.name, one.config.name])}
        />
        <NumberField label={t("limits.min_iops")} value={minimum} onChange={(value) => { setMinimum(value); forget(); }} />
        <Button type="submit" variant="secondary" isDisabled={min === undefined}>{t("whatif.ask")}</Button>
      </div>
      {error !== undefined && <div className="spaced"><Errors error={error} /></div>}
      {answer && (
        <div className="spaced" role="status">
          {answer.stores.map((store) => (
            <p key={store.store}>
              <StateLabel state={store.fits ? "met" : "unmet"} text={t(store.fits ? "whatif.fits" : "whatif.no")} /> {store.text}
            </p>
          ))}
          {answer.fits && (
            <Button variant="link" isInline onClick={() => props.onSet(disk, minimum.trim())}>{t("whatif.set")}</Button>
          )}
        </div>
      )}
      <div className="spaced">
        <Command text={command("qos", "what-if", `disk/${name}`, `min_iops=${min ?? "default"}`)} />
      </div>
    </form>
  );
}
