/** Layout of the diagram of a switch: guests, queues, workers and uplinks as boxes, traffic as edges. */
import type { NicStatus, WorkerStatus, SwitchStatus, TeamStatus, UplinkStatus, VmStatus } from "../../api/types";
import type { QueueRate } from "../../live/queue_rates";

export interface Box {
  id: string;
  /** 0: guests, 1: queues, 2: workers, 3: uplinks. */
  column: 0 | 1 | 2 | 3;
  title: string;
  /** Second line, such as the VM. */
  detail?: string;
  state?: string;
  bps?: number;
  loadPpm?: number;
  y: number;
  height: number;
}

export interface Edge {
  from: string;
  to: string;
  bps: number;
}

export interface Diagram {
  boxes: Box[];
  edges: Edge[];
  height: number;
}

export interface DiagramInput {
  switchStatus: SwitchStatus;
  nics: readonly NicStatus[];
  vms: readonly VmStatus[];
  uplinks: readonly UplinkStatus[];
  teams: readonly TeamStatus[];
  queues: readonly QueueRate[];
  workers: readonly WorkerStatus[];
  loadByQueue: ReadonlyMap<string, number>;
  busyByWorker: ReadonlyMap<number, number>;
}

/** Heights and distances in units of the SVG. */
const QUEUE_HEIGHT = 30;
const BOX_GAP = 8;
const BOX_HEIGHT = 48;

/** Returns the boxes and edges of a switch. */
export function switchDiagram(input: DiagramInput): Diagram {
  const name = input.switchStatus.config.name;
  const vmByNic = new Map(input.vms.flatMap((vm) => (vm.nics ?? []).map((nic): [string, string] => [nic, vm.config.name])));
  const boxes: Box[] = [];
  const edges: Edge[] = [];
  const usedWorkers = new Set<number>();
  let y = 0;
  for (const nic of input.nics.filter((nic) => nic.config.switch === name)) {
    const nicQueues = input.queues.filter((queue) => queue.port === nic.config.name);
    const height = Math.max(BOX_HEIGHT, nicQueues.length * QUEUE_HEIGHT + (nicQueues.length - 1) * 4);
    const id = `nic/${nic.config.name}`;
    boxes.push({
      id, column: 0, title: nic.config.name, detail: vmByNic.get(nic.config.name), state: nic.condition.health,
      bps: nicQueues.reduce((sum, queue) => sum + queue.bps, 0), y, height,
    });
    nicQueues.forEach((queue, index) => {
      boxes.push({
        id: queue.id, column: 1, title: queue.id.split("/").slice(-2).join("/"), bps: queue.bps,
        loadPpm: input.loadByQueue.get(queue.id), y: y + index * (QUEUE_HEIGHT + 4), height: QUEUE_HEIGHT,
      });
      edges.push({ from: id, to: queue.id, bps: queue.bps });
      edges.push({ from: queue.id, to: `worker/${queue.worker}`, bps: queue.bps });
      usedWorkers.add(queue.worker);
    });
    y += height + BOX_GAP;
  }
  const uplinks = uplinksOf(input);
  for (const uplink of uplinks) {
    for (const queue of input.queues.filter((queue) => queue.port === uplink)) {
      edges.push({ from: `worker/${queue.worker}`, to: `uplink/${uplink}`, bps: queue.bps });
      usedWorkers.add(queue.worker);
    }
  }
  // Workers without queues are parked. They are shown for switches with an uplink, because VMQ may use them.
  const workers = input.workers.map((worker) => worker.id).filter((id) => usedWorkers.has(id) || uplinks.length > 0);
  let bottom = y;
  distributeTops(workers.length, y).forEach((top, index) => {
    const id = workers[index] ?? 0;
    boxes.push({ id: `worker/${id}`, column: 2, title: String(id), loadPpm: input.busyByWorker.get(id), state: usedWorkers.has(id) ? undefined : "parked", y: top, height: BOX_HEIGHT });
    bottom = Math.max(bottom, top + BOX_HEIGHT);
  });
  distributeTops(uplinks.length, y).forEach((top, index) => {
    const uplink = input.uplinks.find((uplink) => uplink.config.name === uplinks[index]);
    const uplinkQueues = input.queues.filter((queue) => queue.port === uplinks[index]);
    boxes.push({
      id: `uplink/${uplinks[index]}`, column: 3, title: uplinks[index] ?? "", detail: uplink?.config.device, state: uplink?.condition.health,
      bps: uplinkQueues.reduce((sum, queue) => sum + queue.bps, 0), y: top, height: BOX_HEIGHT,
    });
    bottom = Math.max(bottom, top + BOX_HEIGHT);
  });
  return { boxes, edges: mergeEdges(edges), height: Math.max(bottom, BOX_HEIGHT) };
}

/** Returns the uplinks of the switch: the members of its team, or its single uplink. */
function uplinksOf(input: DiagramInput): string[] {
  const uplink = input.switchStatus.config.uplink;
  if (uplink == null) return [];
  const team = input.teams.find((team) => team.config.name === uplink);
  return team ? team.members.map((member) => member.uplink) : [uplink];
}

/** Returns the top coordinates of boxes that are distributed evenly over a height. */
function distributeTops(count: number, height: number): number[] {
  const totalHeight = Math.max(height, count * (BOX_HEIGHT + BOX_GAP));
  return Array.from({ length: count }, (_, index) => (totalHeight / count) * (index + 0.5) - BOX_HEIGHT / 2);
}

/** Merges edges between the same boxes and adds up their rates. */
function mergeEdges(edges: readonly Edge[]): Edge[] {
  const byEnds = new Map<string, Edge>();
  for (const edge of edges) {
    const key = `${edge.from} ${edge.to}`;
    const previous = byEnds.get(key);
    byEnds.set(key, { ...edge, bps: edge.bps + (previous?.bps ?? 0) });
  }
  return [...byEnds.values()];
}
