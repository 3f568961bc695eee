//! Commands of `operation`: asynchronous operations.

use clap::{Args, Subcommand};
use suimon_contract::{Operation, OperationState};

use crate::columns;
use crate::exit::Failure;
use crate::output::Context;
use crate::progress::{await_end, plan_text};
use crate::table::{Table, or_dash};
use crate::units;

/// Verbs of `operation`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum OperationVerb {
    /// List running operations and the last 1000 that ended.
    List,
    /// Show the progress, result and plan of an operation.
    Show(Id),
    /// Cancel a running operation and restore the previous state.
    Cancel(Id),
    /// Wait for the end of an operation and show its result.
    Watch(Id),
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Id {
    /// Number of the operation, as shown by `suimon operation list`.
    id: u64,
}

impl OperationVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List => {
                let operations = context.client.operations().await?;
                Ok(context.show(&operations, |all| table(all).render())?)
            }
            Self::Show(Id { id }) => {
                let operation = context.client.operation(id).await?;
                Ok(context.show(&operation, details)?)
            }
            Self::Cancel(Id { id }) => {
                let operation = context.client.cancel_operation(id).await?;
                Ok(context.show(&operation, details)?)
            }
            Self::Watch(Id { id }) => {
                let operation = context.client.operation(id).await?;
                await_end(context, operation, false).await
            }
        }
    }
}

fn state(operation: &Operation) -> &'static str {
    match operation.state {
        OperationState::Running => "running",
        OperationState::Succeeded => "succeeded",
        OperationState::Failed => "failed",
        OperationState::Cancelled => "cancelled",
    }
}

fn table(operations: &[Operation]) -> Table {
    let mut table = Table::new(&columns::OPERATIONS);
    for operation in operations {
        table.row([
            operation.id.to_string(),
            operation.kind.clone(),
            operation.subject.clone(),
            state(operation).to_owned(),
            format!("{}/{}", operation.steps_done, operation.steps),
            units::timestamp(operation.started_unix_ms),
        ]);
    }
    table
}

fn details(operation: &Operation) -> String {
    let mut text = format!(
        "id       {}\nkind     {}\nsubject  {}\nstate    {}\nsteps    {}/{}\nstep     {}\n\
         started  {}\nended    {}\n",
        operation.id,
        operation.kind,
        operation.subject,
        state(operation),
        operation.steps_done,
        operation.steps,
        or_dash(operation.step.as_deref()),
        units::timestamp(operation.started_unix_ms),
        or_dash(operation.ended_unix_ms.map(units::timestamp)),
    );
    if let Some(error) = &operation.error {
        text.push_str(&format!("error    {error}\n"));
    }
    for line in &operation.report {
        text.push_str(&format!("report   {line}\n"));
    }
    if let Some(plan) = &operation.plan {
        text.push('\n');
        text.push_str(&plan_text(plan));
    }
    text
}

#[cfg(test)]
mod tests {
    use suimon_contract::{ApiError, ErrorCode};

    use super::*;

    #[test]
    fn operations_are_shown_with_their_end() {
        let operation = Operation {
            id: 7,
            kind: "nic set".to_owned(),
            subject: "nic/web".to_owned(),
            state: OperationState::Failed,
            steps_done: 1,
            steps: 2,
            step: None,
            plan: None,
            report: vec!["2 blocks are not referred to".to_owned()],
            warnings: Vec::new(),
            error: Some(ApiError::new(ErrorCode::DeviceMissing, "there is no device eth9")),
            started_unix_ms: 0,
            ended_unix_ms: Some(1500),
        };
        insta::assert_snapshot!(table(core::slice::from_ref(&operation)).render(), @r"
        ID  KIND     SUBJECT  STATE   STEPS  STARTED
         7  nic set  nic/web  failed    1/2  1970-01-01T00:00:00.000Z
        ");
        insta::assert_snapshot!(details(&operation), @r"
        id       7
        kind     nic set
        subject  nic/web
        state    failed
        steps    1/2
        step     –
        started  1970-01-01T00:00:00.000Z
        ended    1970-01-01T00:00:01.500Z
        error    there is no device eth9
        report   2 blocks are not referred to
        ");
    }
}
