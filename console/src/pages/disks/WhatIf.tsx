/** Form that checks whether a minimum fits the capacity of the store, without setting it. */
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { DiskStatus, WhatIfAnswer, WhatIfRequest } from "../../api/types";
import { request } from "../../api/client";
import { command } from "../../api/commands";
import { Command } from "../../components/Command";
import { ChoiceField, NumberField, parseNumber } from "../../components/fields";
import { ErrorAlert } from "../../components/States";
import { StateLabel } from "../../components/StateLabel";
import { useTexts } from "../../texts/texts";

export function WhatIf(props: { disks: readonly DiskStatus[]; onSet: (disk: DiskStatus, minimum: string) => void }) {
  const { t } = useTexts();
  const [name, setName] = useState(props.disks[0]?.config.name ?? "");
  const [minimum, setMinimum] = useState("500");
  const [result, setResult] = useState<WhatIfAnswer>();
  const [error, setError] = useState<unknown>();
  const min = parseNumber(minimum);
  const disk = props.disks.find((disk) => disk.config.name === name);
  if (!disk) return <p>{t("disks.none")}</p>;

  const check = async () => {
    const body: WhatIfRequest = {
      proposals: [{ disk: { name, qos: { ...disk.config.qos, min_iops: min ?? null } } }],
    };
    setError(undefined);
    try {
      setResult(await request<WhatIfAnswer>("POST", "/1.0/qos/what-if", body));
    } catch (thrown) {
      setResult(undefined);
      setError(thrown);
    }
  };
  const reset = () => {
    setResult(undefined);
    setError(undefined);
  };

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (min !== undefined) void check();
      }}
    >
      <div className="row-wide">
        <ChoiceField
          label={t("column.disk")}
          value={name}
          onChange={(value) => { setName(value); reset(); }}
          options={props.disks.map((disk) => [disk.config.name, disk.config.name])}
        />
        <NumberField label={t("limits.min_iops")} value={minimum} onChange={(value) => { setMinimum(value); reset(); }} />
        <Button type="submit" variant="secondary" isDisabled={min === undefined}>{t("whatif.ask")}</Button>
      </div>
      {error !== undefined && <div className="spaced"><ErrorAlert error={error} /></div>}
      {result && (
        <div className="spaced" role="status">
          {result.stores.map((store) => (
            <p key={store.store}>
              <StateLabel state={store.fits ? "met" : "unmet"} text={t(store.fits ? "whatif.fits" : "whatif.no")} /> {store.text}
            </p>
          ))}
          {result.fits && (
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
