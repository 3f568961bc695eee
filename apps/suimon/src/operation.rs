//! Commands of `operation`: asynchronous operations.

use clap::{Args, Subcommand};
use suimon_tables::operation_tables::{details, table};

use crate::exit::Failure;
use crate::output::Context;
use crate::progress::await_end;

/// Verbs of `operation`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum OperationVerb {
    /// List running operations and the last 1000 that ended.
    List,
    /// Show the progress, result and plan of an operation.
    Show(OperationIdFlags),
    /// Cancel a running operation and restore the previous state.
    Cancel(OperationIdFlags),
    /// Wait for the end of an operation and show its result.
    Watch(OperationIdFlags),
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OperationIdFlags {
    /// Number of the operation, as shown by `suimon operation list`.
    id: u64,
}

impl OperationVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List => {
                let operations = context.client.operations().await?;
                Ok(context.show(&operations, |operations| table(operations).render())?)
            }
            Self::Show(OperationIdFlags { id }) => {
                let operation = context.client.operation(id).await?;
                Ok(context.show(&operation, details)?)
            }
            Self::Cancel(OperationIdFlags { id }) => {
                let operation = context.client.cancel_operation(id).await?;
                Ok(context.show(&operation, details)?)
            }
            Self::Watch(OperationIdFlags { id }) => {
                let operation = context.client.operation(id).await?;
                await_end(context, operation, false).await
            }
        }
    }
}
