/** Dialog that moves a queue to another worker. */
import { useState } from "react";
import type { VmqStatus } from "../../api/types";
import { command } from "../../api/commands";
import { ChangeDialog } from "../../components/ChangeDialog";
import { ChoiceField } from "../../components/fields";
import { useTexts } from "../../texts/texts";

type Queue = VmqStatus["queues"][number];

export function MoveDialog(props: { queue: Queue; workers: number[]; onClose: () => void }) {
  const { t } = useTexts();
  const [queue] = useState(props.queue);
  const others = props.workers.filter((worker) => worker !== queue.worker);
  const [target, setTarget] = useState(String(others[0] ?? ""));
  return (
    <ChangeDialog
      title={t("vmq.move.of", { queue: queue.queue })}
      about={t("vmq.move.about")}
      action={t("vmq.move")}
      withoutPreview
      change={target === "" ? undefined : {
        method: "POST",
        path: `/1.0/queues/${queue.queue.split("/").map(encodeURIComponent).join("/")}/move`,
        body: { worker: Number(target) },
        command: command("queue", "move", queue.queue, "--to", target),
      }}
      onClose={props.onClose}
    >
      <ChoiceField label={t("vmq.worker")} value={target} onChange={setTarget} options={others.map((id) => [String(id), String(id)])} />
    </ChangeDialog>
  );
}
