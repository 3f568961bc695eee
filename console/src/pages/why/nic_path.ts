/** Path of the frames of a NIC: guest, queues, workers, offloads, limit, switch, uplink. */
import type { NicStatus, SwitchStatus, TeamStatus, UplinkStatus, VmqStatus } from "../../api/types";
import { command } from "../../api/commands";
import type { QueueRate } from "../../live/queue_rates";
import type { PortRate, WorkerRate } from "../../live/rates";
import { link } from "../../shell/router";
import { bitRate, count, percent } from "../../units/units";
import { verdictForLoad, type Stage, type RequestPath } from "./stage";

export interface NicPathInput {
  nic: NicStatus;
  vm: string;
  rate?: PortRate;
  queues: readonly QueueRate[];
  workers: readonly WorkerRate[];
  vmq?: VmqStatus;
  switchStatus?: SwitchStatus;
  uplinks: readonly UplinkStatus[];
  teams: readonly TeamStatus[];
  uplinkRates: readonly PortRate[];
}

/** Share of worker time for segmentation and checksums from which an offload is recommended. */
const OFFLOAD_PPM = 100_000;

export function nicPath(input: NicPathInput): RequestPath {
  const stages = [guestStage(input), ...queueStages(input), ...workerStages(input), offloadStage(input), limitStage(input), dropStage(input), uplinkStage(input)];
  return { kind: "nic", name: input.nic.config.name, stages: stages.filter((stage): stage is Stage => stage !== undefined) };
}

function guestStage({ nic, rate, queues, vm }: NicPathInput): Stage {
  const nicQueues = queues.filter((queue) => queue.port === nic.config.name);
  const overflowsPerS = nicQueues.reduce((sum, queue) => sum + queue.overflowsPerS, 0);
  const isUp = nic.condition.health === "up";
  const bps = (rate?.rxBps ?? 0) + (rate?.txBps ?? 0);
  const isOverflowing = overflowsPerS >= 1;
  return {
    title: "stage.guest",
    value: bitRate(bps),
    verdict: !isUp || isOverflowing ? "slow" : bps === 0 ? "idle" : "fine",
    explanation: !isUp ? "why.guest.down" : isOverflowing ? "why.guest.full" : bps === 0 ? "why.guest.idle" : "why.guest",
    explanationParams: { reason: nic.condition.reason ?? "–", lost: count(overflowsPerS), pairs: nic.queue_pairs, rx: bitRate(rate?.txBps ?? 0), tx: bitRate(rate?.rxBps ?? 0) },
    remedy: isOverflowing ? { text: "remedy.guest", href: link("vms", vm), command: command("nic", "set", nic.config.name, "--queues", String(Math.max(2, 2 * (nic.config.queues ?? 1)))) } : undefined,
  };
}

function queueStages({ nic, queues, vmq }: NicPathInput): Stage[] {
  return queues
    .filter((queue) => queue.port === nic.config.name)
    .map((queue): Stage => {
      const vmqQueue = vmq?.queues.find((vmqQueue) => vmqQueue.queue === queue.id);
      return {
        title: "stage.queue",
        params: { queue: queue.id },
        value: bitRate(queue.bps),
        loadPpm: vmqQueue?.load_ppm,
        verdict: vmqQueue ? verdictForLoad(vmqQueue.load_ppm) : queue.bps === 0 ? "idle" : "fine",
        explanation: vmqQueue ? "why.queue" : "why.queue.fixed",
        explanationParams: { worker: queue.worker, why: vmqQueue?.reason ?? "–" },
        remedy: vmqQueue && vmqQueue.load_ppm >= 850_000 ? { text: "remedy.queue", href: link("network"), command: command("nic", "set", nic.config.name, "--queues", String(2 * (nic.config.queues ?? 1))) } : undefined,
      };
    });
}

function workerStages({ nic, queues, workers, vmq }: NicPathInput): Stage[] {
  const ids = [...new Set(queues.filter((queue) => queue.port === nic.config.name).map((queue) => queue.worker))];
  return ids.map((id): Stage => {
    const busyPpm = workers.find((worker) => worker.id === id)?.busyPpm ?? 0;
    const otherLoadPpm = vmq?.workers.find((worker) => worker.worker === id)?.other_load_ppm;
    const hasSpareWorker = workers.some((worker) => worker.id !== id && worker.busyPpm < 500_000);
    const maxWorkers = vmq?.config.max_workers;
    const verdict = verdictForLoad(busyPpm);
    return {
      title: "stage.worker",
      params: { id },
      value: percent(busyPpm),
      loadPpm: busyPpm,
      verdict,
      explanation: otherLoadPpm === undefined ? "why.worker" : "why.worker.others",
      explanationParams: { others: percent(otherLoadPpm ?? 0) },
      remedy: verdict === "fine" || !vmq ? undefined : {
        text: hasSpareWorker ? "remedy.workers" : "remedy.workers.none",
        href: link("vmq"),
        command: hasSpareWorker && maxWorkers !== undefined ? command("vmq", "set", vmq.uplink, `max_workers=${maxWorkers + 1}`) : undefined,
      },
    };
  });
}

