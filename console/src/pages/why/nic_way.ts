/** The way of a NIC's frames: guest, queues, worker, switch, limits, uplink. */
import type { NicStatus, SwitchStatus, TeamStatus, UplinkStatus, VmqStatus } from "../../api/types";
import { command } from "../../api/commands";
import type { QueueRate } from "../../live/queue_rates";
import type { PortRate, WorkerRate } from "../../live/rates";
import { link } from "../../shell/router";
import { bitRate, count, percent } from "../../units/units";
import { byLoad, type Stage, type Way } from "./stage";

export interface NicSeen {
  nic: NicStatus;
  vm: string;
  rate?: PortRate;
  queues: readonly QueueRate[];
  workers: readonly WorkerRate[];
  vmq?: VmqStatus;
  of?: SwitchStatus;
  uplinks: readonly UplinkStatus[];
  teams: readonly TeamStatus[];
  uplinkRates: readonly PortRate[];
}

/** As much software work in the guest's place is worth an offload. */
const OFFLOAD_PPM = 100_000;

export function nicWay(seen: NicSeen): Way {
  const stages = [guestStage(seen), ...queueStages(seen), ...workerStages(seen), offloadStage(seen), limitStage(seen), dropStage(seen), uplinkStage(seen)];
  return { kind: "nic", name: seen.nic.config.name, stages: stages.filter((stage): stage is Stage => stage !== undefined) };
}

function guestStage({ nic, rate, queues, vm }: NicSeen): Stage {
  const mine = queues.filter((queue) => queue.port === nic.config.name);
  const full = mine.reduce((sum, queue) => sum + queue.fullPerS, 0);
  const isUp = nic.condition.health === "up";
  const bps = (rate?.rxBps ?? 0) + (rate?.txBps ?? 0);
  const isFull = full >= 1;
  return {
    title: "stage.guest",
    now: bitRate(bps),
    verdict: !isUp || isFull ? "slow" : bps === 0 ? "idle" : "fine",
    why: !isUp ? "why.guest.down" : isFull ? "why.guest.full" : bps === 0 ? "why.guest.idle" : "why.guest",
    whyParams: { reason: nic.condition.reason ?? "–", lost: count(full), pairs: nic.queue_pairs, rx: bitRate(rate?.txBps ?? 0), tx: bitRate(rate?.rxBps ?? 0) },
    remedy: isFull ? { text: "remedy.guest", href: link("vms", vm), command: command("nic", "set", nic.config.name, "--queues", String(Math.max(2, 2 * (nic.config.queues ?? 1)))) } : undefined,
  };
}

function queueStages({ nic, queues, vmq }: NicSeen): Stage[] {
  return queues
    .filter((queue) => queue.port === nic.config.name)
    .map((queue): Stage => {
      const known = vmq?.queues.find((one) => one.queue === queue.id);
      return {
        title: "stage.queue",
        params: { queue: queue.id },
        now: bitRate(queue.bps),
        loadPpm: known?.load_ppm,
        verdict: known ? byLoad(known.load_ppm) : queue.bps === 0 ? "idle" : "fine",
        why: known ? "why.queue" : "why.queue.fixed",
        whyParams: { worker: queue.worker, why: known?.reason ?? "–" },
        remedy: known && known.load_ppm >= 850_000 ? { text: "remedy.queue", href: link("network"), command: command("nic", "set", nic.config.name, "--queues", String(2 * (nic.config.queues ?? 1))) } : undefined,
      };
    });
}

function workerStages({ nic, queues, workers, vmq }: NicSeen): Stage[] {
  const ids = [...new Set(queues.filter((queue) => queue.port === nic.config.name).map((queue) => queue.worker))];
  return ids.map((id): Stage => {
    const busy = workers.find((one) => one.id === id)?.busyPpm ?? 0;
    const others = vmq?.workers.find((one) => one.worker === id)?.other_load_ppm;
    const spare = workers.some((one) => one.id !== id && one.busyPpm < 500_000);
    const max = vmq?.config.max_workers;
    const verdict = byLoad(busy);
    return {
      title: "stage.worker",
      params: { id },
      now: percent(busy),
      loadPpm: busy,
      verdict,
      why: others === undefined ? "why.worker" : "why.worker.others",
      whyParams: { others: percent(others ?? 0) },
      remedy: verdict === "fine" || !vmq ? undefined : {
        text: spare ? "remedy.workers" : "remedy.workers.none",
        href: link("vmq"),
        command: spare && max !== undefined ? command("vmq", "set", vmq.uplink, `max_workers=${max + 1}`) : undefined,
      },
    };
  });
}

