//! Commit of a disk in flight: its steps, and the requests that wait for it.

use std::collections::VecDeque;
use std::io;

use suimon_image::{CommitOutcome, Step};
use suimon_ports::FileRequest;

/// Maximum number of steps of a commit in flight. The remaining capacity of the I/O is left to
/// requests.
const STEPS_IN_FLIGHT_MAX: usize = 32;

/// Commit with its steps and the requests that wait for it.
pub(crate) struct RunningCommit {
    /// Steps that were not started yet.
    steps: VecDeque<Step>,
    /// Number of steps that were started.
    started_count: usize,
    in_flight: Vec<StepInFlight>,
    /// True if the next step may be in flight concurrently with those that were started.
    may_overlap: bool,
    failed: Option<FailedStep>,
    /// True if the image has changes to commit; false if the commit only flushes the file.
    pub(crate) has_image_changes: bool,
    /// Requests that complete when the commit is durable.
    pub(crate) waiters: Vec<usize>,
    /// True if the commit repeats one that found no space.
    pub(crate) is_repetition: bool,
    /// True if the commit waits for a free submission-queue entry.
    pub(crate) is_queued: bool,
}

/// Step of a commit that was submitted and has not completed.
#[derive(Clone, Copy)]
struct StepInFlight {
    /// Number of the step in its commit.
    number: usize,
    /// File offset of the step in bytes; `None` for a flush.
    offset: Option<u64>,
    is_flush: bool,
}

/// First step of the commit, in order of the steps, that failed.
pub(crate) struct FailedStep {
    number: usize,
    /// File offset of the step in bytes; `None` for a flush.
    pub(crate) offset: Option<u64>,
    /// True if the step is a flush.
    pub(crate) is_flush: bool,
    pub(crate) error: io::Error,
}

/// Next action of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitAction {
    /// Wait until a step in flight has ended.
    Wait,
    /// Complete the waiting requests: the commit is durable.
    CompleteWaiters,
    /// Submit the next step, returned by [`RunningCommit::begin_step`].
    Begin,
    /// End the commit by [`RunningCommit::end`].
    End,
}

impl RunningCommit {
    /// Creates a commit with the image's steps. If `steps` is `None`, the image has nothing to
    /// commit and a flush suffices. `waiters`: requests that complete when the commit is durable.
    pub(crate) fn new(steps: Option<Vec<Step>>, waiters: Vec<usize>, is_repeated: bool) -> Self {
        Self {
            has_image_changes: steps.is_some(),
            steps: steps.unwrap_or_else(|| vec![Step::Flush, Step::DurableMarker]).into(),
            started_count: 0,
            in_flight: Vec::new(),
            may_overlap: false,
            failed: None,
            waiters,
            is_repetition: is_repeated,
            is_queued: false,
        }
    }

    /// Returns the commit's next action.
    pub(crate) fn next_action(&mut self) -> CommitAction {
        if !self.in_flight.is_empty() {
            let begins_next = self.may_overlap
                && self.failed.is_none()
                && self.in_flight.len() < STEPS_IN_FLIGHT_MAX;
            return if begins_next { CommitAction::Begin } else { CommitAction::Wait };
        }
        match self.steps.front() {
            _ if self.failed.is_some() => CommitAction::End,
            None => CommitAction::End,
            Some(Step::DurableMarker) => {
                self.steps.pop_front();
                self.started_count += 1;
                CommitAction::CompleteWaiters
            }
            Some(_) => CommitAction::Begin,
        }
    }

    /// Starts the next step. Returns its number and its operation; `None` if there is none.
    pub(crate) fn begin_step(&mut self) -> Option<(usize, FileRequest<'static>)> {
        let step = self.steps.pop_front()?;
        self.may_overlap = self.steps.front().is_some_and(|next| step.may_run_concurrently(next));
        let number = self.started_count;
        self.started_count += 1;
        let (offset, op) = match step {
            Step::DurableMarker => return None,
            Step::Write { offset, bytes } => {
                (Some(offset), FileRequest::WriteBytes { offset, bytes })
            }
            Step::Extend { len, required_len: required } => {
                (Some(len), FileRequest::Extend { len, required_end: required })
            }
            Step::Zero(range) => {
                let zero = FileRequest::Zero { range, may_unmap: true, only_if_fast: false };
                (Some(range.offset()), zero)
            }
            Step::Flush => (None, FileRequest::Flush),
        };
        let is_flush = matches!(op, FileRequest::Flush);
        self.in_flight.push(StepInFlight { number, offset, is_flush });
        Some((number, op))
    }

