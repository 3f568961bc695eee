//! Replay of store schedulers.

use suimon_quantity::Time;
use suimon_storage_qos::{Borrower, StoreBudget, StoreScheduler, StoreSpec};

use crate::scheduler_encoding as code;
use crate::scheduler_encoding::{StoreInput, decode_store_input};
use crate::{Difference, PolicyReplay, RecordError, decode};

/// Maximum number of queued requests of a store in a recording; bounds memory in replay.
const WAITING_MAX: u32 = 1 << 20;

/// Scheduler of a store in its current sharing mode.
#[allow(clippy::large_enum_variant, reason = "there is one for each store of a recording")]
enum Mode {
    Sole(StoreScheduler),
    Shared(StoreBudget),
    Transition,
}

/// Replay of one store's scheduler.
pub(crate) struct SchedulerReplay {
    spec: StoreSpec,
    mode: Mode,
}

/// Decodes the initial state of a scheduler.
///
/// # Errors
/// Fails if the initial state is invalid or exceeds the replay's limits.
pub fn decode_store_initial_state(birth: &[u8]) -> Result<StoreSpec, RecordError> {
    let spec: StoreSpec =
        decode(birth).map_err(|fault| RecordError::InitialState(fault.to_string()))?;
    if spec.waiting_max > WAITING_MAX || spec.depth_max > WAITING_MAX {
        let (waiting, depth) = (spec.waiting_max, spec.depth_max);
        let why = format!("{waiting} queued requests, or {depth} in the device, exceed the limit");
        return Err(RecordError::InitialState(why));
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
    fn step(&mut self, at: Time, input: &[u8], decision: &mut Vec<u8>) -> Result<(), RecordError> {
        let input = decode_store_input(input)?;
        let mut borrower = None;
        if matches!(input, StoreInput::Share(_) | StoreInput::Unshare(_)) {
            borrower = Some(self.borrower());
        }
        match (&mut self.mode, input) {
            (Mode::Sole(of), StoreInput::Submit { slot, bytes, tag }) => {
                code::put_submitted(decision, of.submit(at, slot, bytes, tag));
            }
            (Mode::Sole(of), StoreInput::SubmitBatch { slot, tag, sizes }) => {
                code::put_together_done(decision, of.submit_batch(at, slot, &sizes, tag));
            }
            (Mode::Sole(of), StoreInput::Poll) => code::put_next(decision, at, of.poll(at)),
            (Mode::Sole(of), StoreInput::Completed { slot, of: ended }) => {
                of.handle_completed(at, slot, ended);
            }
            (Mode::Sole(of), StoreInput::Undone { slot, bytes }) => {
                of.handle_undone(at, slot, bytes);
            }
            (Mode::Sole(of), StoreInput::Change(change)) => {
                code::put_tags(decision, &of.apply(at, change));
            }
            (Mode::Shared(of), StoreInput::Change(change)) => of.apply(at, change),
            (Mode::Sole(of), StoreInput::Observe) => code::put_events(decision, &of.observe(at)),
            (Mode::Shared(of), StoreInput::Observe) => code::put_events(decision, &of.observe(at)),
            (Mode::Shared(of), StoreInput::Report { from, report }) => {
                of.handle_report(at, from, &report);
            }
            (Mode::Shared(of), StoreInput::Absent(worker)) => of.handle_absent(worker),
            (Mode::Shared(of), StoreInput::Ended(worker)) => of.handle_ended(at, worker),
            (Mode::Shared(of), StoreInput::PollGrant) => {
                code::put_grant(decision, of.poll_grant(at));
            }
            (mode @ Mode::Sole(_), StoreInput::Share(with)) => {
                let (Mode::Sole(of), Some(mut borrower)) =
                    (core::mem::replace(mode, Mode::Transition), borrower)
                else {
                    return Ok(());
                };
                *mode = Mode::Shared(StoreBudget::share(of, at, with, &mut borrower));
            }
            (mode @ Mode::Shared(_), StoreInput::Unshare(waiting)) => {
                let (Mode::Shared(of), Some(mut borrower)) =
                    (core::mem::replace(mode, Mode::Transition), borrower)
                else {
                    return Ok(());
                };
                for (slot, tag) in waiting {
                    borrower.add(slot);
                    // The budget has recorded their sizes.
                    let _ = borrower.submit(at, slot, 0, tag);
                }
                *mode = Mode::Sole(of.unshare(at, borrower));
            }
            (Mode::Shared(_), _) => {
                return Err(RecordError::Body("several workers use the store".to_owned()));
            }
            (Mode::Sole(_) | Mode::Transition, _) => {
                return Err(RecordError::Body("one worker uses the store".to_owned()));
            }
        }
        Ok(())
    }

    fn describe_input(&self, input: &[u8]) -> String {
        decode_store_input(input).map_or_else(|fault| fault.to_string(), |of| format!("{of:?}"))
    }

    fn difference(&self, recorded: &[u8], now: &[u8]) -> Difference {
        let shown = |bytes: &[u8]| {
            let bytes = bytes.iter().map(|byte| format!("{byte:02x}"));
            bytes.collect::<Vec<_>>().join(" ")
        };
        Difference::from_texts(String::new(), &shown(recorded), &shown(now))
    }
}
