//! Text output of VMQ: assignment of queues to workers.

use core::cmp::Reverse;

use suimon_contract::{ResourceKind, VmqQueueStatus, VmqStatus, VmqWorkerStatus};

use crate::columns;
use crate::detail_text::{DetailText, serialized_name};
use crate::table::{Table, or_dash};
use crate::units;

/// Returns a table with one row per team or uplink.
pub fn table(statuses: &[VmqStatus]) -> Table {
    let mut table = Table::new(&columns::VMQS);
    for vmq in statuses {
        let permitted = || vmq.workers.iter().filter(|worker| worker.permitted);
        let in_use = vmq.workers.iter().filter(|worker| worker.queues > 0);
        let busiest = in_use.clone().min_by_key(|p| (Reverse(p.load_ppm), p.worker));
        table.add_row([
            vmq.uplink.to_string(),
            if vmq.config.enabled { "yes" } else { "no" }.to_owned(),
            serialized_name(&vmq.config.mode),
            vmq.queues.len().to_string(),
            in_use.count().to_string(),
            permitted().filter(|worker| worker.queues == 0).count().to_string(),
            or_dash(busiest.map(|p| format!("{} at {}", p.worker, units::percent(p.load_ppm)))),
        ]);
    }
    table
}

/// Returns the keys, workers and queues of a team or uplink.
pub fn details(vmq: &VmqStatus) -> String {
    let mut lines = DetailText::default();
    lines.add("uplink", &vmq.uplink);
    lines.add_keys(ResourceKind::Vmq, &vmq.config);
    lines.add_table(&worker_table(&vmq.workers));
    lines.add_table(&queue_table(&vmq.queues));
    lines.into_text()
}

fn worker_table(workers: &[VmqWorkerStatus]) -> Table {
    let mut table = Table::new(&columns::VMQ_WORKERS);
    for worker in workers {
        table.add_row([
            worker.worker.to_string(),
            state(worker).to_owned(),
            worker.queues.to_string(),
            units::percent(worker.load_ppm),
            units::percent(worker.other_load_ppm),
        ]);
    }
    table
}

/// Returns the state of a worker as text. A worker that is no longer permitted has queues until VMQ
/// has moved them.
const fn state(worker: &VmqWorkerStatus) -> &'static str {
    match (worker.permitted, worker.queues) {
        (true, 0) => "parked",
        (true, _) => "in use",
        (false, 0) => "not permitted",
        (false, _) => "draining",
    }
}

fn queue_table(queues: &[VmqQueueStatus]) -> Table {
    let mut table = Table::new(&columns::VMQ_QUEUES);
    for queue in queues {
        table.add_row([
            queue.queue.clone(),
            queue.worker.to_string(),
            queue.nic.to_string(),
            units::percent(queue.load_ppm),
            units::age(queue.age_s),
            if queue.is_default_queue { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

/// Explains the assignment of a queue in one line.
pub fn explanation(queue: &VmqQueueStatus) -> String {
    let VmqQueueStatus { queue: name, worker, load_ppm, age_s, reason, stay_reason, .. } = queue;
    let (load, age) = (units::percent(*load_ppm), units::age(*age_s));
    format!(
        "{name} takes {load} of worker {worker} and has been there for {age}: {reason}. It is not \
         moved: {stay_reason}.\n"
    )
}

#[cfg(test)]
#[path = "vmq_tables_tests.rs"]
mod tests;
