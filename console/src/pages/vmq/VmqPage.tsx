/** Page "VMQ": assignment of queues to workers over time, and the reasons. */
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { Event, VmqStatus } from "../../api/types";
import { useEvents } from "../../live/event_log";
import { useTopic } from "../../live/hooks";
import { useRates } from "../../live/history";
import type { WorkerRate } from "../../live/rates";
import { Bar } from "../../components/Bar";
import { DataTable } from "../../components/DataTable";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Empty, WhenLoaded } from "../../components/States";
import { StateLabel } from "../../components/StateLabel";
import { useTexts } from "../../texts/texts";
import { duration, percent } from "../../units/units";
import { EventList } from "../events/EventList";
import { MoveDialog } from "./MoveDialog";
import { MAX_WORKERS_DEFAULT, workerState } from "./worker_state";
import { StageTable } from "./StageTable";
import { QueueCounts, QueueTimeline } from "./Timeline";
import { VmqDialog } from "./VmqDialog";

type Queue = VmqStatus["queues"][number];
type Dialog = { vmq: VmqStatus; queue?: Queue };

/** Events about moves of queues: a move, its effect, and a move that failed. */
const MOVE_EVENT_IDS = [5001, 5004, 5005];

export function VmqPage() {
  const { t } = useTexts();
  const vmq = useTopic("vmq");
  const teams = useTopic("teams");
  const rates = useRates();
  const events = useEvents() ?? [];
  const [dialog, setDialog] = useState<Dialog>();
  return (
    <PageFrame title={t("vmq.title")} about={t("vmq.about")}>
      <WhenLoaded topics={[vmq, teams]}>
        {() => vmq.data?.length === 0 ? (
          <Empty title={t("vmq.none")}>{t("vmq.none.about")}</Empty>
        ) : (
          <>
            {vmq.data?.map((status) => (
              <UplinkSection key={status.uplink} vmq={status} events={events} onChange={(queue) => setDialog({ vmq: status, queue })} />
            ))}
            <StageSection workers={rates?.workers ?? []} />
          </>
        )}
      </WhenLoaded>
      {dialog && !dialog.queue && (
        <VmqDialog
          vmq={dialog.vmq}
          isTeam={teams.data?.some((team) => team.config.name === dialog.vmq.uplink) ?? false}
          onClose={() => setDialog(undefined)}
        />
      )}
      {dialog?.queue && (
        <MoveDialog
          queue={dialog.queue}
          workers={dialog.vmq.workers.filter((worker) => worker.permitted).map((worker) => worker.worker)}
          onClose={() => setDialog(undefined)}
        />
      )}
    </PageFrame>
  );
}

function UplinkSection(props: { vmq: VmqStatus; events: readonly Event[]; onChange: (queue?: Queue) => void }) {
  const { t, label } = useTexts();
  const { vmq } = props;
  const nics = new Set(vmq.queues.map((queue) => queue.nic));
  const moves = props.events
    .filter((event) => MOVE_EVENT_IDS.includes(event.id) && nics.has(event.subject.split("/").at(-1) ?? ""))
    .slice(-8)
    .reverse();
  return (
    <Section
      title={
        <span className="row">
          {t("vmq.of", { uplink: vmq.uplink })}
          <StateLabel state={vmq.config.enabled === false ? "off" : "active"} text={vmq.config.enabled === false ? t("vmq.off") : label(vmq.config.mode ?? "dynamic")} />
          <span className="faint">{t("vmq.max.now", { max: vmq.config.max_workers ?? MAX_WORKERS_DEFAULT })}</span>
        </span>
      }
      actions={<Button variant="secondary" size="sm" onClick={() => props.onChange()} aria-label={t("vmq.dialog", { uplink: vmq.uplink })}>{t("action.change")}</Button>}
    >
      <div className="grid-wide">
        <div><h3 className="small-title">{t("vmq.timeline")}</h3><QueueTimeline uplink={vmq.uplink} /></div>
        <div><h3 className="small-title">{t("vmq.counts")}</h3><QueueCounts uplink={vmq.uplink} /></div>
      </div>
      <h3 className="small-title spaced">{t("vmq.workers")}</h3>
      <DataTable
        label={t("vmq.workers")}
        rows={vmq.workers}
        id={(worker) => String(worker.worker)}
        columns={[
          { title: t("vmq.worker"), cell: (worker) => worker.worker, sort: (worker) => worker.worker },
          { title: t("column.state"), cell: (worker) => <StateLabel state={workerState(worker)} /> },
          { title: t("vmq.queues"), cell: (worker) => worker.queues, sort: (worker) => worker.queues, isNumber: true },
          { title: t("vmq.load"), cell: (worker) => <Bar ppm={worker.load_ppm} text={percent(worker.load_ppm)} />, sort: (worker) => worker.load_ppm },
          { title: t("vmq.others"), cell: (worker) => percent(worker.other_load_ppm), isNumber: true },
        ]}
      />
      <h3 className="small-title spaced">{t("vmq.queues")}</h3>
      <DataTable
        label={t("vmq.queues")}
        rows={vmq.queues}
        id={(queue) => queue.queue}
        sortedBy={2}
        descending
        columns={[
          { title: t("vmq.queue"), cell: (queue) => <code className="nowrap">{queue.queue}</code>, sort: (queue) => queue.queue },
          { title: t("vmq.worker"), cell: (queue) => queue.worker, sort: (queue) => queue.worker, isNumber: true },
          { title: t("vmq.load"), cell: (queue) => <Bar ppm={queue.load_ppm} text={percent(queue.load_ppm)} />, sort: (queue) => queue.load_ppm },
          { title: t("vmq.since"), cell: (queue) => <span className="nowrap">{duration(queue.age_s)}</span>, sort: (queue) => queue.age_s },
          { title: t("vmq.why"), cell: (queue) => <AssignmentReason queue={queue} /> },
          {
            title: "",
            cell: (queue) => (
              <Button variant="link" isInline isDisabled={vmq.workers.length < 2} onClick={() => props.onChange(queue)} aria-label={t("vmq.move.of", { queue: queue.queue })}>
                {t("vmq.move")}
              </Button>
            ),
          },
        ]}
      />
      <h3 className="small-title spaced">{t("vmq.moves")}</h3>
      <EventList events={moves} showFields />
    </Section>
  );
}

function AssignmentReason(props: { queue: Queue }) {
  const { t } = useTexts();
  const { queue } = props;
  return (
    <>
      {queue.default_queue && <span className="faint">{t("vmq.default")} </span>}
      <details>
        <summary>{queue.reason.split(/ \(|; /)[0]}</summary>
        <p>{queue.reason}</p>
        <p className="faint">{queue.stay_reason}</p>
      </details>
    </>
  );
}

function StageSection(props: { workers: WorkerRate[] }) {
  const { t } = useTexts();
  return <Section title={t("stages.title")}><p className="about">{t("stages.about")}</p><StageTable workers={props.workers} /></Section>;
}
