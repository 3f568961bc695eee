//! Commands of `queue` and `worker`: queues and the workers that own them.

use clap::{Args, Subcommand};
use suimon_tables::queue_tables::{queue_table, worker_table};

use crate::exit::Failure;
use crate::output::Context;
use crate::progress::await_end;

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
                Ok(context.show(&workers, |workers| worker_table(workers).render())?)
            }
        }
    }
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
}
