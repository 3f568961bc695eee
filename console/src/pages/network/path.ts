/** The way of frames on one switch: guest, queue, worker, uplink; as boxes and lines to draw. */
import type { NicStatus, WorkerStatus, SwitchStatus, TeamStatus, UplinkStatus, VmStatus } from "../../api/types";
import type { QueueRate } from "../../live/queue_rates";

export interface Box {
  id: string;
  /** 0 guests, 1 queues, 2 workers, 3 uplinks. */
  column: 0 | 1 | 2 | 3;
  title: string;
  /** What stands below the title, such as the VM. */
  about?: string;
  state?: string;
  bps?: number;
  loadPpm?: number;
  y: number;
  height: number;
}

export interface Line {
  from: string;
  to: string;
  bps: number;
}

export interface Picture {
  boxes: Box[];
  lines: Line[];
  height: number;
}

export interface PathInput {
  of: SwitchStatus;
  nics: readonly NicStatus[];
  vms: readonly VmStatus[];
  uplinks: readonly UplinkStatus[];
  teams: readonly TeamStatus[];
  queues: readonly QueueRate[];
  workers: readonly WorkerStatus[];
  loads: ReadonlyMap<string, number>;
  busy: ReadonlyMap<number, number>;
}

const QUEUE = 30;
const GAP = 8;
const BOX = 48;

export function pathPicture(input: PathInput): Picture {
  const name = input.of.config.name;
  const vmOf = new Map(input.vms.flatMap((vm) => (vm.nics ?? []).map((nic): [string, string] => [nic, vm.config.name])));
  const boxes: Box[] = [];
  const lines: Line[] = [];
  const used = new Set<number>();
  let y = 0;
  for (const nic of input.nics.filter((one) => one.config.switch === name)) {
    const mine = input.queues.filter((queue) => queue.port === nic.config.name);
    const height = Math.max(BOX, mine.length * QUEUE + (mine.length - 1) * 4);
    const id = `nic/${nic.config.name}`;
    boxes.push({
      id, column: 0, title: nic.config.name, about: vmOf.get(nic.config.name), state: nic.condition.health,
      bps: mine.reduce((sum, queue) => sum + queue.bps, 0), y, height,
    });
    mine.forEach((queue, at) => {
      boxes.push({
        id: queue.id, column: 1, title: queue.id.split("/").slice(-2).join("/"), bps: queue.bps,
        loadPpm: input.loads.get(queue.id), y: y + at * (QUEUE + 4), height: QUEUE,
      });
      lines.push({ from: id, to: queue.id, bps: queue.bps });
      lines.push({ from: queue.id, to: `worker/${queue.worker}`, bps: queue.bps });
      used.add(queue.worker);
    });
    y += height + GAP;
  }
  const members = membersOf(input);
  for (const uplink of members) {
    for (const queue of input.queues.filter((one) => one.port === uplink)) {
      lines.push({ from: `worker/${queue.worker}`, to: `uplink/${uplink}`, bps: queue.bps });
      used.add(queue.worker);
    }
  }
  // Workers without queues are parked; they are shown where VMQ could use them.
  const workers = input.workers.map((one) => one.id).filter((id) => used.has(id) || members.length > 0);
  let low = y;
  spread(workers.length, y).forEach((top, at) => {
    const id = workers[at] ?? 0;
    boxes.push({ id: `worker/${id}`, column: 2, title: String(id), loadPpm: input.busy.get(id), state: used.has(id) ? undefined : "parked", y: top, height: BOX });
    low = Math.max(low, top + BOX);
  });
  spread(members.length, y).forEach((top, at) => {
    const uplink = input.uplinks.find((one) => one.config.name === members[at]);
    const mine = input.queues.filter((queue) => queue.port === members[at]);
    boxes.push({
      id: `uplink/${members[at]}`, column: 3, title: members[at] ?? "", about: uplink?.config.device, state: uplink?.condition.health,
      bps: mine.reduce((sum, queue) => sum + queue.bps, 0), y: top, height: BOX,
    });
    low = Math.max(low, top + BOX);
  });
  return { boxes, lines: merged(lines), height: Math.max(low, BOX) };
}

/** The uplinks that a switch's frames may leave by: those of its team, or its one. */
function membersOf(input: PathInput): string[] {
  const uplink = input.of.config.uplink;
  if (uplink == null) return [];
  const team = input.teams.find((one) => one.config.name === uplink);
  return team ? team.members.map((member) => member.uplink) : [uplink];
}

/** Tops of boxes that stand evenly beside what is `height` high. */
function spread(count: number, height: number): number[] {
  const room = Math.max(height, count * (BOX + GAP));
  return Array.from({ length: count }, (_, at) => (room / count) * (at + 0.5) - BOX / 2);
}

/** Lines between the same boxes are one. */
function merged(lines: readonly Line[]): Line[] {
  const all = new Map<string, Line>();
  for (const line of lines) {
    const key = `${line.from} ${line.to}`;
    const before = all.get(key);
    all.set(key, { ...line, bps: line.bps + (before?.bps ?? 0) });
  }
  return [...all.values()];
}