/** Work that the switch does in the place of somebody's offloads. */
function offloadStage({ nic, queues, workers }: NicSeen): Stage | undefined {
  const ids = new Set(queues.filter((queue) => queue.port === nic.config.name).map((queue) => queue.worker));
  const mine = workers.filter((one) => ids.has(one.id));
  if (mine.length === 0) return undefined;
  const work = Math.max(...mine.map((one) => one.stages.filter(([name]) => name === "segment" || name === "checksum").reduce((sum, [, ppm]) => sum + ppm, 0)));
  const off = nic.offloads.filter((one) => one.enabled === false && one.supported !== false).map((one) => one.name);
  const isMuch = work >= OFFLOAD_PPM;
  return {
    title: "stage.offload",
    now: percent(work),
    loadPpm: work,
    verdict: isMuch ? "watch" : "fine",
    why: off.length > 0 ? "why.offload.off" : "why.offload",
    whyParams: { off: off.join(", ") },
    remedy: isMuch || off.length > 0 ? { text: "remedy.offload", href: link("offload", nic.config.name), command: command("offload", "show", nic.config.name) } : undefined,
  };
}

function limitStage({ nic, rate }: NicSeen): Stage | undefined {
  const limit = nic.config.bandwidth_max_bps;
  if (limit == null) return undefined;
  const ppm = Math.min(1e6, (1e6 * (rate?.rxBps ?? 0)) / limit);
  return {
    title: "stage.limit",
    now: bitRate(rate?.rxBps ?? 0),
    loadPpm: ppm,
    verdict: byLoad(ppm),
    why: "why.limit",
    whyParams: { limit: bitRate(limit) },
    remedy: { text: "remedy.limit", href: link("network"), command: command("nic", "set", nic.config.name, "--bandwidth-max-bps", String(2 * limit)) },
  };
}

function dropStage({ nic, rate }: NicSeen): Stage {
  const reasons = [...nic.counters.rx_dropped, ...nic.counters.tx_dropped].filter((drop) => drop.frames > 0);
  const now = rate?.dropsPerS ?? 0;
  return {
    title: "stage.switch",
    params: { name: nic.config.switch },
    now: `${count(now)}/s`,
    verdict: now >= 1 ? "watch" : "fine",
    why: reasons.length > 0 ? "why.drops" : "why.drops.none",
    whyParams: { reasons: reasons.map((drop) => `${drop.reason} ${count(drop.frames)}`).join(", ") },
    remedy: now >= 1 ? { text: "remedy.drops", href: link("network"), command: command("nic", "show", nic.config.name) } : undefined,
  };
}

function uplinkStage({ of, teams, uplinks, uplinkRates }: NicSeen): Stage | undefined {
  const name = of?.config.uplink;
  if (name == null) return undefined;
  const team = teams.find((one) => one.config.name === name);
  const members = team ? team.members.map((member) => member.uplink) : [name];
  const condition = team?.condition ?? uplinks.find((one) => one.config.name === name)?.condition;
  const rates = uplinkRates.filter((rate) => members.includes(rate.name));
  const bps = Math.max(0, ...[rates.reduce((sum, one) => sum + one.rxBps, 0), rates.reduce((sum, one) => sum + one.txBps, 0)]);
  const ppm = team && team.speed_mbps > 0 ? Math.min(1e6, bps / team.speed_mbps) : undefined;
  const isUp = condition?.health === "up";
  return {
    title: "stage.uplink",
    params: { name },
    now: bitRate(bps),
    loadPpm: ppm,
    verdict: !isUp ? "slow" : ppm === undefined ? "fine" : byLoad(ppm),
    why: !isUp ? "why.uplink.down" : team ? "why.team" : "why.uplink",
    whyParams: { reason: condition?.reason ?? "–", active: team?.members.filter((one) => one.state === "active").length ?? 1, all: members.length, speed: team ? bitRate(team.speed_mbps * 1e6) : "–" },
    remedy: team ? { text: "remedy.team", href: link("teams", name), command: command("team", "show", name) } : undefined,
  };
}
