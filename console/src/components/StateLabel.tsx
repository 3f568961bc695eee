/** Label of a state, with colour and icon. `text` replaces the display text of the state. */
import { Label, type LabelProps } from "@patternfly/react-core";
import type { DiskStatus, StoreStatus } from "../api/types";
import { useTexts } from "../texts/texts";
import { storageState } from "./storage_state";

type Status = NonNullable<LabelProps["status"]>;

const STATUS: Record<string, Status> = {
  up: "success", ready: "success", running: "success", active: "success", full: "success", alive: "success",
  Supported: "success", succeeded: "success", met: "success",
  failed: "danger", faulted: "danger", error: "danger", panicked: "danger", lost: "danger", unmet: "danger",
  down: "warning", stalled: "warning", stale: "warning", "store-full": "warning", warning: "warning", partial: "warning", paused: "warning", silent: "warning",
  none: "warning", "to-be-left": "warning",
  working: "info", starting: "info", stopping: "info", arriving: "info", "handed-over": "info", away: "info",
  whole: "success", done: "success", agrees: "success", better: "success",
  differs: "danger", worse: "danger", interrupted: "warning", open: "warning",
  "under-way": "info", different: "info",
  waiting: "info", info: "info", "in-use": "info",
};

export function StateLabel(props: { state: string; text?: string }) {
  const { label } = useTexts();
  const status = STATUS[props.state];
  return (
    <Label isCompact variant="outline" {...(status ? { status } : { color: "grey" as const })}>
      {props.text ?? label(props.state)}
    </Label>
  );
}

/** State of a disk or store, marked if its values are the last known ones. */
export function StorageStateLabel(props: { object: Pick<DiskStatus | StoreStatus, "state" | "stale"> }) {
  return <StateLabel {...storageState(props.object, useTexts())} />;
}