    /// Handles the end of the step with this number. Returns true if other steps are in flight.
    pub(crate) fn handle_step(&mut self, number: usize, outcome: io::Result<()>) -> bool {
        let Some(position) = self.in_flight.iter().position(|step| step.number == number) else {
            return !self.in_flight.is_empty();
        };
        let StepInFlight { offset, is_flush, .. } = self.in_flight.swap_remove(position);
        if let Err(error) = outcome {
            if self.failed.as_ref().is_none_or(|failed| number < failed.number) {
                self.failed = Some(FailedStep { number, offset, is_flush, error });
            }
        }
        !self.in_flight.is_empty()
    }

    /// Ends the commit. Returns the outcome for the image, the failed step if any, and the waiting
    /// requests that were not completed.
    pub(crate) fn end(self) -> (CommitOutcome, Option<FailedStep>, Vec<usize>) {
        let outcome = match &self.failed {
            None => CommitOutcome::Done,
            Some(failed) => CommitOutcome::Failed { completed_steps: failed.number },
        };
        (outcome, self.failed, self.waiters)
    }
}

#[cfg(test)]
mod tests {
    use suimon_image::ByteRange;

    use super::*;

    fn write(offset: u64) -> Step {
        Step::Write { offset, bytes: vec![0; 512] }
    }

    /// Starts as many steps as permitted; returns their numbers.
    fn begin_all(commit: &mut RunningCommit) -> Vec<usize> {
        let mut started = Vec::new();
        while commit.next_action() == CommitAction::Begin {
            started.extend(commit.begin_step().map(|(number, _)| number));
        }
        started
    }

    fn end_all(commit: &mut RunningCommit, numbers: &[usize]) {
        for number in numbers.iter().rev() {
            commit.handle_step(*number, Ok(()));
        }
    }

    #[test]
    fn only_writes_and_only_zeroing_overlap() {
        let zero = Step::Zero(ByteRange::new(0, 512).unwrap());
        let steps = vec![
            write(0),
            write(512),
            Step::Flush,
            write(1024),
            zero.clone(),
            zero,
            Step::Extend { len: 1, required_len: 1 },
            Step::Flush,
            Step::DurableMarker,
            write(0),
        ];
        let mut commit = RunningCommit::new(Some(steps), Vec::new(), false);
        for expected in [&[0, 1][..], &[2], &[3], &[4, 5], &[6], &[7]] {
            let started = begin_all(&mut commit);
            assert_eq!(started, expected);
            assert_eq!(commit.next_action(), CommitAction::Wait);
            end_all(&mut commit, &started);
        }
        assert_eq!(commit.next_action(), CommitAction::CompleteWaiters);
        assert_eq!(begin_all(&mut commit), [9]);
        commit.handle_step(9, Ok(()));
        assert_eq!(commit.next_action(), CommitAction::End);
        assert_eq!(commit.end().0, CommitOutcome::Done);
    }

    #[test]
    fn a_commit_with_a_failed_step_ends_when_no_step_is_in_flight() {
        let steps = vec![write(0), write(512), write(1024), Step::Flush, Step::DurableMarker];
        let mut commit = RunningCommit::new(Some(steps), vec![7], false);
        assert_eq!(begin_all(&mut commit), [0, 1, 2]);
        assert!(commit.handle_step(2, Err(io::ErrorKind::StorageFull.into())));
        assert_eq!(commit.next_action(), CommitAction::Wait);
        assert!(commit.handle_step(1, Err(io::ErrorKind::Other.into())));
        assert!(!commit.handle_step(0, Ok(())));
        assert_eq!(commit.next_action(), CommitAction::End);
        let (outcome, failed, waiters) = commit.end();
        assert_eq!((outcome, waiters), (CommitOutcome::Failed { completed_steps: 1 }, vec![7]));
        let failed = failed.unwrap();
        assert_eq!((failed.offset, failed.is_flush), (Some(512), false));
    }

    #[test]
    fn few_steps_of_a_commit_are_in_flight() {
        let steps = (0..100).map(|number| write(number * 512)).collect();
        let mut commit = RunningCommit::new(Some(steps), Vec::new(), false);
        assert_eq!(begin_all(&mut commit).len(), STEPS_IN_FLIGHT_MAX);
        commit.handle_step(3, Ok(()));
        assert_eq!(begin_all(&mut commit), [STEPS_IN_FLIGHT_MAX]);
    }
}
