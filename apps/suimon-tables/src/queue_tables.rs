//! Text output of queues and workers.

use suimon_contract::{QueueStatus, WorkerStatus};

use crate::columns;
use crate::table::Table;
use crate::units;

/// Returns a table with one row per queue.
pub fn queue_table(queues: &[QueueStatus]) -> Table {
    let mut table = Table::new(&columns::QUEUES);
    for queue in queues {
        table.add_row([
            queue.id.clone(),
            queue.worker.to_string(),
            units::count(queue.frames),
            units::decimal_bytes(queue.bytes),
            units::count(queue.dropped_no_buffer),
            queue.moves.to_string(),
        ]);
    }
    table
}

/// Returns a table with one row per worker.
pub fn worker_table(workers: &[WorkerStatus]) -> Table {
    let mut table = Table::new(&columns::WORKERS);
    for worker in workers {
        let seconds = |ns: u64| format!("{}.{} s", ns / 1_000_000_000, ns / 100_000_000 % 10);
        table.add_row([
            worker.id.to_string(),
            worker.cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string()),
            worker.queues.to_string(),
            seconds(worker.cpu_time_ns),
            seconds(worker.busy_ns),
            units::count(worker.frames),
            units::count(worker.batches),
            units::count(worker.sleeps),
            units::count(worker.yields),
            state(worker),
        ]);
    }
    table
}

fn state(worker: &WorkerStatus) -> String {
    let sleep_state = if worker.asleep { "asleep" } else { "awake" };
    let others = if worker.is_yielding { ", yields its CPU" } else { "" };
    format!("{sleep_state}{others}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned() {
        let queue = |id: &str, frames| QueueStatus {
            id: id.to_owned(),
            port: "web".to_owned(),
            worker: 1,
            frames,
            bytes: frames * 64,
            dropped_no_buffer: 0,
            moves: 2,
        };
        let queues = [queue("web/rx/0", 12_345_678), queue("web/tx/0", 7)];
        insta::assert_snapshot!(queue_table(&queues).render(), @r"
        ID        WORKER  FRAMES   BYTES  FULL  MOVES
        web/rx/0       1  12.3 M  790 MB     0      2
        web/tx/0       1       7   448 B     0      2
        ");
        let worker = |yields| WorkerStatus {
            id: 0,
            cpu: Some(3),
            queues: 4,
            cpu_time_ns: 12_340_000_000,
            busy_ns: 5_000_000_000,
            batches: 10,
            frames: 320,
            sleeps: 99,
            asleep: true,
            yields,
            is_yielding: yields > 0,
            stages: suimon_contract::WorkerStages::default(),
        };
        let workers = [worker(0), worker(12)];
        insta::assert_snapshot!(worker_table(&workers).render(), @r"
        ID  CPU  QUEUES  CPU TIME   BUSY  FRAMES  BATCHES  SLEEPS  YIELDS  STATE
        0     3       4    12.3 s  5.0 s     320       10      99       0  asleep
        0     3       4    12.3 s  5.0 s     320       10      99      12  asleep, yields its CPU
        ");
    }
}
