/** VMQ: which worker works off which queue, over time, and why. */
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { Event, VmqStatus } from "../../api/types";
import { useEvents } from "../../live/event_log";
import { useTopic } from "../../live/hooks";
import { useRates } from "../../live/history";
import type { WorkerRate } from "../../live/rates";
import { Bar } from "../../parts/Bar";
import { DataTable } from "../../parts/DataTable";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { Empty, WhenHeard } from "../../parts/States";
import { StateLabel } from "../../parts/StateLabel";
import { useTexts } from "../../texts/texts";
import { age, percent } from "../../units/units";
import { EventList } from "../events/EventList";
import { MoveDialog } from "./MoveDialog";
import { MAX_WORKERS_DEFAULT, workerState } from "./worker_state";
import { StageTable } from "./StageTable";
import { QueueCounts, QueueTimeline } from "./Timeline";
import { VmqDialog } from "./VmqDialog";

type Queue = VmqStatus["queues"][number];
type Changing = { vmq: VmqStatus; queue?: Queue };

/** Moves, what they did, and moves that could not be made. */
const MOVES = [5001, 5004, 5005];

export function VmqPage() {
  const { t } = useTexts();
  const vmq = useTopic("vmq");
  const teams = useTopic("teams");
  const rates = useRates();
  const events = useEvents() ?? [];
  const [changing, setChanging] = useState<Changing>();
  return (
    <PageFrame title={t("vmq.title")} about={t("vmq.about")}>
      <WhenHeard of={[vmq, teams]}>
        {() => vmq.data?.length === 0 ? (
          <Empty title={t("vmq.none")}>{t("vmq.none.about")}</Empty>
        ) : (
          <>
            {vmq.data?.map((one) => (
              <Uplink key={one.uplink} vmq={one} events={events} onChange={(queue) => setChanging({ vmq: one, queue })} />
            ))}
            <Stages workers={rates?.workers ?? []} />
          </>
        )}
      </WhenHeard>
      {changing && !changing.queue && (
        <VmqDialog
          vmq={changing.vmq}
          isTeam={teams.data?.some((team) => team.config.name === changing.vmq.uplink) ?? false}
          onClose={() => setChanging(undefined)}
        />
      )}
      {changing?.queue && (
        <MoveDialog
          queue={changing.queue}
          workers={changing.vmq.workers.filter((one) => one.permitted).map((one) => one.worker)}
          onClose={() => setChanging(undefined)}
        />
      )}
    </PageFrame>
  );
}

function Uplink(props: { vmq: VmqStatus; events: readonly Event[]; onChange: (queue?: Queue) => void }) {
  const { t, word } = useTexts();
  const { vmq } = props;
  const nics = new Set(vmq.queues.map((queue) => queue.nic));
  const moves = props.events
    .filter((event) => MOVES.includes(event.id) && nics.has(event.subject.split("/").at(-1) ?? ""))
    .slice(-8)
    .reverse();
  return (
    <Section
      title={
        <span className="row">
          {t("vmq.of", { uplink: vmq.uplink })}
          <StateLabel state={vmq.config.enabled === false ? "off" : "active"} text={vmq.config.enabled === false ? t("vmq.off") : word(vmq.config.mode ?? "dynamic")} />
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
        id={(one) => String(one.worker)}
        columns={[
          { title: t("vmq.worker"), cell: (one) => one.worker, sort: (one) => one.worker },
          { title: t("column.state"), cell: (one) => <StateLabel state={workerState(one)} /> },
          { title: t("vmq.queues"), cell: (one) => one.queues, sort: (one) => one.queues, isNumber: true },
          { title: t("vmq.load"), cell: (one) => <Bar ppm={one.load_ppm} text={percent(one.load_ppm)} />, sort: (one) => one.load_ppm },
          { title: t("vmq.others"), cell: (one) => percent(one.other_load_ppm), isNumber: true },
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
          { title: t("vmq.since"), cell: (queue) => <span className="nowrap">{age(queue.age_s)}</span>, sort: (queue) => queue.age_s },
          { title: t("vmq.why"), cell: (queue) => <Why queue={queue} /> },
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
      <EventList events={moves} withFields />
    </Section>
  );
}

function Why(props: { queue: Queue }) {
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

function Stages(props: { workers: WorkerRate[] }) {
  const { t } = useTexts();
  return <Section title={t("stages.title")}><p className="about">{t("stages.about")}</p><StageTable workers={props.workers} /></Section>;
}