/** Segmentation and checksums that the switch performs in software. */
function offloadStage({ nic, queues, workers }: NicPathInput): Stage | undefined {
  const ids = new Set(queues.filter((queue) => queue.port === nic.config.name).map((queue) => queue.worker));
  const nicWorkers = workers.filter((worker) => ids.has(worker.id));
  if (nicWorkers.length === 0) return undefined;
  const workPpm = Math.max(...nicWorkers.map((worker) => worker.stages.filter(([name]) => name === "segment" || name === "checksum").reduce((sum, [, ppm]) => sum + ppm, 0)));
  const disabledOffloads = nic.offloads.filter((offload) => offload.enabled === false && offload.supported !== false).map((offload) => offload.name);
  const isHigh = workPpm >= OFFLOAD_PPM;
  return {
    title: "stage.offload",
    value: percent(workPpm),
    loadPpm: workPpm,
    verdict: isHigh ? "watch" : "fine",
    explanation: disabledOffloads.length > 0 ? "why.offload.off" : "why.offload",
    explanationParams: { off: disabledOffloads.join(", ") },
    remedy: isHigh || disabledOffloads.length > 0 ? { text: "remedy.offload", href: link("offload", nic.config.name), command: command("offload", "show", nic.config.name) } : undefined,
  };
}

function limitStage({ nic, rate }: NicPathInput): Stage | undefined {
  const limit = nic.config.bandwidth_max_bps;
  if (limit == null) return undefined;
  const ppm = Math.min(1e6, (1e6 * (rate?.rxBps ?? 0)) / limit);
  return {
    title: "stage.limit",
    value: bitRate(rate?.rxBps ?? 0),
    loadPpm: ppm,
    verdict: verdictForLoad(ppm),
    explanation: "why.limit",
    explanationParams: { limit: bitRate(limit) },
    remedy: { text: "remedy.limit", href: link("network"), command: command("nic", "set", nic.config.name, "--bandwidth-max-bps", String(2 * limit)) },
  };
}

function dropStage({ nic, rate }: NicPathInput): Stage {
  const reasons = [...nic.counters.rx_dropped, ...nic.counters.tx_dropped].filter((drop) => drop.frames > 0);
  const dropsPerS = rate?.dropsPerS ?? 0;
  return {
    title: "stage.switch",
    params: { name: nic.config.switch },
    value: `${count(dropsPerS)}/s`,
    verdict: dropsPerS >= 1 ? "watch" : "fine",
    explanation: reasons.length > 0 ? "why.drops" : "why.drops.none",
    explanationParams: { reasons: reasons.map((drop) => `${drop.reason} ${count(drop.frames)}`).join(", ") },
    remedy: dropsPerS >= 1 ? { text: "remedy.drops", href: link("network"), command: command("nic", "show", nic.config.name) } : undefined,
  };
}

function uplinkStage({ switchStatus, teams, uplinks, uplinkRates }: NicPathInput): Stage | undefined {
  const name = switchStatus?.config.uplink;
  if (name == null) return undefined;
  const team = teams.find((team) => team.config.name === name);
  const members = team ? team.members.map((member) => member.uplink) : [name];
  const condition = team?.condition ?? uplinks.find((uplink) => uplink.config.name === name)?.condition;
  const rates = uplinkRates.filter((rate) => members.includes(rate.name));
  const bps = Math.max(0, ...[rates.reduce((sum, rate) => sum + rate.rxBps, 0), rates.reduce((sum, rate) => sum + rate.txBps, 0)]);
  const ppm = team && team.speed_mbps > 0 ? Math.min(1e6, bps / team.speed_mbps) : undefined;
  const isUp = condition?.health === "up";
  return {
    title: "stage.uplink",
    params: { name },
    value: bitRate(bps),
    loadPpm: ppm,
    verdict: !isUp ? "slow" : ppm === undefined ? "fine" : verdictForLoad(ppm),
    explanation: !isUp ? "why.uplink.down" : team ? "why.team" : "why.uplink",
    explanationParams: { reason: condition?.reason ?? "–", active: team?.members.filter((member) => member.state === "active").length ?? 1, all: members.length, speed: team ? bitRate(team.speed_mbps * 1e6) : "–" },
    remedy: team ? { text: "remedy.team", href: link("teams", name), command: command("team", "show", name) } : undefined,
  };
}
