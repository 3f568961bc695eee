//! Commands of `queue` and `worker`: queues and the workers that own them.

use clap::{Args, Subcommand};
use suimon_contract::{QueueStatus, WorkerStatus};

use crate::columns;
use crate::exit::Failure;
use crate::output::Context;
use crate::progress::await_end;
use crate::table::Table;
use crate::units;

/// Verbs of `queue`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum QueueVerb {
    /// List all queues with the worker that services each.
    List,
    /// Move a queue to another worker.
    Move(MoveFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct MoveFlags {
    /// Id of the queue as shown by `suimon queue list`, such as web/rx/0.
    #[arg(value_parser = queue_id)]
    id: String,
    /// Number of the worker, as shown by `suimon worker list`.
    #[arg(long, value_name = "WORKER")]
    to: u16,
    /// Print the number of the operation and return without waiting for its end.
    #[arg(long)]
    no_wait: bool,
}

/// Verbs of `worker`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum WorkerVerb {
    /// List all workers with their CPU time and counters.
    List,
}

fn queue_id(text: &str) -> Result<String, String> {
    let mut parts = text.split('/');
    let is_port =
        |part: Option<&str>| part.is_some_and(|name| name.parse::<suimon_contract::Name>().is_ok());
    let is_index = |part: Option<&str>| part.is_some_and(|index| index.parse::<u16>().is_ok());
    let is_id = is_port(parts.next())
        && matches!(parts.next(), Some("rx" | "tx"))
        && is_index(parts.next())
        && parts.next().is_none();
    if is_id { Ok(text.to_owned()) } else { Err("must be like web/rx/0 or web/tx/1".to_owned()) }
}

impl QueueVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List => {
                let queues = context.client.queues().await?;
                Ok(context.show(&queues, |queues| queue_table(queues).render())?)
            }
            Self::Move(flags) => {
                let operation = context.client.move_queue(&flags.id, flags.to).await?;
                await_end(context, operation, flags.no_wait).await
            }
        }
    }
}

impl WorkerVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List => {
                let workers = context.client.workers().await?;
                Ok(context.show(&workers, |all| worker_table(all).render())?)
            }
        }
    }
}

fn queue_table(queues: &[QueueStatus]) -> Table {
    let mut table = Table::new(&columns::QUEUES);
    for queue in queues {
        table.row([
            queue.id.clone(),
            queue.worker.to_string(),
            units::count(queue.frames),
            units::bytes(queue.bytes),
            units::count(queue.full),
            queue.moves.to_string(),
        ]);
    }
    table
}

fn worker_table(workers: &[WorkerStatus]) -> Table {
    let mut table = Table::new(&columns::WORKERS);
    for worker in workers {
        let seconds = |ns: u64| format!("{}.{} s", ns / 1_000_000_000, ns / 100_000_000 % 10);
        table.row([
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
    let own = if worker.asleep { "asleep" } else { "awake" };
    let others = if worker.is_yielding { ", yields its CPU" } else { "" };
    format!("{own}{others}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_named_by_port_direction_and_number() {
        assert!(queue_id("web-1.a/rx/0").is_ok());
        for bad in ["web", "web/0", "web/up/0", "web/rx/x", "web/rx/0/1", "/rx/0", "../rx/0"] {
            assert!(queue_id(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tables_are_aligned() {
        let queue = |id: &str, frames| QueueStatus {
            id: id.to_owned(),
            port: "web".to_owned(),
            worker: 1,
            frames,
            bytes: frames * 64,
            full: 0,
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
