//! Waiting for operations, with display of progress.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};
use suimon_client::ChangeOutcome;
use suimon_contract::{Operation, OperationState};
use suimon_tables::operation_tables::plan_text;

use crate::change_flags::ChangeFlags;
use crate::exit::Failure;
use crate::old_names;
use crate::output::Context;

/// Prints the result of a change: the plan of a dry run, otherwise the progress and end of the
/// operation.
pub(crate) async fn print_outcome(
    context: &Context,
    outcome: ChangeOutcome,
    flags: ChangeFlags,
) -> Result<(), Failure> {
    match outcome {
        ChangeOutcome::Planned(plan) => {
            old_names::print_warnings(context.prints_json, &plan.warnings);
            Ok(context.show(&plan, plan_text)?)
        }
        ChangeOutcome::Started(operation) => {
            old_names::print_warnings(context.prints_json, &operation.warnings);
            if let (false, Some(plan)) = (context.prints_json, &operation.plan) {
                crate::output::print(&plan_text(plan))?;
            }
            await_end(context, *operation, flags.no_wait).await
        }
    }
}

/// Waits for an operation's end unless `--no-wait` is given, and prints its report.
pub(crate) async fn await_end(
    context: &Context,
    operation: Operation,
    no_wait: bool,
) -> Result<(), Failure> {
    let id = operation.id;
    let operation = if no_wait {
        if !context.prints_json {
            eprintln!("operation {id} is running; `suimon operation watch {id}` waits for its end");
        }
        operation
    } else {
        let finished = watch(context, operation).await?;
        if finished.state != OperationState::Succeeded {
            show_report(context, &finished)?;
            return Err(Failure::Operation(Box::new(finished)));
        }
        finished
    };
    Ok(show_report(context, &operation)?)
}

/// Shows the report of an operation; with JSON, the whole operation.
fn show_report(context: &Context, operation: &Operation) -> io::Result<()> {
    if context.prints_json {
        return crate::output::print_json(operation);
    }
    let report: String = operation.report.iter().map(|line| format!("{line}\n")).collect();
    crate::output::print(&report)
}

/// Follows an operation until it ended. On a terminal, shows progress as a spinner, or as a bar for
/// operations with many steps.
pub(crate) async fn watch(context: &Context, operation: Operation) -> Result<Operation, Failure> {
    if operation.state != OperationState::Running {
        return Ok(operation);
    }
    let id = operation.id;
    let spinner = Spinner::new();
    spinner.show(&operation);
    let following = async {
        let mut follow = context.client.follow_operation(id).await?;
        while let Some(operation) = follow.next().await? {
            spinner.show(&operation);
            if operation.state != OperationState::Running {
                return Ok(operation);
            }
        }
        // The stream may end before its last line arrives.
        Ok::<_, Failure>(context.client.operation(id).await?)
    };
    tokio::select! {
        ended = following => ended,
        interrupt = tokio::signal::ctrl_c() => {
            interrupt?;
            Err(Failure::Interrupted { operation_id: id })
        }
    }
}

/// Smallest number of steps for which a bar is shown instead of a spinner.
const BAR_STEPS_MIN: usize = 10;

struct Spinner(Option<ProgressBar>);

impl Spinner {
    fn new() -> Self {
        if !io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(core::time::Duration::from_millis(100));
        Self(Some(bar))
    }

    fn show(&self, operation: &Operation) {
        let Some(bar) = &self.0 else { return };
        let template = if operation.steps_total < BAR_STEPS_MIN {
            "{spinner} {msg} {pos}/{len} {elapsed}"
        } else {
            "{spinner} {percent:>3}% [{bar:20}] {msg} {elapsed}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_length(operation.steps_total as u64);
        bar.set_position(operation.steps_done as u64);
        let Operation { kind, subject, current_step: step, .. } = operation;
        bar.set_message(format!("{kind} {subject}: {}", step.as_deref().unwrap_or_default()));
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
