//! Execution of a change as a transaction.
//!
//! 1. The intent is recorded, with the objects that the change will create.
//! 2. The steps are executed in the order of their phases (`order.rs`).
//! 3. The new desired state and its events are committed. The change takes effect with this commit.
//! 4. The caller closes devices that are absent from the new state.
//!
//! If a step fails, or the operation is cancelled before the commit, the executed steps are undone.
//! A process that crashes before the commit restarts with the old desired state, after the commit
//! with the new one.

use std::fmt::Display;

use suimon_contract::ApiError;

use crate::operations::OperationHandle;

/// Resource kinds that take part in a change.
pub trait Participants {
    /// Step of the change. `Display` writes the progress of the operation.
    type Step: Display;
    /// Reversal of an executed step.
    type Undo;

    /// Records the intent and the objects that the steps create. Called before the first step. If
    /// it fails, no step is executed and [`Self::roll_back`] is called without executed steps.
    fn record_intent(&mut self, steps: &[Self::Step]) -> Result<(), ApiError>;

    /// Executes a step. Appends one reversal for each effect to `undo`, also for the effects of a
    /// step that fails.
    fn execute(&mut self, step: &Self::Step, undo: &mut Vec<Self::Undo>) -> Result<(), ApiError>;

    /// Stores the new desired state and its events in one commit.
    fn commit(&mut self) -> Result<(), ApiError>;

    /// Undoes executed steps, given in the order of their execution. Logs failures and continues.
    fn roll_back(&mut self, undo: Vec<Self::Undo>);
}

/// Executes a change and reports its progress to `operation`.
///
/// # Errors
/// A step or the commit failed, or the operation was cancelled; the executed steps were undone.
pub fn run<P: Participants>(
    participants: &mut P,
    operation: &OperationHandle,
    steps: &[P::Step],
) -> Result<(), ApiError> {
    let mut undo = Vec::new();
    let result = participants
        .record_intent(steps)
        .and_then(|()| execute_all(participants, operation, steps, &mut undo))
        .and_then(|()| {
            operation.check_cancelled()?;
            operation.report_step(steps.len(), "save the new state");
            participants.commit()
        });
    if result.is_err() {
        participants.roll_back(undo);
    }
    result
}

fn execute_all<P: Participants>(
    participants: &mut P,
    operation: &OperationHandle,
    steps: &[P::Step],
    undo: &mut Vec<P::Undo>,
) -> Result<(), ApiError> {
    for (steps_done, step) in steps.iter().enumerate() {
        operation.check_cancelled()?;
        operation.report_step(steps_done, &step.to_string());
        participants.execute(step, undo)?;
    }
    Ok(())
}
