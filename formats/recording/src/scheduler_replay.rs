//! Replay of store schedulers.

use suimon_quantity::Time;
use suimon_storage_qos::{Borrower, DiskSlot, StoreBudget, StoreScheduler, StoreSpec};

use crate::scheduler_encoding as code;
use crate::scheduler_encoding::{StoreInput, decode_store_input};
use crate::{Difference, PolicyReplay, RecordError, decode_json};

/// Maximum number of queued requests of a store in a recording, which bounds the memory of a
/// replay.
const WAITING_MAX: u32 = 1 << 20;

/// Scheduler of a store, in its current mode: for one worker or shared by several.
#[allow(clippy::large_enum_variant, reason = "there is one for each store of a recording")]
enum Mode {
    Sole(StoreScheduler),
    Shared(StoreBudget),
    Transition,
}

/// Replay of the scheduler of one store.
pub(crate) struct SchedulerReplay {
    spec: StoreSpec,
    mode: Mode,
}

/// Decodes the initial state of a scheduler.
///
/// # Errors
///
/// The initial state is invalid or exceeds the limits of a replay.
pub fn decode_store_initial_state(birth: &[u8]) -> Result<StoreSpec, RecordError> {
    let spec: StoreSpec =
        decode_json(birth).map_err(|fault| RecordError::RejectedInitialState(fault.to_string()))?;
    if spec.waiting_max > WAITING_MAX || spec.depth_max > WAITING_MAX {
        let (waiting, depth) = (spec.waiting_max, spec.depth_max);
        let reason =
            format!("{waiting} queued requests, or {depth} in the device, exceed the limit");
        return Err(RecordError::RejectedInitialState(reason));
    }
    Ok(spec)
}

impl SchedulerReplay {
    pub(crate) fn begin(birth: &[u8]) -> Result<Self, RecordError> {
        let spec = decode_store_initial_state(birth)?;
        Ok(Self { mode: Mode::Sole(StoreScheduler::new(spec.clone())), spec })
    }

    fn borrower(&self) -> Borrower {
        Borrower::new(self.spec.normalization, self.spec.waiting_max)
    }
}

impl PolicyReplay for SchedulerReplay {
    fn step(&mut self, now: Time, input: &[u8], decision: &mut Vec<u8>) -> Result<(), RecordError> {
        let input = decode_store_input(input)?;
        let mut borrower = None;
        if matches!(input, StoreInput::Share(_) | StoreInput::Unshare(_)) {
            borrower = Some(self.borrower());
        }
        match (&mut self.mode, input) {
            (Mode::Sole(scheduler), StoreInput::Submit { slot, bytes, tag }) => {
                code::put_submitted(decision, scheduler.submit(now, slot, bytes, tag));
            }
            (Mode::Sole(scheduler), StoreInput::SubmitBatch { slot, tag, sizes }) => {
                code::put_batch_submitted(decision, scheduler.submit_batch(now, slot, &sizes, tag));
            }
            (Mode::Sole(scheduler), StoreInput::Poll) => {
                code::put_next(decision, now, scheduler.poll(now));
            }
            (Mode::Sole(scheduler), StoreInput::Completed { slot, requests: completed }) => {
                scheduler.handle_completed_requests(now, slot, completed);
            }
            (Mode::Sole(scheduler), StoreInput::NotExecuted { slot, bytes }) => {
                scheduler.handle_not_executed(now, slot, bytes);
            }
            (Mode::Sole(scheduler), StoreInput::Change(change)) => {
                code::put_tags(decision, &scheduler.apply(now, change));
            }
            (Mode::Shared(budget), StoreInput::Change(change)) => budget.apply(now, change),
            (Mode::Sole(scheduler), StoreInput::Observe) => {
                code::put_events(decision, &scheduler.observe(now));
            }
            (Mode::Shared(budget), StoreInput::Observe) => {
                code::put_events(decision, &budget.observe(now));
            }
            (Mode::Shared(budget), StoreInput::Report { worker: from, report }) => {
                budget.handle_report(now, from, &report);
            }
            (Mode::Shared(budget), StoreInput::WorkerAbsent(worker)) => {
                budget.handle_worker_absent(worker);
            }
            (Mode::Shared(budget), StoreInput::WorkerEnded(worker)) => {
                budget.handle_worker_ended(now, worker);
            }
            (Mode::Shared(budget), StoreInput::PollGrant) => {
                code::put_grant(decision, budget.poll_grant(now));
            }
            (mode @ Mode::Sole(_), StoreInput::Share(worker)) => {
                let (Mode::Sole(scheduler), Some(mut borrower)) =
                    (core::mem::replace(mode, Mode::Transition), borrower)
                else {
                    return Ok(());
                };
                let budget = StoreBudget::from_scheduler(scheduler, now, worker, &mut borrower);
                *mode = Mode::Shared(budget);
            }
            (mode @ Mode::Shared(_), StoreInput::Unshare(waiting)) => {
                let (Mode::Shared(budget), Some(mut borrower)) =
                    (core::mem::replace(mode, Mode::Transition), borrower)
                else {
                    return Ok(());
                };
                submit_waiting(&mut borrower, now, waiting);
                *mode = Mode::Sole(budget.into_scheduler(now, borrower));
            }
            (Mode::Shared(_), _) => {
                return Err(RecordError::InvalidBody("several workers use the store".to_owned()));
            }
            (Mode::Sole(_) | Mode::Transition, _) => {
                return Err(RecordError::InvalidBody("one worker uses the store".to_owned()));
            }
        }
        Ok(())
    }

    fn describe_input(&self, input: &[u8]) -> String {
        decode_store_input(input)
            .map_or_else(|fault| fault.to_string(), |decoded| format!("{decoded:?}"))
    }

    fn difference(&self, recorded: &[u8], now: &[u8]) -> Difference {
        let describe = |bytes: &[u8]| {
            let bytes = bytes.iter().map(|byte| format!("{byte:02x}"));
            bytes.collect::<Vec<_>>().join(" ")
        };
        Difference::from_texts(String::new(), &describe(recorded), &describe(now))
    }
}

/// Submits requests that waited for the budget to the scheduler of its last worker. The budget has
/// recorded their sizes.
fn submit_waiting(borrower: &mut Borrower, now: Time, waiting: Vec<(DiskSlot, u32)>) {
    for (slot, tag) in waiting {
        borrower.add(slot);
        let _ = borrower.submit(now, slot, 0, tag);
    }
}
